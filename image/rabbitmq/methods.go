package rabbitmq

import "fmt"

// Classes of methods.
const (
	classConnection = 10
	classChannel    = 20
	classExchange   = 40
	classQueue      = 50
	classBasic      = 60
	classConfirm    = 85
	classTx         = 90
)

// id is a class and a method of it, as on the wire.
type id uint32

// The methods, by the numbers of the specification.
const (
	connStart   = id(classConnection<<16 | 10)
	connStartOK = id(classConnection<<16 | 11)
	connTune    = id(classConnection<<16 | 30)
	connTuneOK  = id(classConnection<<16 | 31)
	connOpen    = id(classConnection<<16 | 40)
	connOpenOK  = id(classConnection<<16 | 41)
	connClose   = id(classConnection<<16 | 50)
	connCloseOK = id(classConnection<<16 | 51)
	connBlocked = id(classConnection<<16 | 60)
	connFreed   = id(classConnection<<16 | 61)

	chanOpen    = id(classChannel<<16 | 10)
	chanOpenOK  = id(classChannel<<16 | 11)
	chanFlow    = id(classChannel<<16 | 20)
	chanFlowOK  = id(classChannel<<16 | 21)
	chanClose   = id(classChannel<<16 | 40)
	chanCloseOK = id(classChannel<<16 | 41)

	exDeclare   = id(classExchange<<16 | 10)
	exDeclareOK = id(classExchange<<16 | 11)
	exDelete    = id(classExchange<<16 | 20)
	exDeleteOK  = id(classExchange<<16 | 21)

	queueDeclare   = id(classQueue<<16 | 10)
	queueDeclareOK = id(classQueue<<16 | 11)
	queueBind      = id(classQueue<<16 | 20)
	queueBindOK    = id(classQueue<<16 | 21)
	queuePurge     = id(classQueue<<16 | 30)
	queuePurgeOK   = id(classQueue<<16 | 31)
	queueDelete    = id(classQueue<<16 | 40)
	queueDeleteOK  = id(classQueue<<16 | 41)
	queueUnbind    = id(classQueue<<16 | 50)
	queueUnbindOK  = id(classQueue<<16 | 51)

	basicQos       = id(classBasic<<16 | 10)
	basicQosOK     = id(classBasic<<16 | 11)
	basicConsume   = id(classBasic<<16 | 20)
	basicConsumeOK = id(classBasic<<16 | 21)
	basicCancel    = id(classBasic<<16 | 30)
	basicCancelOK  = id(classBasic<<16 | 31)
	basicPublish   = id(classBasic<<16 | 40)
	basicReturn    = id(classBasic<<16 | 50)
	basicDeliver   = id(classBasic<<16 | 60)
	basicGet       = id(classBasic<<16 | 70)
	basicGetOK     = id(classBasic<<16 | 71)
	basicGetEmpty  = id(classBasic<<16 | 72)
	basicAck       = id(classBasic<<16 | 80)
	basicReject    = id(classBasic<<16 | 90)
	basicRecover   = id(classBasic<<16 | 110)
	basicRecoverOK = id(classBasic<<16 | 111)
	basicNack      = id(classBasic<<16 | 120)

	confirmSelect   = id(classConfirm<<16 | 10)
	confirmSelectOK = id(classConfirm<<16 | 11)
)

// Reply codes.
const (
	codeNoRoute            = 312
	codeConnectionForced   = 320
	codeAccessRefused      = 403
	codeNotFound           = 404
	codeResourceLocked     = 405
	codePreconditionFailed = 406
	codeFrameError         = 501
	codeSyntaxError        = 502
	codeCommandInvalid     = 503
	codeChannelError       = 504
	codeUnexpectedFrame    = 505
	codeResourceError      = 506
	codeNotAllowed         = 530
	codeNotImplemented     = 540
)

var codeNames = map[int]string{
	codeConnectionForced: "CONNECTION_FORCED", codeAccessRefused: "ACCESS_REFUSED", codeNotFound: "NOT_FOUND",
	codeResourceLocked: "RESOURCE_LOCKED", codePreconditionFailed: "PRECONDITION_FAILED",
	codeFrameError: "FRAME_ERROR", codeSyntaxError: "SYNTAX_ERROR", codeCommandInvalid: "COMMAND_INVALID",
	codeChannelError: "CHANNEL_ERROR", codeUnexpectedFrame: "UNEXPECTED_FRAME", codeResourceError: "RESOURCE_ERROR",
	codeNotAllowed: "NOT_ALLOWED", codeNotImplemented: "NOT_IMPLEMENTED",
}

// failure is what a client did wrong. It closes its channel, or its connection if it is hard.
type failure struct {
	code int
	text string
	hard bool
}

func (f *failure) Error() string { return codeNames[f.code] + " - " + f.text }

// soft closes the channel.
func soft(code int, format string, args ...any) error {
	return &failure{code, fmt.Sprintf(format, args...), false}
}

// hard closes the connection.
func hard(code int, format string, args ...any) error {
	return &failure{code, fmt.Sprintf(format, args...), true}
}

// missing is for what this node cannot do.
func missing(what string) error {
	return hard(codeNotImplemented, "this node has no %s", what)
}
