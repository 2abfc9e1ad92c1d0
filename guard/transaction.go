package guard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/aiopslab/aiopslab/guard/undo"
)

// Window is how many writes a transaction can have.
const Window = 20

const (
	// DefaultWait and MaxWait are how long Commit waits for the system to be no worse than before.
	DefaultWait = 30 * time.Second
	MaxWait     = 5 * time.Minute
	// settle is how long the writes of a transaction have to show in what is measured.
	settle         = 2 * time.Second
	severityPeriod = time.Second
	// undoTimeout is how long it may take to take writes back, however many.
	undoTimeout = 2 * time.Minute
	// recovery is how long a system may still suffer from writes that were taken back: pods start anew.
	recovery = time.Minute
)

// Severity tells how bad a system is. Less is better, and 0 is well.
type Severity interface {
	Severity(ctx context.Context) (float64, error)
}

// Transaction is what came of an action of transactions, for the agent and the record.
type Transaction struct {
	Action string `json:"action"`           // begin, commit, abort or undo
	Number int    `json:"number,omitempty"` // from 1; 0 for an undo outside of a transaction
	Writes int    `json:"writes"`           // that it had, or that were taken back
	// Before and After are the severity, if it is measured, when the transaction began and when it was to be committed.
	Before *float64 `json:"before,omitempty"`
	After  *float64 `json:"after,omitempty"`
	// Aborted says that the writes were taken back, and Left that the agent had left it open.
	Aborted bool           `json:"aborted,omitempty"`
	Left    bool           `json:"left,omitempty"`
	Undone  []undo.Outcome `json:"undone,omitempty"`
	// Differences are what is not as it was, and not explained.
	Differences []string `json:"differences,omitempty"`
	note        string
}

// refusedError is a refusal, in a line that says what to do.
type refusedError struct{ text string }

func (e *refusedError) Error() string { return e.text }

func refuse(format string, args ...any) error { return &refusedError{fmt.Sprintf(format, args...)} }

// lock waits until nobody else writes by the agent's door.
func (g *Guard) lock(ctx context.Context) (unlock func(), err error) {
	select {
	case g.writer <- struct{}{}:
		return func() { <-g.writer }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-g.ctx.Done():
		return nil, errors.New("the guard is closed")
	}
}

// act does an action of transactions as the only writer, and tells of it.
func (g *Guard) act(ctx context.Context, do func(h *history) (*Transaction, error)) (*Transaction, error) {
	if g.shadow != nil {
		return nil, refuse("this is a shadow run: nothing is written, so there is nothing to take back")
	}
	unlock, err := g.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	t, err := do(&g.history)
	if err == nil && g.opts.Transaction != nil {
		g.opts.Transaction(*t)
	}
	return t, err
}

// Begin opens a transaction: what the agent writes from now on is kept if it is committed, and taken back otherwise.
func (g *Guard) Begin(ctx context.Context) (*Transaction, error) {
	return g.act(ctx, func(h *history) (*Transaction, error) {
		if t := h.current(); t != nil {
			return nil, refuse("transaction %d is open already, with %d writes: commit or abort it first", t.id, t.used)
		}
		if n := await(ctx, g.settle, h.streaming); n > 0 {
			return nil, refuse("%d connections into containers are open, whose effects cannot be taken back: end "+
				"them first", n)
		}
		s, note := g.severity(ctx)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.count++
		s = h.reference(s)
		h.open = &transaction{id: h.count, began: time.Now(), severity: s}
		return &Transaction{Action: "begin", Number: h.count, Before: s, note: note}, nil
	})
}

// severity measures, if that can be done. The note says why not.
func (g *Guard) severity(ctx context.Context) (s *float64, note string) {
	if g.opts.Severity == nil {
		return nil, "Severity is not measured here."
	}
	v, err := g.opts.Severity.Severity(ctx)
	if err != nil {
		return nil, "Severity could not be measured: " + err.Error() + "."
	}
	return &v, ""
}

// Commit closes the open transaction and keeps its writes, if the system is no worse than when it began, or becomes so
// within a time. Otherwise it is aborted.
func (g *Guard) Commit(ctx context.Context, wait time.Duration) (*Transaction, error) {
	return g.act(ctx, func(h *history) (*Transaction, error) {
		t := h.current()
		if t == nil {
			return nil, errNotOpen
		}
		if n := await(ctx, g.settle, func() int { return len(h.running("")) }); n > 0 {
			return nil, refuse("%d commands in containers still run: end them first, or abort", n)
		}
		out := &Transaction{Action: "commit", Number: t.id, Writes: t.used, Before: t.severity}
		if t.severity != nil && t.used > 0 {
			worse, err := g.worse(ctx, t, wait, out)
			if err != nil {
				return nil, err
			}
			if worse {
				g.takeBack(h, out, t.id, maxHistory)
				h.suffer(t)
				out.Aborted = true
			}
		}
		h.shut()
		return out, nil
	})
}

