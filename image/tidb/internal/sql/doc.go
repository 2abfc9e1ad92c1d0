// Package sql is the TiDB server: it speaks MySQL's protocol, keeps nothing, and has the stores of package kv do what
// it is asked.
//
// The stores run SQLite, so a statement of MySQL is translated: names of tables get their database, literals and
// functions become those of SQLite, what depends on the moment or on luck becomes a value (all stores must come to the
// same), and SHOW and the like are answered from the catalog. A statement that has no translation is an error 1064 or
// 1235 that says so.
package sql
