package kv

import (
	"context"
	"sync"
	"time"
)

// Local is a database in memory, of one process. Its methods may be called concurrently.
type Local struct {
	engine *engine
	gate   chan struct{} // holds one token
}

// NewLocal makes an empty database.
func NewLocal(ctx context.Context) (*Local, error) {
	e, err := newEngine(ctx)
	if err != nil {
		return nil, err
	}
	l := &Local{engine: e, gate: make(chan struct{}, 1)}
	l.leave()
	return l, nil
}

// Close forgets the data. Nobody may be using it.
func (l *Local) Close() { l.engine.close() }

// Dump is the whole database, without what open transactions have changed. Load puts one in place.
func (l *Local) Dump(ctx context.Context) ([]byte, error) {
	if err := l.enter(ctx); err != nil {
		return nil, err
	}
	defer l.leave()
	return l.engine.dump()
}

// Load puts a database in place that Dump returned.
func (l *Local) Load(ctx context.Context, data []byte) error {
	if err := l.enter(ctx); err != nil {
		return err
	}
	defer l.leave()
	return l.engine.load(ctx, data)
}

func (l *Local) enter(ctx context.Context) error {
	wait := time.NewTimer(lockWait)
	defer wait.Stop()
	select {
	case <-l.gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-wait.C:
		return ErrLockWait
	}
}

func (l *Local) leave() { l.gate <- struct{}{} }

// Read implements [Data].
func (l *Local) Read(ctx context.Context, s Statement) (*Result, error) {
	if changes(s.SQL) {
		return nil, &SQLError{"this statement changes data"}
	}
	if err := l.enter(ctx); err != nil {
		return nil, err
	}
	defer l.leave()
	return l.engine.read(ctx, s)
}

// Write implements [Data].
func (l *Local) Write(ctx context.Context, statements ...Statement) (last *Result, err error) {
	t, err := l.Begin(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range statements {
		if last, err = t.Run(ctx, s); err != nil {
			_ = t.Rollback(ctx) // What went wrong before says more.
			return nil, err
		}
	}
	return last, t.Commit(ctx)
}

// Begin implements [Data].
func (l *Local) Begin(ctx context.Context) (Transaction, error) {
	if err := l.enter(ctx); err != nil {
		return nil, err
	}
	number, err := l.engine.begin(ctx)
	if err != nil {
		l.leave()
		return nil, err
	}
	t := &localTx{l: l, number: number}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(idleTransaction, func() { _ = t.Rollback(context.Background()) })
	return t, nil
}

// localTx is an open transaction. It holds the gate.
type localTx struct {
	l      *Local
	number int

	mu    sync.Mutex // held while it is used
	timer *time.Timer
	size  int
	over  bool
}

// Run implements [Transaction].
func (t *localTx) Run(ctx context.Context, s Statement) (*Result, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return nil, ErrNoSuchTx
	}
	t.timer.Stop()
	defer t.timer.Reset(idleTransaction)
	if t.size += s.size(); t.size > maxCommand {
		return nil, ErrTooLarge
	}
	return t.l.engine.inside(ctx, t.number, s)
}

// Commit implements [Transaction].
func (t *localTx) Commit(context.Context) error { return t.end(t.l.engine.commit) }

// Rollback implements [Transaction].
func (t *localTx) Rollback(context.Context) error { return t.end(t.l.engine.end) }

func (t *localTx) end(how func(tx int) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return ErrNoSuchTx
	}
	t.timer.Stop()
	t.over = true
	defer t.l.leave()
	return how(t.number)
}