var errNotOpen = refuse("no transaction is open: begin one first")

// worse waits until a system is no worse than when a transaction began, and reports whether it still is.
func (g *Guard) worse(ctx context.Context, t *transaction, wait time.Duration, out *Transaction) (bool, error) {
	deadline := time.Now().Add(min(max(wait, 0), MaxWait))
	pause := g.settle
	for {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false, fmt.Errorf("the transaction is still open: %w", context.Cause(ctx))
		case <-g.ctx.Done():
			return false, errors.New("the guard is closed")
		}
		out.After, out.note = g.severity(ctx)
		if out.After != nil && *out.After <= *t.severity {
			return false, nil
		}
		if time.Now().After(deadline) {
			return true, nil
		}
		pause = severityPeriod
	}
}

// Abort closes the open transaction and takes its writes back.
func (g *Guard) Abort(ctx context.Context) (*Transaction, error) {
	return g.act(ctx, func(h *history) (*Transaction, error) {
		t := h.current()
		if t == nil {
			return nil, errNotOpen
		}
		out := &Transaction{Action: "abort", Number: t.id, Writes: t.used, Before: t.severity, Aborted: true}
		g.takeBack(h, out, t.id, maxHistory)
		h.suffer(t)
		h.shut()
		return out, nil
	})
}

// Leave aborts the transaction that the agent has left open. It returns nil if there is none. It is for after
// [Guard.Shut].
func (g *Guard) Leave(ctx context.Context) (*Transaction, error) {
	if g.shadow != nil || g.history.current() == nil {
		return nil, nil
	}
	return g.act(ctx, func(h *history) (*Transaction, error) {
		t := h.current()
		out := &Transaction{
			Action: "abort", Number: t.id, Writes: t.used, Before: t.severity, Aborted: true, Left: true,
		}
		g.takeBack(h, out, t.id, maxHistory)
		h.shut()
		return out, nil
	})
}

// Undo takes back the last n writes that are not taken back yet; in a transaction, of those that it has.
func (g *Guard) Undo(ctx context.Context, n int) (*Transaction, error) {
	return g.act(ctx, func(h *history) (*Transaction, error) {
		if n < 1 {
			return nil, refuse("the number of writes to take back must be at least 1, not %d", n)
		}
		out := &Transaction{Action: "undo"}
		if t := h.current(); t != nil {
			out.Number = t.id
		}
		switch had := len(h.latest(maxHistory, out.Number)); {
		case had == 0 && out.Number > 0:
			return nil, refuse("transaction %d has no write that could be taken back", out.Number)
		case had == 0:
			return nil, refuse("there is no write that could be taken back")
		case had < n:
			out.note = fmt.Sprintf("There were only %d to take back.", had)
		}
		g.takeBack(h, out, out.Number, n)
		return out, nil
	})
}

// takeBack takes the last n writes back, from the latest to the earliest, and compares.
func (g *Guard) takeBack(h *history, out *Transaction, transaction, n int) {
	ctx, cancel := context.WithTimeout(g.ctx, undoTimeout) // An agent that leaves does not leave it half done.
	defer cancel()
	writes := h.latest(n, transaction)
	r := &restorer{guard: g}
	g.undoer.Use(r)
	var changes []undo.Change
	kept := h.keptOf(writes)
	for _, w := range slices.Backward(writes) {
		r.seq = w.Seq
		if kept[w] != nil {
			out.Undone = append(out.Undone, g.putBack(ctx, h, w, kept))
			continue
		}
		out.Undone = append(out.Undone, g.undoer.Undo(ctx, w.Change))
	}
	for _, w := range writes {
		changes = append(changes, w.Change)
	}
	var err error
	if out.Differences, err = g.undoer.Verify(ctx, changes); err != nil {
		out.Differences = append(out.Differences, err.Error())
	}
	if out.Action == "undo" {
		out.Writes = len(writes)
	}
	h.forget(writes)
}

// History is what the agent has written, for it to read.
func (g *Guard) History() string { return g.history.text() }

// InTransaction reports whether a transaction is open.
func (g *Guard) InTransaction() bool { return g.history.current() != nil }

