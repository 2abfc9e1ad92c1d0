package guard

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/guard/undo"
)

const (
	// maxHistory is how many writes are remembered, and maxRemembered how many bytes of objects. The oldest are
	// forgotten first, but none of an open transaction.
	maxHistory    = 500
	maxRemembered = 64 << 20
	// maxTransaction is how many bytes of objects the writes of a transaction may come to.
	maxTransaction = 48 << 20
)

// history is what the agent has written by its own door, to be taken back. It is safe for concurrent use.
type history struct {
	mu        sync.Mutex
	writes    []*write // in order
	bytes     int64
	forgotten int
	open      *transaction // nil for none
	count     int          // transactions so far
	streams   int          // commands in containers and the like that are under way
	commands  []*command   // those of them whose containers are kept
	// found is the severity that the transaction had begun with which was taken back last, and suffers until when the
	// system may suffer from that.
	found   float64
	suffers time.Time
}

// write is one that was carried out, or may have been.
type write struct {
	undo.Change
	time        time.Time
	transaction int // 0 for none
	size        int64
	undone      bool
	// kept is the container that a command was run in, as it was before, in which pod.
	kept           cloud.Kept
	namespace, pod string
}

// transaction is one that is open.
type transaction struct {
	id       int
	began    time.Time
	used     int      // writes so far, of Window
	severity *float64 // when it began; nil if it is not measured
}

// add remembers a write.
func (h *history) add(w *write) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range slices.Concat(w.Objects, w.Children) {
		w.size += int64(len(o.Before) + len(o.After))
	}
	h.writes, h.bytes = append(h.writes, w), h.bytes+w.size
	for len(h.writes) > 1 && (len(h.writes) > maxHistory || h.bytes > maxRemembered) {
		oldest := h.writes[0]
		if h.open != nil && oldest.transaction == h.open.id {
			return
		}
		h.writes, h.bytes = h.writes[1:], h.bytes-oldest.size
		h.forgotten++
	}
}

// spent is how many bytes the open transaction has come to.
func (h *history) spent() int64 {
	var n int64
	for _, w := range h.writes {
		if h.open != nil && w.transaction == h.open.id {
			n += w.size
		}
	}
	return n
}

// latest returns up to n writes that are not taken back, in order; of a transaction, if its number is not 0.
func (h *history) latest(n, transaction int) []*write {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []*write
	for _, w := range slices.Backward(h.writes) {
		if len(out) < n && !w.undone && (transaction == 0 || w.transaction == transaction) {
			out = append(out, w)
		}
	}
	slices.Reverse(out)
	return out
}

// forget drops the objects of writes that are taken back.
func (h *history) forget(writes []*write) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range writes {
		h.bytes -= w.size
		w.undone, w.size, w.Objects, w.Children, w.kept = true, 0, nil, nil, nil
	}
}

// maxShown is how many writes History shows.
const maxShown = 40

