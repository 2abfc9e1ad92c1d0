package kv

import "context"

// Data is where statements are run: the stores of a cluster, which a [Client] reaches, or a [Local] database.
type Data interface {
	// Read runs a statement that changes nothing.
	Read(ctx context.Context, s Statement) (*Result, error)
	// Write runs statements as one transaction and returns what came of the last.
	Write(ctx context.Context, statements ...Statement) (*Result, error)
	// Begin opens a transaction. Until it ends, or was idle for two seconds, nobody else reads or writes.
	Begin(ctx context.Context) (Transaction, error)
}

// Transaction is one that is open.
type Transaction interface {
	Run(ctx context.Context, s Statement) (*Result, error)
	Commit(ctx context.Context) error
	Rollback(ctx context.Context) error
}

var (
	_ Data = (*Client)(nil)
	_ Data = (*Local)(nil)
)
