// Package squirrel stands for the builder of SQL that Helm uses, which is not linked: it declares what Helm
// uses of it, and builds nothing.
package squirrel

import "errors"

// Eq would be a condition.
type Eq map[string]any

// Dollar would be how placeholders are written.
var Dollar any

// StatementBuilderType would begin statements.
type StatementBuilderType struct{}

// StatementBuilder begins statements.
var StatementBuilder StatementBuilderType

// Statement would be a statement of any kind.
type Statement struct{}

// PlaceholderFormat returns the builder as it is.
func (b StatementBuilderType) PlaceholderFormat(any) StatementBuilderType { return b }

// Select begins a query.
func (StatementBuilderType) Select(...string) Statement { return Statement{} }

// Insert begins an insertion.
func (StatementBuilderType) Insert(string) Statement { return Statement{} }

// Update begins an update.
func (StatementBuilderType) Update(string) Statement { return Statement{} }

// Delete begins a deletion.
func (StatementBuilderType) Delete(string) Statement { return Statement{} }

// From returns the statement as it is.
func (s Statement) From(string) Statement { return s }

// Where returns the statement as it is.
func (s Statement) Where(any) Statement { return s }

// Columns returns the statement as it is.
func (s Statement) Columns(...string) Statement { return s }

// Values returns the statement as it is.
func (s Statement) Values(...any) Statement { return s }

// Set returns the statement as it is.
func (s Statement) Set(string, any) Statement { return s }

// ToSql says that there is none.
func (Statement) ToSql() (string, []any, error) {
	return "", nil, errors.New("this helm knows no SQL")
}
