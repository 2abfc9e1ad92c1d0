package engine

import (
	"strings"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
)

// CheckDatabase refuses names that no database can have.
func CheckDatabase(db string) error {
	if db == "" || len(db) > 63 || strings.ContainsAny(db, "/\\. \"$\x00") {
		return code.Errorf(code.InvalidNamespace, "Invalid database name: '%s'", db)
	}
	return nil
}

// CheckNamespace refuses names that no collection can have.
func CheckNamespace(db, name string) error {
	if err := CheckDatabase(db); err != nil {
		return err
	}
	switch {
	case name == "", strings.HasPrefix(name, "."), strings.HasSuffix(name, "."), strings.ContainsAny(name, "$\x00"):
		return code.Errorf(code.InvalidNamespace, "Invalid namespace specified '%s.%s'", db, name)
	case len(db)+1+len(name) > 255:
		return code.Errorf(code.InvalidNamespace, "Fully qualified namespace is too long. Namespace: %s.%s Max: 255",
			db, name)
	}
	return nil
}
