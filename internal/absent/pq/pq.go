// Package pq stands for the driver of PostgreSQL, which is not linked. It registers one that connects to nothing.
package pq

import (
	"database/sql"
	"database/sql/driver"
	"errors"
)

func init() { sql.Register("postgres", none{}) }

type none struct{}

func (none) Open(string) (driver.Conn, error) {
	return nil, errors.New("this helm keeps releases in the cluster, not in a database: unset HELM_DRIVER")
}
