package undo

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// fake is an API in memory: it has uids, resource versions, finalizers, immutable objects and a garbage collector.
type fake struct {
	objects map[Ref]map[string]any
	n       int
	busy    int // how many updates are refused because somebody else writes
	writes  int
}

func newFake() *fake { return &fake{objects: map[Ref]map[string]any{}} }

func clone(o map[string]any) map[string]any {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return decode(b)
}

func (f *fake) next() string { f.n++; return fmt.Sprint(f.n) }

func status(r Ref) schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Resource}
}

func (f *fake) Get(_ context.Context, r Ref) (map[string]any, error) {
	if o := f.objects[r]; o != nil {
		return clone(o), nil
	}
	return nil, nil
}

func (f *fake) Create(_ context.Context, r Ref, o map[string]any) (map[string]any, error) {
	f.writes++
	if f.objects[r] != nil {
		return nil, apierrors.NewAlreadyExists(status(r), r.Name)
	}
	if o["spec"] != nil && spec(o)["clusterIP"] == "taken" {
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, r.Name, nil)
	}
	o = clone(o)
	if metadata(o) == nil {
		o["metadata"] = map[string]any{}
	}
	m := metadata(o)
	if m["uid"] != nil || m["resourceVersion"] != nil {
		return nil, apierrors.NewBadRequest("uid and resourceVersion must not be set")
	}
	m["name"], m["uid"], m["resourceVersion"], m["creationTimestamp"] = r.Name, "uid-"+f.next(), f.next(), f.next()
	m["managedFields"] = []any{f.next()}
	f.objects[r] = o
	return clone(o), nil
}

func (f *fake) Update(_ context.Context, r Ref, subresource string, o map[string]any) (map[string]any, error) {
	f.writes++
	now := f.objects[r]
	if now == nil {
		return nil, apierrors.NewNotFound(status(r), r.Name)
	}
	if f.busy > 0 {
		f.busy--
		metadata(now)["resourceVersion"] = f.next()
	}
	if meta(o, "resourceVersion") != "" && meta(o, "resourceVersion") != meta(now, "resourceVersion") {
		return nil, apierrors.NewConflict(status(r), r.Name, nil)
	}
	if now["immutable"] == true && (o["immutable"] != true || !equal(now["data"], o["data"])) {
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, r.Name, nil)
	}
	o = clone(o)
	if subresource == "status" {
		s := o["status"]
		o = clone(now)
		o["status"] = s
	} else {
		o["status"] = now["status"]
	}
	metadata(o)["resourceVersion"], metadata(o)["uid"] = f.next(), uid(now)
	f.objects[r] = o
	if terminating(o) && len(finalizers(o)) == 0 {
		f.drop(r)
	}
	return clone(o), nil
}

func (f *fake) Delete(_ context.Context, r Ref, d Deletion) error {
	f.writes++
	now := f.objects[r]
	if now == nil {
		return apierrors.NewNotFound(status(r), r.Name)
	}
	if d.UID != "" && d.UID != uid(now) {
		return apierrors.NewConflict(status(r), r.Name, nil)
	}
	if d.Orphan {
		for _, o := range f.objects {
			if owns(uid(now), o) {
				delete(metadata(o), "ownerReferences")
			}
		}
	}
	if len(finalizers(now)) > 0 {
		metadata(now)["deletionTimestamp"] = f.next()
		return nil
	}
	f.drop(r)
	return nil
}

func owns(id string, o map[string]any) bool {
	return slices.ContainsFunc(owners(o), func(v any) bool { return v.(map[string]any)["uid"] == id })
}

// drop removes an object and what it owns.
func (f *fake) drop(r Ref) {
	id := uid(f.objects[r])
	delete(f.objects, r)
	for _, other := range slices.Collect(maps.Keys(f.objects)) {
		if owns(id, f.objects[other]) {
			f.drop(other)
		}
	}
}

func raw(o map[string]any) []byte {
	if o == nil {
		return nil
	}
	b, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return b
}

// write does something to an object and returns it as a change.
func (f *fake) write(t testing.TB, r Ref, do func() error) Change {
	t.Helper()
	before, _ := f.Get(t.Context(), r)
	if err := do(); err != nil {
		t.Fatal(err)
	}
	after, _ := f.Get(t.Context(), r)
	f.n++
	return Change{Seq: f.n, What: "write " + r.Name, Objects: []Object{{Ref: r, Before: raw(before), After: raw(after)}}}
}

func (f *fake) create(t testing.TB, r Ref, doc string) Change {
	t.Helper()
	return f.write(t, r, func() error { _, err := f.Create(t.Context(), r, decode([]byte(doc))); return err })
}

func (f *fake) delete(t testing.TB, r Ref) Change {
	t.Helper()
	return f.write(t, r, func() error { return f.Delete(t.Context(), r, Deletion{}) })
}

// set sets a field by its path; nil removes it.
func (f *fake) set(t testing.TB, r Ref, path string, v any) Change {
	t.Helper()
	return f.write(t, r, func() error {
		o, _ := f.Get(t.Context(), r)
		setField(o, path, v)
		_, err := f.Update(t.Context(), r, "", o)
		return err
	})
}

func setField(o map[string]any, path string, v any) {
	parts := strings.Split(path, ".")
	for _, p := range parts[:len(parts)-1] {
		next, _ := o[p].(map[string]any)
		if next == nil {
			next = map[string]any{}
			o[p] = next
		}
		o = next
	}
	if last := parts[len(parts)-1]; v == nil {
		delete(o, last)
	} else {
		o[last] = v
	}
}

// state is all there is, as it is compared.
func (f *fake) state() map[string]any {
	out := map[string]any{}
	for r, o := range f.objects {
		out[r.String()] = judged(o)
	}
	return decode(raw(out))
}

func cm(name string) Ref {
	return Ref{Version: "v1", Resource: "configmaps", Namespace: "shop", Name: name}
}

func ref(group, resource, name string) Ref {
	return Ref{Group: group, Version: "v1", Resource: resource, Namespace: "shop", Name: name}
}

// cancelled is a context that is over: nobody waits.
func cancelled(t testing.TB) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx, cancel
}