// Restrained reports whether a transaction is open that refuses what cannot be taken back, as one does unless the
// policy allows it.
func (g *Guard) Restrained() bool { return g.InTransaction() && !g.opts.Policy.InTransactions() }

func (h *history) current() *transaction {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open
}

func (h *history) shut() {
	h.unkeep("its transaction is over, and what was in the container before is kept no longer", false)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = nil
}

// suffer notes that a transaction was taken back, and with how bad a system it had begun.
func (h *history) suffer(t *transaction) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.severity != nil && t.used > 0 {
		h.found, h.suffers = *t.severity, time.Now().Add(recovery)
	}
}

// reference is what a transaction that begins with a severity is held against: that, or what one had begun with that
// was just taken back. Otherwise who makes a system worse, and takes it back, could keep as bad a change while the
// system recovers.
func (h *history) reference(s *float64) *float64 {
	if s == nil || time.Now().After(h.suffers) || h.found >= *s {
		return s
	}
	found := h.found
	return &found
}

func (h *history) streaming() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.streams
}

// stream counts a connection into a container in, and out by the function that it returns. It is refused in a
// transaction if it may do more than read, unless the policy allows that.
func (h *history) stream(e *Entry, allowed bool) (end func(), refused *apierrors.StatusError) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open != nil {
		e.Transaction = h.open.id
	}
	if e.Irreversible == "" {
		return func() {}, nil
	}
	if h.open != nil && !allowed {
		return func() {}, inTransaction(h.open.id, e.Irreversible)
	}
	h.streams++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.streams--
	}, nil
}

// inTransaction refuses what cannot be taken back.
func inTransaction(id int, why string) *apierrors.StatusError {
	return newStatus(http.StatusForbidden, metav1.StatusReasonForbidden,
		"transaction %d is open, and %s: commit or abort the transaction first", id, why)
}

// take admits a write to the open transaction, if there is one and it has room. Allowed says that it may be one that
// cannot be taken back.
func (h *history) take(e *Entry, size int64, allowed bool) *apierrors.StatusError {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.open
	if t == nil || e.DryRun {
		return nil
	}
	e.Transaction = t.id
	switch {
	case e.Irreversible != "" && !allowed:
		return inTransaction(t.id, e.Irreversible)
	case size > MaxRecorded:
		return inTransaction(t.id, "what is written is too large to be remembered, so it could not be taken back")
	case h.spent()+size > maxTransaction:
		return inTransaction(t.id, "its writes are too large together to be remembered, so this one could not be "+
			"taken back")
	case t.used >= Window:
		return newStatus(http.StatusForbidden, metav1.StatusReasonForbidden,
			"transaction %d is full: it has %d writes, and may have no more. Commit or abort it first", t.id, Window)
	}
	t.used++
	return nil
}

// giveBack makes the room of a write that was not carried out free again.
func (h *history) giveBack(transaction int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open != nil && h.open.id == transaction {
		h.open.used--
	}
}

// String is for the agent to read. It says whether a system is worse, not how bad it is: that would tell whether there
// is anything to find.
func (t *Transaction) String() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	switch {
	case t.Action == "begin":
		line("Transaction %d has begun. It can have %d writes. commit keeps them if the system is no worse then; "+
			"abort takes them back, and so does submit. What cannot be taken back is refused until then.", t.Number,
			Window)
	case t.Action == "commit" && t.Aborted:
		line("Transaction %d is aborted, not committed: the system is worse than when it began.", t.Number)
	case t.Action == "commit" && t.After != nil:
		line("Transaction %d is committed, with %d writes: the system is no worse than when it began.", t.Number,
			t.Writes)
	case t.Action == "commit":
		line("Transaction %d is committed, with %d writes.", t.Number, t.Writes)
	case t.Action == "abort":
		line("Transaction %d is aborted.", t.Number)
	}
	if t.note != "" {
		line("%s", t.note)
	}
	left := 0
	for _, o := range t.Undone {
		line("%4d  %s: %s", o.Seq, o.What, o.Text)
		for _, l := range o.Left {
			line("      not restored: %s", l)
		}
		left += len(o.Left)
	}
	for _, d := range t.Differences {
		line("      differs: %s", d)
	}
	switch n := len(t.Undone); {
	case n == 0 && t.Aborted:
		line("There was nothing to take back.")
	case n > 0 && left+len(t.Differences) == 0:
		line("%d writes were taken back. All that they changed is as it was, but for uids, versions, times and "+
			"status.", n)
	case n > 0:
		line("%d writes were taken back, but for what is said above.", n)
	}
	return b.String()
}
