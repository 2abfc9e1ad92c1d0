// Package postgres is PostgreSQL as a [kit.Program], with the image that people write into manifests as "postgres": the
// server, psql and pg_isready.
//
// The protocol is that of pgx, the SQL is SQLite's, in memory. Between them a lexer turns what people write for
// PostgreSQL into what SQLite takes: names of types, casts, schemas, ILIKE. It lets through the statements and
// functions that it knows, and no others: the rest is answered with "feature not supported" (0A000), or that
// there is no such function.
//
//	registry.Register(postgres.Image(tools))
//
// A database has one statement at a time. A transaction that has written keeps all others waiting until it ends; one
// that has only read keeps nobody. Statements have a time, and databases, values and results a size, beyond which
// they are refused. The data are stated to the container, and go with it.
package postgres
