package aci

import (
	"context"
	"time"

	"github.com/aiopslab/aiopslab/guard"
)

// Transactions keep or take back what the agent writes: a [guard.Guard].
type Transactions interface {
	Begin(ctx context.Context) (*guard.Transaction, error)
	Commit(ctx context.Context, wait time.Duration) (*guard.Transaction, error)
	Abort(ctx context.Context) (*guard.Transaction, error)
	Undo(ctx context.Context, n int) (*guard.Transaction, error)
	History() string
	// Restrained reports whether a transaction is open that refuses what cannot be taken back.
	Restrained() bool
}

var _ Transactions = (*guard.Guard)(nil)

type (
	commitArgs struct {
		Wait int `arg:"wait" default:"30" doc:"How long to wait for that, in seconds; at most 300."`
	}
	undoArgs struct {
		N int `arg:"n" default:"1" doc:"How many writes, the latest first."`
	}
)

// transactionActions are for every task: an agent can write in all of them.
var transactionActions = []*Action{
	define("begin", Write,
		"Begin a transaction. What you write to the Kubernetes API from then on, up to 20 writes, is kept by commit "+
			"and taken back by abort, or by submit. A command in a container that may do more than read counts as a "+
			"write where it can be taken back, and is refused where it cannot.",
		"str: what has begun.",
		func(ctx context.Context, i *Interface, _ *struct{}) Result {
			return i.transact(func(t Transactions) (*guard.Transaction, error) { return t.Begin(ctx) })
		}),
	define("commit", Write,
		"End the transaction. Its writes are kept if the system is no worse than when it began, or becomes so in "+
			"time; otherwise they are taken back.",
		"str: whether they are kept.",
		func(ctx context.Context, i *Interface, a *commitArgs) Result {
			if a.Wait < 0 {
				return failed("wait must be 0 or more seconds, not %d", a.Wait)
			}
			wait := time.Duration(min(a.Wait, int(guard.MaxWait.Seconds()))) * time.Second
			return i.transact(func(t Transactions) (*guard.Transaction, error) { return t.Commit(ctx, wait) })
		}),
	define("abort", Write, "End the transaction and take its writes back.",
		"str: what was restored, and what could not be.",
		func(ctx context.Context, i *Interface, _ *struct{}) Result {
			return i.transact(func(t Transactions) (*guard.Transaction, error) { return t.Abort(ctx) })
		}),
	define("undo", Write, "Take back your last writes to the Kubernetes API, in a transaction or not.",
		"str: what was restored, and what could not be.",
		func(ctx context.Context, i *Interface, a *undoArgs) Result {
			return i.transact(func(t Transactions) (*guard.Transaction, error) { return t.Undo(ctx, a.N) })
		}),
	define("history", Read, "List your writes to the Kubernetes API, and which were taken back.",
		"str: the writes with their numbers.",
		func(_ context.Context, i *Interface, _ *struct{}) Result {
			if i.o.Transactions == nil {
				return failed("%s", noTransactions)
			}
			return Result{Text: i.o.Transactions.History()}
		}),
}

const noTransactions = "there are no transactions here"

// transact does an action of transactions.
func (i *Interface) transact(do func(Transactions) (*guard.Transaction, error)) Result {
	if i.o.Transactions == nil {
		return failed("%s", noTransactions)
	}
	t, err := do(i.o.Transactions)
	if err != nil {
		return failed("%v", err)
	}
	return Result{Text: t.String()}
}