// text is the history for an agent to read.
func (h *history) text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b strings.Builder
	if t := h.open; t != nil {
		fmt.Fprintf(&b, "Transaction %d is open, with %d of %d writes.\n", t.id, t.used, Window)
	} else {
		b.WriteString("No transaction is open.\n")
	}
	from := max(0, len(h.writes)-maxShown)
	switch n := h.forgotten + from; {
	case len(h.writes) == 0:
		b.WriteString("Nothing was written.\n")
	case n > 0:
		fmt.Fprintf(&b, "%d earlier writes are not shown; %d of them are forgotten and cannot be taken back.\n", n,
			h.forgotten)
	}
	for _, w := range h.writes[from:] {
		fmt.Fprintf(&b, "%4d  %s  %s", w.Seq, w.time.Format(time.TimeOnly), w.What)
		if w.transaction > 0 {
			fmt.Fprintf(&b, ", transaction %d", w.transaction)
		}
		switch {
		case w.undone:
			b.WriteString(", taken back")
		case w.Never != "":
			b.WriteString(", cannot be taken back")
		case w.kept != nil:
			b.WriteString(", the container is kept")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// remember keeps a write of the agent's own door that was carried out, or may have been.
func (x *exchange) remember(raw []byte) {
	e, t := x.entry, x.subject()
	carried := e.Status < 300 || e.Status == statusClientGone
	if x.from.network || e.DryRun || e.Undoes != 0 || !carried {
		return
	}
	w := &write{
		time: e.Time, transaction: e.Transaction, kept: x.kept, namespace: e.Namespace, pod: e.Name,
		Change: undo.Change{Seq: e.Seq, What: e.what(), Subresource: t.Subresource, Never: e.Irreversible},
	}
	ref := undo.Ref{
		Group: t.Group, Version: t.Version, Resource: t.Resource, Namespace: t.Namespace, Name: cmp.Or(t.Name, e.Name),
	}
	switch {
	case e.Verb == "connect" && e.Irreversible == "" && x.kept == nil:
		return // It was read only.
	case w.Never != "" || e.Verb == "connect":
	case e.Cut["before"]+e.Cut["after"]+e.Cut["children"] > 0:
		w.Never = "what it was before is too large to be remembered"
	case x.lost:
		w.Never = "what it was before could not be read"
	case e.Status == statusClientGone && e.Verb == "create":
		w.Never = "whether it was created is not known"
	case e.Verb == "deletecollection":
		w.Objects = listed(x.before, ref)
	case t.Subresource == "token":
		w.Never = "a token that was handed out stays valid until it expires"
	default:
		w.Objects = []undo.Object{{Ref: ref, Before: x.bare(x.before, e.Before), After: x.bare(raw, e.After)}}
		w.Children = x.children
	}
	x.guard.history.add(w)
}

// bare is an object without its managed fields. It is the journal's, which is not made again, unless that lacks more.
func (x *exchange) bare(raw, journalled []byte) []byte {
	if journalled != nil && raw != nil && !x.veiled(raw) {
		return journalled
	}
	return withoutManaged(raw)
}

// listed are the objects of a list, as deleted.
func listed(raw []byte, ref undo.Ref) (out []undo.Object) {
	all, err := fields(raw)
	if err != nil {
		return nil
	}
	items, err := elements(value(all, "items"))
	if err != nil {
		return nil
	}
	for _, item := range items {
		var m struct {
			Metadata struct{ Namespace, Name string }
		}
		o, err := fields(item)
		if err != nil || json.Unmarshal(item, &m) != nil {
			continue
		}
		o = described(all, o)
		r := ref
		r.Namespace, r.Name = m.Metadata.Namespace, m.Metadata.Name
		out = append(out, undo.Object{Ref: r, Before: withoutManaged(join(o))})
	}
	return out
}

// described is an object of a list with what it is, which objects in a list do not say.
func described(list, o []field) []field {
	if value(o, "kind") != nil {
		return o
	}
	kind, _ := marshalString(strings.TrimSuffix(text(list, "kind"), "List")) // A string can be written.
	return append([]field{{"kind", kind}, {"apiVersion", value(list, "apiVersion")}}, o...)
}

// withoutManaged is an object without its managed fields, as a copy.
func withoutManaged(raw []byte) []byte {
	if raw == nil {
		return nil
	}
	out, err := edit(raw, func(name string, v []byte) ([]byte, error) {
		if name == "metadata" {
			return without(v, "managedFields")
		}
		return v, nil
	})
	if err != nil {
		return slices.Clone(raw)
	}
	return slices.Clone(out)
}

// owned are the resources whose objects do not come again by themselves when their owner does: the releases of a
// workload.
var owned = map[groupResource]target{
	{"apps", "deployments"}:  {Group: "apps", Version: "v1", Resource: "replicasets"},
	{"apps", "statefulsets"}: {Group: "apps", Version: "v1", Resource: "controllerrevisions"},
	{"apps", "daemonsets"}:   {Group: "apps", Version: "v1", Resource: "controllerrevisions"},
}

// findChildren looks for what goes with an object that is about to be deleted.
func (x *exchange) findChildren(ctx context.Context) {
	t := x.target
	if t.Verb != "delete" || t.Subresource != "" || x.entry.DryRun || x.before == nil {
		return
	}
	if c, ok := owned[groupResource{t.Group, t.Resource}]; ok {
		c.Namespace = t.Namespace
		x.addChildren(ctx, c, object{raw: x.before}.uid())
		return
	}
	if t.Group != "apiextensions.k8s.io" || t.Resource != "customresourcedefinitions" {
		return
	}
	var d struct {
		Spec struct {
			Group    string
			Names    struct{ Plural string }
			Versions []struct {
				Name            string
				Served, Storage bool
			}
		}
	}
	if json.Unmarshal(x.before, &d) != nil {
		return
	}
	for _, v := range d.Spec.Versions {
		if v.Served && v.Storage {
			x.addChildren(ctx, target{Group: d.Spec.Group, Version: v.Name, Resource: d.Spec.Names.Plural}, "")
		}
	}
}

// addChildren lists objects, of an owner if there is a uid.
func (x *exchange) addChildren(ctx context.Context, t target, owner string) {
	var size int64
	raw := x.guard.fetch(ctx, t, nil)
	ref := undo.Ref{Group: t.Group, Version: t.Version, Resource: t.Resource}
	for _, o := range listed(raw, ref) {
		type reference struct{ UID string }
		var m struct {
			Metadata struct{ OwnerReferences []reference }
		}
		if owner == "" || json.Unmarshal(o.Before, &m) == nil &&
			slices.Contains(m.Metadata.OwnerReferences, reference{owner}) {
			x.children = append(x.children, o)
			x.entry.Children = append(x.entry.Children, o.Before)
			size += int64(len(o.Before))
		}
	}
	if size > MaxRecorded {
		x.entry.cut("children", size)
		x.entry.Children = nil
	}
}

// uid is an object's.
func (o object) uid() string {
	var m struct {
		Metadata struct{ UID string }
	}
	_ = json.Unmarshal(o.raw, &m) // What is no object has none.
	return m.Metadata.UID
}
