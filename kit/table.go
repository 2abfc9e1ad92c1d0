package kit

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Table is a process table of programs that are functions: it numbers, lists and signals those that see each
// other. A table may be inside another, as a PID namespace is; its programs have an ID in both. Its owner finds
// programs by their names and passes them to Fork or Begin.
//
// Its methods may be called at the same time.
type Table struct {
	// Most is how many programs Fork has run at a time; 0 is any number.
	Most int

	mu    *sync.Mutex // one for a table and those inside it
	outer *Table
	last  int // the ID that was given last
	all   map[int]*Running
}

// initPID is the ID of the first program, to which belongs what others leave behind.
const initPID = 1

// NewTable returns a table whose first program has the given ID.
func NewTable(first int) *Table {
	return &Table{mu: &sync.Mutex{}, last: first - 1, all: map[int]*Running{}}
}

// Inside returns a table for programs that do not see the others of t, but are seen by them.
func (t *Table) Inside() *Table {
	return &Table{mu: t.mu, outer: t, all: map[int]*Running{}}
}

// IDs are what a program is known by, in its table and in those around it.
type IDs map[*Table]int

// Fork implements Forker. It returns EAGAIN if there is no place.
func (t *Table) Fork(ctx context.Context, env *Env, program Program) (Process, error) {
	p := &Running{Info: ProcessInfo{Parent: env.PID}}
	t.mu.Lock()
	if t.Most > 0 && len(t.all) >= t.Most {
		t.mu.Unlock()
		return nil, syscall.EAGAIN
	}
	ctx = p.prepare(ctx, env)
	p.Parent = t.all[env.PID]
	t.enter(p, nil)
	t.mu.Unlock()
	p.begin(ctx, env, program, nil)
	return p, nil
}

// Begin runs a program that has the given IDs, or else new ones. P has what its starter says of it. When the
// program has ended, ended decides about its exit code, unless it is nil.
func (t *Table) Begin(ctx context.Context, p *Running, ids IDs, env *Env, program Program, ended func(code int) int) {
	ctx = p.prepare(ctx, env)
	t.Add(p, ids)
	p.begin(ctx, env, program, ended)
}

// Add lists a program that somebody else runs, if anybody does.
func (t *Table) Add(p *Running, ids IDs) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.enter(p, ids)
}

// enter lists a program under the given IDs, or else under new ones, here and around.
func (t *Table) enter(p *Running, ids IDs) {
	p.table, p.ids = t, IDs{}
	for in := t; in != nil; in = in.outer {
		id := ids[in]
		if id == 0 {
			id = in.last + 1
		}
		in.last = max(in.last, id)
		p.ids[in], in.all[id] = id, p
	}
}

// Remove takes a program off the lists, if no other has taken its place. Those it started belong to the first
// program from then on.
func (t *Table) Remove(p *Running) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for in, id := range p.ids {
		if in.all[id] == p {
			delete(in.all, id)
		}
	}
	for _, child := range t.all {
		if child.Parent == p {
			child.Parent = t.all[initPID]
		}
	}
}

// Get returns the program with an ID and what the table shows of it; nil if there is none.
func (t *Table) Get(pid int) (*Running, ProcessInfo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.all[pid]
	if p == nil {
		return nil, ProcessInfo{}
	}
	return p, p.seen(t)
}

// All returns the programs, in no order.
func (t *Table) All() []*Running {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]*Running, 0, len(t.all))
	for _, p := range t.all {
		list = append(list, p)
	}
	return list
}

// Family returns a program and those of its table, among some, that it has started, or they have.
func (t *Table) Family(root *Running, among func(*Running) bool) []*Running {
	t.mu.Lock()
	defer t.mu.Unlock()
	family := []*Running{root}
	for i := 0; i < len(family); i++ {
		for _, p := range t.all {
			if p.Parent == family[i] && among(p) && !slices.Contains(family, p) {
				family = append(family, p)
			}
		}
	}
	return family
}

// List returns the programs by ID.
func (t *Table) List() []ProcessInfo {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]ProcessInfo, 0, len(t.all))
	for _, p := range t.all {
		list = append(list, p.seen(t))
	}
	slices.SortFunc(list, func(a, b ProcessInfo) int { return cmp.Compare(a.PID, b.PID) })
	return list
}

// Signal does what the kernel would: nobody ends process 1 with a signal that it does not handle.
func (t *Table) Signal(pid int, sig syscall.Signal) error {
	p, _ := t.Get(pid)
	switch {
	case p == nil:
		return syscall.ESRCH
	case pid != initPID || sig == syscall.SIGKILL || p.handles():
		p.Signal(sig)
	}
	return nil
}

// SignalAs delivers a signal of a user, who needs the right to. PID -1 is everybody but the first program.
func (t *Table) SignalAs(from User, pid int, sig syscall.Signal) error {
	t.mu.Lock()
	var targets []*Running
	for id, p := range t.all {
		if id == pid || pid == -1 && id != initPID {
			targets = append(targets, p)
		}
	}
	t.mu.Unlock()
	err := error(syscall.ESRCH)
	for _, p := range targets {
		switch {
		case from.UID != 0 && from.UID != p.Info.User.UID, p.End == nil && sig != 0: // What nobody ends goes on.
			if errors.Is(err, syscall.ESRCH) {
				err = syscall.EPERM
			}
		default:
			p.Signal(sig)
			err = nil
		}
	}
	return err
}

// Stop kills every program and waits for its end, but no longer than patience. It reports whether all have
// ended.
func (t *Table) Stop(patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		all := t.All()
		if len(all) == 0 {
			return true
		}
		for _, p := range all {
			p.Signal(syscall.SIGKILL)
		}
		select {
		case <-all[0].done:
		case <-timer.C:
			return false
		}
	}
}
