package controlplane

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"testing"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Whoever starts to watch after a restore, as the loops do, starts from what was restored.
func TestCachesFollowRestore(t *testing.T) {
	ctx := t.Context()
	p := startPlane(t)
	const namespace = metav1.NamespaceSystem // It is there by itself.
	count := func() int {
		t.Helper()
		list, err := p.client.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0", LabelSelector: "test=yes"})
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	empty, leases, err := p.State(ctx)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(empty, leases)
	const n = 200
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(bootstrapWorkers)
	for i := range n {
		g.Go(func() error {
			m := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("test-%d", i), Labels: map[string]string{"test": "yes"}}}
			_, err := p.client.CoreV1().ConfigMaps(namespace).Create(gctx, m, metav1.CreateOptions{})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	full, leases, err := p.State(ctx)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(full, leases)
	for range 10 {
		for want, s := range map[int]State{0: empty, n: full} {
			if err := p.Restore(ctx, s); err != nil {
				t.Fatal(err)
			}
			if got := count(); got != want {
				t.Fatalf("the cache has %d objects right after a restore, want %d", got, want)
			}
		}
	}
}

// startPlane starts a control plane without a cluster around it.
func startPlane(t *testing.T) *Plane {
	t.Helper()
	pki, err := NewPKI()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(t.Context(), Config{
		Dir: t.TempDir(), Listener: l, Port: l.Addr().(*net.TCPAddr).Port, PKI: pki,
		Address: net.IPv4(172, 18, 0, 2), ServiceIP: net.IPv4(10, 96, 0, 1), ServiceCIDR: "10.96.0.0/16",
		Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("there is no network") },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func TestStoragePrefix(t *testing.T) {
	for _, tt := range []struct{ group, resource, want string }{
		{"", "pods", "pods/"},
		{"", "nodes", "minions/"},
		{"", "services", "services/specs/"},
		{"", "endpoints", "services/endpoints/"},
		{"apps", "deployments", "deployments/"},
		{"networking.k8s.io", "ingresses", "ingress/"},
		{"apiregistration.k8s.io", "apiservices", "apiregistration.k8s.io/apiservices/"},
		{"apiextensions.k8s.io", "customresourcedefinitions", "apiextensions.k8s.io/customresourcedefinitions/"},
		{"lab.example.com", "backups", "lab.example.com/backups/"},
		// A custom resource in a group of Kubernetes' own making.
		{"snapshot.storage.k8s.io", "volumesnapshots", "snapshot.storage.k8s.io/volumesnapshots/"},
	} {
		if got := storagePrefix(schema.GroupResource{Group: tt.group, Resource: tt.resource}); got != tt.want {
			t.Errorf("%s.%s is under %s, want %s", tt.resource, tt.group, got, tt.want)
		}
	}
}
