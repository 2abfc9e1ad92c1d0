// Package sqlx stands for the library that Helm reaches a database by, which is not linked: it declares what
// Helm uses of it, and connects to nothing.
package sqlx

import "errors"

var errNone = errors.New("this helm keeps releases in the cluster, not in a database: unset HELM_DRIVER")

// Conn would be the connections to a database.
type Conn struct{}

// DB would be a database.
type DB struct{ DB *Conn }

// Tx would be a transaction.
type Tx struct{}

// Connect says that there are no databases.
func Connect(string, string) (*DB, error) { return nil, errNone }

// Beginx begins nothing.
func (*DB) Beginx() (*Tx, error) { return nil, errNone }

// Exec runs nothing.
func (*DB) Exec(string, ...any) (any, error) { return nil, errNone }

// Get finds nothing.
func (*DB) Get(any, string, ...any) error { return errNone }

// Select finds nothing.
func (*DB) Select(any, string, ...any) error { return errNone }

// Exec runs nothing.
func (*Tx) Exec(string, ...any) (any, error) { return nil, errNone }

// Get finds nothing.
func (*Tx) Get(any, string, ...any) error { return errNone }

// Select finds nothing.
func (*Tx) Select(any, string, ...any) error { return errNone }

// Commit keeps nothing.
func (*Tx) Commit() error { return errNone }

// Rollback takes nothing back.
func (*Tx) Rollback() error { return errNone }
