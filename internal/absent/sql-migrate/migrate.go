// Package migrate stands for the library that Helm sets up a database with, which is not linked: it declares
// what Helm uses of it, and sets up nothing.
package migrate

import (
	"errors"
	"time"
)

var errNone = errors.New("this helm knows no database")

// Up would be a direction.
const Up = 0

// Migration would be a step of a set-up.
type Migration struct {
	Id       string
	Up, Down []string
}

// MemoryMigrationSource would be all steps.
type MemoryMigrationSource struct{ Migrations []*Migration }

// MigrationRecord would be a step that is done.
type MigrationRecord struct {
	Id        string
	AppliedAt time.Time
}

// SetDisableCreateTable sets nothing.
func SetDisableCreateTable(bool) {}

// GetMigrationRecords finds nothing.
func GetMigrationRecords(any, string) ([]*MigrationRecord, error) { return nil, errNone }

// Exec does nothing.
func Exec(any, string, any, int) (int, error) { return 0, errNone }
