package kv

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"go.etcd.io/raft/v3"
)

const (
	// lockWait is how long a statement waits for the transactions of others, and idleTransaction how long a
	// transaction may do nothing before it is taken back.
	lockWait        = 3 * time.Second
	idleTransaction = 2 * time.Second
)

// Errors of those who ask a store.
var (
	ErrNotLeader   = errors.New("not leader")
	ErrLockWait    = errors.New("lock wait timeout exceeded; try restarting transaction")
	ErrNoSuchTx    = errors.New("the transaction is unknown: it was idle for too long and is rolled back")
	ErrUnavailable = errors.New("region is unavailable")
	ErrTooLarge    = errors.New("transaction is too large")
)

// front lets clients at the data of a store that leads: one after the other.
type front struct {
	store *Store
	gate  chan struct{} // holds one token

	mu   sync.Mutex
	open map[uint64]*transaction
}

// transaction is one that a client has open. It holds the gate.
type transaction struct {
	id         uint64
	number     int // of the engine
	after      uint64
	statements []Statement
	size       int
	timer      *time.Timer
	mu         sync.Mutex // held while it is used
	over       bool
}

func newFront(s *Store) *front {
	f := &front{store: s, gate: make(chan struct{}, 1), open: map[uint64]*transaction{}}
	f.gate <- struct{}{}
	return f
}

// enter waits for its turn.
func (f *front) enter(ctx context.Context) error {
	if !f.leads() {
		return ErrNotLeader
	}
	wait := time.NewTimer(lockWait)
	defer wait.Stop()
	select {
	case <-f.gate:
		if !f.leads() {
			f.leave()
			return ErrNotLeader
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-wait.C:
		return ErrLockWait
	}
}

func (f *front) leave() { f.gate <- struct{}{} }

func (f *front) leads() bool {
	s := f.store
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leader == s.ID && s.current
}

// read runs a statement that changes nothing.
func (f *front) read(ctx context.Context, s Statement) (*Result, error) {
	if changes(s.SQL) {
		return nil, &SQLError{"this statement changes data"}
	}
	if err := f.enter(ctx); err != nil {
		return nil, err
	}
	defer f.leave()
	return f.store.engine.read(ctx, s)
}

// write runs statements as a transaction of their own.
func (f *front) write(ctx context.Context, statements []Statement) ([]*Result, error) {
	id, err := f.begin(ctx)
	if err != nil {
		return nil, err
	}
	var results []*Result
	for _, s := range statements {
		r, err := f.inside(ctx, id, s)
		if err != nil {
			return nil, errors.Join(err, f.rollback(id))
		}
		results = append(results, r)
	}
	return results, f.commit(ctx, id)
}

// begin opens a transaction.
func (f *front) begin(ctx context.Context) (uint64, error) {
	if err := f.enter(ctx); err != nil {
		return 0, err
	}
	s := f.store
	s.mu.Lock()
	after := s.last
	s.mu.Unlock()
	number, err := s.engine.begin(ctx)
	if err != nil {
		f.leave()
		return 0, err
	}
	t := &transaction{id: rand.Uint64()>>1 | 1, number: number, after: after}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open[t.id] = t
	t.timer = time.AfterFunc(idleTransaction, func() { _ = f.rollback(t.id) })
	return t.id, nil
}

// take returns a transaction for use; it is nobody else's until it is given back.
func (f *front) take(id uint64) (*transaction, error) {
	f.mu.Lock()
	t := f.open[id]
	f.mu.Unlock()
	if t == nil {
		return nil, ErrNoSuchTx
	}
	t.mu.Lock()
	if t.over {
		t.mu.Unlock()
		return nil, ErrNoSuchTx
	}
	t.timer.Stop()
	return t, nil
}

// inside runs a statement in a transaction.
func (f *front) inside(ctx context.Context, id uint64, s Statement) (*Result, error) {
	t, err := f.take(id)
	if err != nil {
		return nil, err
	}
	defer t.mu.Unlock()
	defer t.timer.Reset(idleTransaction)
	if t.size += s.size(); t.size > maxCommand {
		return nil, ErrTooLarge
	}
	r, err := f.store.engine.inside(ctx, t.number, s)
	if err == nil && changes(s.SQL) {
		t.statements = append(t.statements, s)
	}
	return r, err
}

// finish ends a transaction that was taken.
func (f *front) finish(t *transaction) {
	t.over = true
	f.mu.Lock()
	delete(f.open, t.id)
	f.mu.Unlock()
	f.leave()
	t.mu.Unlock()
}

func (f *front) rollback(id uint64) error {
	t, err := f.take(id)
	if err != nil {
		return err
	}
	defer f.finish(t)
	if err := f.store.engine.end(t.number); err != nil && !errors.Is(err, errBrokenOff) {
		return err
	}
	return nil
}

// commit has all stores do what was done in a transaction.
func (f *front) commit(ctx context.Context, id uint64) error {
	t, err := f.take(id)
	if err != nil {
		return err
	}
	defer f.finish(t)
	if err := f.store.engine.end(t.number); err != nil {
		return ErrConflict
	}
	if len(t.statements) == 0 {
		return nil
	}
	return f.store.propose(ctx, command{ID: t.id, After: t.after, Statements: t.statements})
}

// propose replicates a command and waits until this store has applied it.
func (s *Store) propose(ctx context.Context, c command) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, proposeTime, ErrUnavailable)
	defer cancel()
	done := make(chan error, 1)
	s.mu.Lock()
	s.waiting[c.ID] = done
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.waiting, c.ID)
		s.mu.Unlock()
	}()
	err = s.change(ctx, func() error { return s.node.Propose(data) })
	if errors.Is(err, raft.ErrProposalDropped) {
		return ErrNotLeader
	}
	if err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// change has the loop do something with the node.
func (s *Store) change(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	select {
	case s.changes <- func() { done <- f() }:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
