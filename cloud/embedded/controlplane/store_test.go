package controlplane

import (
	"context"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestChangedKeys(t *testing.T) {
	now := State{
		"/registry/pods/shop/a": []byte("1"), "/registry/pods/shop/b": []byte("1"), "/registry/services/specs/shop/s": []byte("1"),
		"/registry/namespaces/shop": []byte("1"), "/registry/replicasets/shop/r": []byte("1"),
	}
	want := State{
		"/registry/pods/shop/a": []byte("1"), "/registry/pods/shop/b": []byte("2"), "/registry/pods/shop/c": []byte("1"),
		"/registry/namespaces/new": []byte("1"), "/registry/deployments/shop/d": []byte("1"), "/registry/replicasets/shop/r": []byte("2"),
		"/registry/apiextensions.k8s.io/customresourcedefinitions/x": []byte("1"), "/registry/services/specs/shop/s": []byte("1"),
	}
	// Definitions, namespaces and owners come first.
	keys := []string{
		"/registry/apiextensions.k8s.io/customresourcedefinitions/x", "/registry/namespaces/new", "/registry/namespaces/shop",
		"/registry/deployments/shop/d", "/registry/replicasets/shop/r", "/registry/pods/shop/b", "/registry/pods/shop/c",
	}
	if diff := cmp.Diff(keys, now.Diff(want)); diff != "" {
		t.Error(diff)
	}
	if diff := now.Diff(now); len(diff) != 0 {
		t.Errorf("a state differs from itself: %v", diff)
	}
}

// TestRestore writes a state to a real etcd and looks at what that did.
func TestRestore(t *testing.T) {
	e, _, err := startEtcd(t.TempDir(), newFailure(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Stop()
	c := newDirectStore(e).client()
	ctx := t.Context()
	put := func(key, value string) {
		t.Helper()
		if _, err := c.Put(ctx, key, value); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{
		"pods/a", "pods/b", "leases/kube-node-lease/n1", "leases/kube-node-lease/n2", "masterleases/10.0.0.1", "events/shop/e1",
	} {
		put(registry+key, "before")
	}
	saved, leases, err := readState(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(State{registry + "pods/a": []byte("before"), registry + "pods/b": []byte("before")}, saved); diff != "" {
		t.Error(diff)
	}
	put(registry+"pods/b", "after")
	put(registry+"pods/c", "after")
	put(registry+"leases/kube-node-lease/n1", "after")
	put(registry+"leases/shop/note", "after")
	put(registry+"events/shop/e2", "after")
	for _, key := range []string{"pods/a", "leases/kube-node-lease/n2"} {
		if _, err := c.Delete(ctx, registry+key); err != nil {
			t.Fatal(err)
		}
	}
	whole := maps.Clone(saved)
	maps.Copy(whole, leases)
	all := func() State {
		t.Helper()
		s, leases, err := readState(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(s, leases)
		return s
	}
	// Of leases it is told which there were not: those that were there are renewed all the time.
	want := []string{registry + "leases/shop/note", registry + "pods/a", registry + "pods/b", registry + "pods/c"}
	if diff := cmp.Diff(want, all().Diff(whole)); diff != "" {
		t.Error(diff)
	}
	before := revision(t, ctx, c)
	written, err := writeState(ctx, c, whole)
	if err != nil {
		t.Fatal(err)
	}
	if a, b, gone := written[registry+"pods/a"], written[registry+"pods/b"], written[registry+"pods/c"]; len(written) != 6 || a <= before || b <= a || gone <= b {
		t.Errorf("revisions %v after %d", written, before)
	}
	if diff := cmp.Diff(whole, all()); diff != "" {
		t.Error(diff)
	}
	// One revision clears the events, one each restores three pods and three leases, and nothing else is touched.
	if n := revision(t, ctx, c) - before; n != 7 {
		t.Errorf("%d revisions", n)
	}
	for key, want := range map[string]int64{"events/": 0, "leases/": 2, "masterleases/": 1} {
		if res, err := c.Get(ctx, registry+key, clientv3.WithPrefix()); err != nil || res.Count != want {
			t.Errorf("%s: %v, %v", key, res, err)
		}
	}
	before = revision(t, ctx, c)
	if written, err := writeState(ctx, c, whole); err != nil || len(written) != 0 || revision(t, ctx, c) != before {
		t.Errorf("nothing to restore, and the store changed: %v, %v", written, err)
	}
}

func revision(t *testing.T, ctx context.Context, c *clientv3.Client) int64 {
	t.Helper()
	res, err := c.Get(ctx, "none")
	if err != nil {
		t.Fatal(err)
	}
	return res.Header.Revision
}
