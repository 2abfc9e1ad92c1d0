package session

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/aiopslab/aiopslab/guard"
)

// Desk is where the questions of a run's policy lie until somebody answers them, who may come from anywhere. A question
// that nobody answers in time is refused. It is for one run, and safe for concurrent use.
type Desk struct {
	over    context.Context // ends with the run
	end     context.CancelFunc
	closed  chan struct{} // closed when everything is refused
	mu      sync.Mutex
	why     string // everything is refused; empty if it is not
	waiting map[int]*lying
	changed chan struct{} // closed when waiting changes, which then has another
}

// lying is a question without an answer.
type lying struct {
	Approval
	answer chan guard.Answer
	taken  chan error // whether somebody still waited for the answer
}

// NewDesk makes a desk for a run.
func NewDesk() *Desk {
	d := &Desk{waiting: map[int]*lying{}, changed: make(chan struct{}), closed: make(chan struct{})}
	d.over, d.end = context.WithCancel(context.Background())
	return d
}

// ErrNoQuestion is the error of an answer to what is not asked: it never was, has its answer, or took too long.
var ErrNoQuestion = errors.New("there is no such question, or it has its answer already")

// Questions are those without an answer, in the order in which they were asked.
func (d *Desk) Questions() []Approval {
	list, _ := d.Watch()
	return list
}

// Watch returns the questions without an answer, and a channel that is closed when they are others.
func (d *Desk) Watch() ([]Approval, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]Approval, 0, len(d.waiting))
	for _, q := range slices.SortedFunc(maps.Values(d.waiting), func(a, b *lying) int {
		return cmp.Compare(a.Number, b.Number)
	}) {
		out = append(out, q.Approval)
	}
	return out, d.changed
}

// change tells who watches that the questions are others. The caller holds the lock.
func (d *Desk) change() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// Answer answers a question, once. It returns when the answer has arrived, and [ErrNoQuestion] if nobody waits for it.
func (d *Desk) Answer(ctx context.Context, number int, a guard.Answer) error {
	d.mu.Lock()
	q := d.waiting[number]
	if q != nil {
		delete(d.waiting, number)
		d.change()
	}
	d.mu.Unlock()
	if q == nil {
		return ErrNoQuestion
	}
	q.answer <- a
	select {
	case err := <-q.taken:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Refuse refuses the questions that wait, and from now on all others, for a reason. The first reason counts.
func (d *Desk) Refuse(why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.why == "" {
		d.why = why
		close(d.closed)
	}
}

// Lay puts a question on the desk, waits for the answer, and hands it to who has asked.
func (d *Desk) Lay(ctx context.Context, q Approval, hand func(guard.Answer) error) {
	l := &lying{Approval: q, answer: make(chan guard.Answer, 1), taken: make(chan error, 1)}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.over, cancel)()
	d.mu.Lock()
	d.waiting[q.Number] = l
	d.change()
	d.mu.Unlock()
	select {
	case a := <-l.answer:
		l.take(a, hand)
	case <-d.closed:
		if d.withdraw(l) {
			_ = hand(guard.Answer{Why: d.why}) // Who wanted it may have left.
			return
		}
		l.take(<-l.answer, hand)
	case <-ctx.Done():
		if !d.withdraw(l) {
			l.taken <- ErrNoQuestion
		}
	}
}

// withdraw takes a question off the desk, unless its answer came just now.
func (d *Desk) withdraw(l *lying) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting[l.Number] != l {
		return false
	}
	delete(d.waiting, l.Number)
	d.change()
	return true
}

// take hands the answer to who has asked, and tells who gave it whether it arrived.
func (l *lying) take(a guard.Answer, hand func(guard.Answer) error) {
	err := hand(a)
	if err != nil {
		err = errors.Join(ErrNoQuestion, err)
	}
	l.taken <- err
}
