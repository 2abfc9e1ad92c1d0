// Package pq stands for the driver of PostgreSQL, which is not linked: [sqlx] connects to nothing.
//
// [sqlx]: https://pkg.go.dev/github.com/jmoiron/sqlx
package pq
