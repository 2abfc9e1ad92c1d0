package kv

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

const (
	// findTime is how long a client looks for the leader.
	findTime  = 4 * time.Second
	findAgain = 100 * time.Millisecond
)

// Client reaches the store that leads. Its methods may be called concurrently.
type Client struct {
	HTTP *http.Client
	PD   *PD

	mu     sync.Mutex
	leader string
}

// Tx is an open transaction. It is lost when the leader changes.
type Tx struct {
	c       *Client
	address string
	id      uint64
}

// Read runs a statement that changes nothing.
func (c *Client) Read(ctx context.Context, s Statement) (*Result, error) {
	a, _, err := c.ask(ctx, request{Do: "read", Statements: []Statement{s}})
	if err != nil {
		return nil, err
	}
	return oneOf(a)
}

// Write runs statements as one transaction and returns what came of the last.
func (c *Client) Write(ctx context.Context, statements ...Statement) (*Result, error) {
	a, _, err := c.ask(ctx, request{Do: "write", Statements: statements})
	if err != nil {
		return nil, err
	}
	return oneOf(a)
}

func oneOf(a *reply) (*Result, error) {
	if len(a.Results) == 0 || a.Results[len(a.Results)-1] == nil {
		return nil, errors.New("store: no result")
	}
	return a.Results[len(a.Results)-1], nil
}

// Begin opens a transaction. From now on nobody else reads or writes, until it is committed or rolled back, or nothing
// was done in it for two seconds.
func (c *Client) Begin(ctx context.Context) (Transaction, error) {
	a, address, err := c.ask(ctx, request{Do: "begin"})
	if err != nil {
		return nil, err
	}
	return &Tx{c, address, a.Tx}, nil
}

// Run runs a statement.
func (t *Tx) Run(ctx context.Context, s Statement) (*Result, error) {
	a, err := t.ask(ctx, request{Do: "inside", Tx: t.id, Statements: []Statement{s}})
	if err != nil {
		return nil, err
	}
	return oneOf(a)
}

// Commit makes what was done in the transaction last.
func (t *Tx) Commit(ctx context.Context) error {
	_, err := t.ask(ctx, request{Do: "commit", Tx: t.id})
	return err
}

// Rollback takes it back.
func (t *Tx) Rollback(ctx context.Context) error {
	_, err := t.ask(ctx, request{Do: "rollback", Tx: t.id})
	return err
}

func (t *Tx) ask(ctx context.Context, q request) (*reply, error) {
	a := &reply{}
	if err := post(ctx, t.c.HTTP, "http://"+t.address+pathKV, q, a); err != nil {
		return nil, err
	}
	return a, a.failure()
}

// ask asks the leader, and looks for it if it is not where it was. Nothing that may have been done is asked for twice.
func (c *Client) ask(ctx context.Context, q request) (*reply, string, error) {
	find, cancel := context.WithTimeoutCause(ctx, findTime, ErrUnavailable)
	defer cancel()
	var last error
	for {
		for _, address := range c.candidates(find) {
			a := &reply{}
			err := post(ctx, c.HTTP, "http://"+address+pathKV, q, a)
			if err == nil {
				err = a.failure()
			} else if q.Do == "write" && !refused(err) {
				c.forget(address)
				return nil, "", err // It may have been done.
			}
			var sql *SQLError
			if err == nil || errors.As(err, &sql) || errors.Is(err, ErrLockWait) || errors.Is(err, ErrConflict) {
				c.remember(address)
				return a, address, err
			}
			if errors.Is(err, ErrNotLeader) && a.Leader != "" && a.Leader != address {
				c.remember(a.Leader)
			} else {
				c.forget(address)
			}
			last = err
		}
		select {
		case <-find.Done():
			return nil, "", errors.Join(ErrUnavailable, last)
		case <-time.After(findAgain):
		}
	}
}

// candidates are the stores that may lead: the one that did, or all of them.
func (c *Client) candidates(ctx context.Context) []string {
	c.mu.Lock()
	leader := c.leader
	c.mu.Unlock()
	if leader != "" {
		return []string{leader}
	}
	list, err := c.PD.Stores(ctx)
	if err != nil {
		return nil
	}
	return list
}

func (c *Client) remember(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leader = address
}

func (c *Client) forget(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leader == address {
		c.leader = ""
	}
}
