// Package code holds the server's error codes. A command that fails says why with an [Error], which
// the client gets as it is.
package code

import (
	"errors"
	"fmt"
)

// Code is the number of an error. Those without a name are called Location and their number.
type Code int32

// The codes the server uses.
const (
	InternalError              Code = 1
	BadValue                   Code = 2
	FailedToParse              Code = 9
	UserNotFound               Code = 11
	UnsupportedFormat          Code = 12
	Unauthorized               Code = 13
	TypeMismatch               Code = 14
	Overflow                   Code = 15
	ProtocolError              Code = 17
	AuthenticationFailed       Code = 18
	IllegalOperation           Code = 20
	InvalidBSON                Code = 22
	NamespaceNotFound          Code = 26
	IndexNotFound              Code = 27
	PathNotViable              Code = 28
	RoleNotFound               Code = 31
	ConflictingUpdateOperators Code = 40
	CursorNotFound             Code = 43
	NamespaceExists            Code = 48
	MaxTimeMSExpired           Code = 50
	DollarPrefixedFieldName    Code = 52
	InvalidIDField             Code = 53
	EmptyFieldName             Code = 56
	CommandNotFound            Code = 59
	ImmutableField             Code = 66
	CannotCreateIndex          Code = 67
	InvalidOptions             Code = 72
	InvalidNamespace           Code = 73
	NoReplicationEnabled       Code = 76
	IndexOptionsConflict       Code = 85
	IndexKeySpecsConflict      Code = 86
	ShutdownInProgress         Code = 91
	OperationFailed            Code = 96
	CommandNotSupported        Code = 115
	SSLHandshakeFailed         Code = 141
	InvalidPipelineOperator    Code = 168
	NoQueryExecutionPlans      Code = 291
	MechanismUnavailable       Code = 334
	ConversionFailure          Code = 241
	BSONObjectTooLarge         Code = 10334
	DuplicateKey               Code = 11000
	Interrupted                Code = 11601
	RoleExists                 Code = 51002
	UserExists                 Code = 51003
)

var names = map[Code]string{
	InternalError: "InternalError", BadValue: "BadValue", FailedToParse: "FailedToParse",
	UserNotFound: "UserNotFound", UnsupportedFormat: "UnsupportedFormat", Unauthorized: "Unauthorized",
	TypeMismatch: "TypeMismatch", Overflow: "Overflow", ProtocolError: "ProtocolError",
	AuthenticationFailed: "AuthenticationFailed", IllegalOperation: "IllegalOperation", InvalidBSON: "InvalidBSON",
	NamespaceNotFound: "NamespaceNotFound", IndexNotFound: "IndexNotFound", PathNotViable: "PathNotViable",
	RoleNotFound: "RoleNotFound", ConflictingUpdateOperators: "ConflictingUpdateOperators",
	CursorNotFound: "CursorNotFound", NamespaceExists: "NamespaceExists", MaxTimeMSExpired: "MaxTimeMSExpired",
	DollarPrefixedFieldName: "DollarPrefixedFieldName", InvalidIDField: "InvalidIdField",
	EmptyFieldName: "EmptyFieldName", CommandNotFound: "CommandNotFound", ImmutableField: "ImmutableField",
	CannotCreateIndex: "CannotCreateIndex", InvalidOptions: "InvalidOptions", InvalidNamespace: "InvalidNamespace",
	NoReplicationEnabled: "NoReplicationEnabled", IndexOptionsConflict: "IndexOptionsConflict",
	IndexKeySpecsConflict: "IndexKeySpecsConflict", ShutdownInProgress: "ShutdownInProgress",
	OperationFailed: "OperationFailed", CommandNotSupported: "CommandNotSupported",
	SSLHandshakeFailed: "SSLHandshakeFailed", InvalidPipelineOperator: "InvalidPipelineOperator",
	NoQueryExecutionPlans: "NoQueryExecutionPlans", MechanismUnavailable: "MechanismUnavailable",
	ConversionFailure: "ConversionFailure", BSONObjectTooLarge: "BSONObjectTooLarge",
	DuplicateKey: "DuplicateKey", Interrupted: "Interrupted",
}

func (c Code) String() string {
	if n, ok := names[c]; ok {
		return n
	}
	return fmt.Sprintf("Location%d", int32(c))
}

// Error is why a command failed.
type Error struct {
	Code Code
	Msg  string
}

func (e *Error) Error() string { return e.Msg }

// Errorf returns an error with a code.
func Errorf(c Code, format string, args ...any) error {
	return &Error{Code: c, Msg: fmt.Sprintf(format, args...)}
}

// Of returns the code of an error. An error without a code counts as internal.
func Of(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return InternalError
}
