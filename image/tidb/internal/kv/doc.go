// Package kv is TiKV: the stores that keep the data of a TiDB cluster.
//
// A store holds a SQLite database in memory. What changes it is a command: the statements of one transaction. Commands
// are replicated by Raft (go.etcd.io/raft) and applied by every store in the same order, so all stores hold the same.
// The Raft log and a snapshot of the database are files in the data directory, from which a store starts again.
//
// The data is one region, and one transaction at a time changes it. The leader runs the statements of an open
// transaction on its own database to answer them, takes that back, and proposes them as a command when the transaction
// is committed. A command says which one it was run after, and a store that has applied another since refuses it; so a
// transaction that spans a change of the leader fails as a whole.
package kv
