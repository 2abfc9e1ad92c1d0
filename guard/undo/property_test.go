package undo

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestRandomWrites writes at random, while somebody else writes to other fields, and takes all of it back: nothing
// differs but what the other one has written.
func TestRandomWrites(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := newFake()
		names := []string{"a", "b", "c", "d"}
		for _, n := range names[:2] {
			f.create(t, cm(n), `{"data":{"x":"1","y":"2"},"list":[{"name":"p","v":1},{"name":"q","v":2}]}`)
		}
		want := f.state()
		var changes []Change
		for range rapid.IntRange(1, 20).Draw(rt, "writes") {
			r := cm(rapid.SampledFrom(names).Draw(rt, "name"))
			value := fmt.Sprint(rapid.IntRange(1, 5).Draw(rt, "value"))
			here := f.objects[r] != nil && !terminating(f.objects[r])
			switch op := rapid.SampledFrom([]string{"create", "delete", "set", "unset", "list", "immutable", "other"}).Draw(rt, "op"); {
			case op == "other" && here && f.objects[r]["immutable"] != true:
				// The other one writes to objects that are there in the end only.
				continue
			case op == "create" && !here:
				changes = append(changes, f.create(t, r, `{"data":{"z":"`+value+`"}}`))
			case op == "delete" && here:
				changes = append(changes, f.delete(t, r))
			case !here || f.objects[r]["immutable"] == true:
			case op == "set":
				changes = append(changes, f.set(t, r, "data."+rapid.SampledFrom([]string{"x", "y", "w"}).Draw(rt, "key"), value))
			case op == "unset":
				changes = append(changes, f.set(t, r, "data.x", nil))
			case op == "list":
				changes = append(changes, f.set(t, r, "list", []any{map[string]any{"name": "q", "v": value}, map[string]any{"name": "new"}}))
			case op == "immutable":
				changes = append(changes, f.set(t, r, "immutable", true))
			}
		}
		for _, n := range names[:2] {
			if o := f.objects[cm(n)]; o != nil && o["immutable"] != true && rapid.Bool().Draw(rt, "theirs") {
				f.set(t, cm(n), "metadata.annotations.theirs", "1")
			}
		}
		u := New(f)
		_, left := undoAll(t, u, changes)
		got := f.state()
		for _, n := range names[:2] {
			for _, s := range []map[string]any{got, want} {
				if o, _ := s[cm(n).String()].(map[string]any); o != nil {
					delete(metadata(o), "annotations")
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || left != "" {
			rt.Fatalf("left %q, differs:\n%s", left, diff)
		}
		if d, err := u.Verify(t.Context(), changes); err != nil || len(d) > 0 {
			rt.Fatalf("differences %v, %v", d, err)
		}
	})
}

// FuzzUndo reads objects that are none.
func FuzzUndo(f *testing.F) {
	f.Add([]byte(`{"metadata":{"ownerReferences":[{"uid":1}],"finalizers":[1]},"spec":{"ports":[1]}}`), []byte(`{"metadata":1}`))
	f.Add([]byte(`{"status":{"conditions":[null]}}`), []byte(`[]`))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		api := newFake()
		api.create(t, cm("a"), `{"data":{"a":"1"}}`)
		u := New(api)
		for _, resource := range []string{"configmaps", "jobs", "services", "pods", crds} {
			r := ref("", resource, "a")
			c := Change{Objects: []Object{{Ref: r, Before: before, After: after}, {Ref: r, Before: before}, {Ref: r, After: after}}}
			ctx, cancel := cancelled(t)
			u.Undo(ctx, c)
			_, _ = u.Verify(ctx, []Change{c})
			cancel()
		}
	})
}
