package guard

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/guard/undo"
)

// This file takes back what no write to the API shows: what commands do in containers. Where the cloud can keep a
// container, it is kept before each command of a transaction that may do more than read, and to take the command back
// is to put the container back to that moment. It is a restart of one container, which an agent can have at any time:
// so it cures nothing that the agent could not cure, and leaves all else as it is.
//
// How that could be abused, and what is done about it:
//
//   - Many commands, large volumes: a command takes a place in the window of the transaction, the cloud refuses what is
//     too large, and all that is kept for a transaction has a limit.
//   - A command that goes on when the transaction ends: a commit is refused until it has ended, an abort breaks it off.
//   - A fault that comes while a container is kept: to put it back would cure the fault, see [Guard.Unkeep].
//   - An undo after the commit, which would take away what others have written for as long as one likes: what was kept
//     is forgotten with the transaction.

// maxKept is how many bytes of containers may be kept for a transaction.
const maxKept = 256 << 20

// command is one in a container that was kept for it.
type command struct {
	container string // its ID, see cloud.Kept
	cancel    context.CancelFunc
	over      chan struct{} // closed when its connection has ended
}

// keeps reports whether this is a command that a container can be kept for.
func (x *exchange) keeps() bool {
	e := x.entry
	return x.guard.opts.Keeper != nil && e.Irreversible != "" && e.Group == "" && e.Resource == "pods" &&
		e.Subresource == "exec" && x.guard.history.current() != nil
}

// keep has the container kept in which a command is about to be run, if a transaction is open. Nobody else writes until
// the command has begun. End is nil if the container is not kept, and need not be.
func (x *exchange) keep(r *http.Request, allowed bool) (end func(), refused *apierrors.StatusError) {
	g, e := x.guard, x.entry
	h := &g.history
	unlock, err := g.lock(r.Context())
	if err != nil {
		return nil, unavailable()
	}
	if h.current() == nil { // It has ended meanwhile.
		unlock()
		return nil, nil
	}
	if refused := h.take(e, 0, true); refused != nil {
		unlock()
		return nil, refused
	}
	kept, err := g.opts.Keeper.Keep(r.Context(), cloud.Command{
		Namespace: e.Namespace, Pod: e.Name, Container: r.URL.Query().Get("container"), Args: e.Command,
	})
	if err == nil && h.keptBytes()+kept.Size() > maxKept {
		err = fmt.Errorf("more than %d MB would be kept for the transaction", maxKept>>20)
	}
	if err != nil {
		id := e.Transaction
		h.giveBack(id)
		unlock()
		if allowed {
			return nil, nil
		}
		return nil, inTransaction(id, "what a command does in this container cannot be taken back: "+oneLine(err))
	}
	x.kept, x.unlock, x.taken = kept, unlock, true
	e.Kept, e.Irreversible = kept.Name(), ""
	ctx, cancel := context.WithCancel(r.Context())
	*r = *r.WithContext(ctx)
	return h.runs(&command{kept.ID(), cancel, make(chan struct{})}), nil
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// runs counts a command in, and out by the function that it returns.
func (h *history) runs(c *command) (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.commands = append(h.commands, c)
	h.streams++
	return func() {
		c.cancel()
		h.mu.Lock()
		defer h.mu.Unlock()
		h.commands = slices.DeleteFunc(h.commands, func(other *command) bool { return other == c })
		h.streams--
		close(c.over)
	}
}

// running are the commands whose containers were kept, in one container if there is an ID.
func (h *history) running(container string) []*command {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(h.commands), func(c *command) bool {
		return container != "" && c.container != container
	})
}

// await waits, for a time, until something has ended, and returns how many of it have not. A client may know of the end
// of its command a moment before the guard does.
func await(ctx context.Context, patience time.Duration, open func() int) int {
	deadline := time.Now().Add(patience)
	for open() > 0 && ctx.Err() == nil && time.Now().Before(deadline) {
		time.Sleep(awaitPoll)
	}
	return open()
}

const awaitPoll = 2 * time.Millisecond

// keptBytes is how much is kept.
func (h *history) keptBytes() (n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.writes {
		if w.kept != nil {
			n += w.kept.Size()
		}
	}
	return n
}

// unkeep forgets what is kept of containers. What was done in them cannot be taken back any more. Excused is whether
// that is the lab's doing.
func (h *history) unkeep(why string, excused bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.writes {
		if w.kept != nil {
			w.kept, w.Never, w.Excused = nil, why, excused
		}
	}
}

// Unkeep is to be called before and after the lab itself changes what runs in containers, for a fault: to put one back
// that was kept before would take that with it. Commands in containers so far cannot be taken back any more.
func (g *Guard) Unkeep() {
	g.history.unkeep("somebody else has changed what was in the container since, so it is left as it is", true)
}

// keptOf is what was kept for writes. The lab may have it forgotten meanwhile.
func (h *history) keptOf(writes []*write) map[*write]cloud.Kept {
	h.mu.Lock()
	defer h.mu.Unlock()
	kept := map[*write]cloud.Kept{}
	for _, w := range writes {
		if w.kept != nil {
			kept[w] = w.kept
		}
	}
	return kept
}

// putBack takes a command in a container back. All is what was kept for whatever is taken back with it: of several
// commands in a container the first has what was there before all of them.
func (g *Guard) putBack(ctx context.Context, h *history, w *write, all map[*write]cloud.Kept) undo.Outcome {
	o := undo.Outcome{Seq: w.Seq, What: w.What}
	kept, first := all[w], w
	if to := kept.Elsewhere(); len(to) > 0 {
		o.Left = append(o.Left, "what the command has sent to "+strings.Join(to, ", "))
	}
	id, name := kept.ID(), kept.Name()
	for other, k := range all {
		if k.ID() == id && other.Seq < first.Seq {
			first = other
		}
	}
	if first != w {
		o.Text = fmt.Sprintf("the container is put back with %d", first.Seq)
		return o
	}
	for _, c := range h.running(id) {
		c.cancel()
		select {
		case <-c.over:
		case <-ctx.Done():
		}
	}
	e := &Entry{
		Time: time.Now().UTC(), Verb: "restore", Version: "v1", Resource: "pods", Subresource: "exec",
		Namespace: w.namespace, Name: w.pod, Kept: name, Undoes: w.Seq, Status: http.StatusOK,
	}
	done, err := kept.PutBack(ctx)
	o.Text = done
	if err != nil {
		o.Left = append(o.Left, fmt.Sprintf("container %s: %s", name, oneLine(err)))
		e.Status, e.Error = http.StatusInternalServerError, oneLine(err)
	}
	g.journal.add(e)
	return o
}
