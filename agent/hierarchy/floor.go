package hierarchy

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/aiopslab/aiopslab/aci"
)

// floor is where the members make their calls: one at a time, in the order in which they asked. A member asks for
// one call and waits for what came of it, so nobody gets two turns while another waits for its first.
type floor struct {
	steps int    // how many calls there are in all, or on call from one answer to the next; 0 is no limit
	chief string // for whom the last call is kept
	made  atomic.Int64
	// moves counts whatever shows that somebody is at work.
	moves atomic.Int64

	mu      sync.Mutex
	queue   []*ask        // who waits, in order
	wake    chan struct{} // somebody has come
	current *ask          // whose call is under way
	pages   string        // what the pager has said that nobody took yet
}

// ask is a call that a member wants to make.
type ask struct {
	who, response string
	answer        chan string // one observation
}

// errClosed is the error of a call that nobody makes any more.
var errClosed = errors.New("the group's turn is over")

func newFloor(steps int, chief string) *floor {
	return &floor{steps: steps, chief: chief, wake: make(chan struct{}, 1)}
}

// usedUp is what comes of a call that is kept for the submission.
const usedUp = "Not done: the calls of the group are used up, but for the submission. Report what you know."

// call makes a call and returns what came of it. What the pager says beside that is kept for who leads.
func (f *floor) call(ctx context.Context, who, response string) (string, error) {
	if who != f.chief && f.left() < 2 {
		return usedUp, ctx.Err()
	}
	a := &ask{who, named(who, response), make(chan string, 1)}
	f.mu.Lock()
	f.queue = append(f.queue, a)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
	select {
	case text := <-a.answer:
		f.moves.Add(1)
		text, pages := aci.CutPages(text)
		f.page(pages)
		return trim(text), nil
	case <-ctx.Done():
		f.mu.Lock()
		defer f.mu.Unlock()
		f.queue = slices.DeleteFunc(f.queue, func(b *ask) bool { return a == b })
		return "", ctx.Err()
	}
}

// next hands the observation to whoever made the last call, and waits for the next one.
func (f *floor) next(ctx context.Context, observation string, ended <-chan struct{}) (*ask, error) {
	f.mu.Lock()
	if f.current != nil {
		f.current.answer <- observation
		f.current = nil
	}
	f.mu.Unlock()
	for {
		if a := f.first(); a != nil {
			return a, nil
		}
		select {
		case <-f.wake:
		case <-ended:
			return nil, errClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// first takes whoever has waited longest, or nobody.
func (f *floor) first() *ask {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queue) == 0 {
		return nil
	}
	f.current, f.queue = f.queue[0], f.queue[1:]
	f.made.Add(1)
	f.moves.Add(1)
	return f.current
}

// left is how many calls can still be made; many if nobody said.
func (f *floor) left() int {
	if f.steps == 0 {
		return 1 << 30
	}
	return max(0, f.steps-int(f.made.Load()))
}

// renew begins to count anew: who is on call has so many calls from one answer to the next.
func (f *floor) renew() { f.made.Store(0) }

// page keeps what the pager says.
func (f *floor) page(text string) {
	if text = aci.Paged(text); text == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pages = strings.TrimSpace(f.pages + "\n" + text)
}

// paged takes what the pager has said since it was last taken; "" if it has not called.
func (f *floor) paged() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := f.pages
	f.pages = ""
	return text
}

// trim takes from an observation what asks for the next action.
func trim(text string) string {
	text = strings.TrimRight(text, " \n")
	return strings.TrimRight(strings.TrimSuffix(text, aci.NextAction), "\n")
}

// named is a response that says whose it is, unless it would be read otherwise then.
func named(who, response string) string {
	head := "[" + who + "] "
	signed := head + response
	if rest, ok := strings.CutPrefix(response, "Thought: "); ok {
		signed = "Thought: " + head + rest
	}
	before, err := aci.Parse(response)
	after, err2 := aci.Parse(signed)
	if err != nil || err2 != nil || before.Name != after.Name || !reflect.DeepEqual(before.Args, after.Args) ||
		!reflect.DeepEqual(before.Kwargs, after.Kwargs) {
		return response
	}
	return signed
}
