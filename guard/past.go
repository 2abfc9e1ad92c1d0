package guard

import (
	"context"
	"net/url"
	"strconv"

	k8sfields "k8s.io/apimachinery/pkg/fields"
)

// This file reads what an object was before a write while the write is under way. It asks for the object at the
// revision that the store had before the write was sent, so however the two overtake each other, the write does not
// show in it.

// past is an object at a revision of the store, while it is read and after.
type past struct {
	revision int64
	done     chan struct{} // closed when it is read
	raw      []byte        // nil if there was none
	ok       bool          // whether it could be read
}

// besides reports whether the object before a write can be read while the write is under way. It cannot if something is
// decided by it: whether the write can be taken back, or has room in a transaction.
func (g *Guard) besides(x *exchange) bool {
	switch t := x.target; {
	case g.opts.Revision == nil, t.Group == aggregation, t.Resource == "persistentvolumeclaims",
		!x.from.network && g.InTransaction():
		return false
	default:
		return t.Verb == "update" || t.Verb == "patch"
	}
}

// readBeside begins to read the object as it is now, for [exchange.settlePast] to wait for.
func (x *exchange) readBeside(ctx context.Context, subject target) {
	p := &past{revision: x.guard.opts.Revision(), done: make(chan struct{})}
	x.past = p
	go func() {
		defer close(p.done)
		p.raw, p.ok = x.guard.fetchAt(ctx, subject, p.revision)
	}()
}

// settlePast waits for what is read beside the write. If others have written since, it reads once more, what the object
// was right before the version that the write has made; that is 0 if it has made none, or it is not known.
func (x *exchange) settlePast(ctx context.Context, made int64) {
	p := x.past
	if p == nil {
		return
	}
	<-p.done
	x.past = nil
	x.before, x.lost = p.raw, !p.ok
	if made-1 <= p.revision {
		return
	}
	if raw, ok := x.guard.fetchAt(ctx, x.subject(), made-1); ok {
		x.before, x.lost = raw, false
	}
}

// versionOf is the version of an object, or 0 if it has none that can be counted.
func versionOf(all []field) int64 {
	m, err := fields(valueOr(all, "metadata", "{}"))
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(text(m, "resourceVersion"), 10, 64) // It is 0 for anything else.
	return n
}

// fetchAt reads an object with the lab's rights as it was at a revision of the store. It returns nil if there was none,
// and reports false if that cannot be read. A list of one is the only way that the API has.
func (g *Guard) fetchAt(ctx context.Context, t target, revision int64) ([]byte, bool) {
	query := url.Values{
		"fieldSelector":        {k8sfields.OneTermEqualSelector("metadata.name", t.objectName()).String()},
		"resourceVersion":      {strconv.FormatInt(revision, 10)},
		"resourceVersionMatch": {"Exact"},
	}
	t.Name = ""
	all, err := fields(g.fetch(ctx, t, query))
	if err != nil {
		return nil, false
	}
	items, err := elements(value(all, "items"))
	switch {
	case err != nil || len(items) > 1:
		return nil, false
	case len(items) == 0:
		return nil, true
	}
	o, err := fields(items[0])
	return join(described(all, o)), err == nil
}
