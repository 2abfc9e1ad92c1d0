package noise

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"

	"github.com/aiopslab/aiopslab/fault"
)

// breakCart is a fault: cart is released with an image that is wrong.
func (x *trial) breakCart(t *testing.T) Injection {
	t.Helper()
	parts, err := partsOf(x.life.Env.App)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(parts, func(p *part) bool { return p.service == "cart" })
	wrong := parts[i].deployment.DeepCopy()
	containers, _, _ := unstructured.NestedSlice(wrong.Object, "spec", "template", "spec", "containers")
	containers[0].(map[string]any)["image"] = "example/cart:wrong"
	if err := unstructured.SetNestedSlice(wrong.Object, containers, "spec", "template", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
	return Injection{
		Reach: fault.Reach{Known: true, Applies: []string{"Deployment/cart"}},
		Do:    func(ctx context.Context) error { return fault.Apply(ctx, x.life.Env, wrong) },
	}
}

// live releases a shop, with faults in it, and has its services scaled for a time.
func (x *trial) live(t *testing.T, lasting time.Duration, injections ...Injection) {
	t.Helper()
	if err := x.life.Release(t.Context(), injections); err != nil {
		t.Fatal(err)
	}
	if err := x.life.Go(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(lasting)
}

// scaled are the services that are scaled.
func (x *trial) scaled() []string { return slices.Clone(x.life.stirred) }

// Every service that can have a pod more is as likely to be scaled as any other. One to whose pods a fault is tied is
// not, and another takes its place.
func TestChoose(t *testing.T) {
	parts, err := partsOf(shop())
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]int64{}
	for _, p := range parts {
		known[p.service] = 1
	}
	const seeds = 3000
	for _, c := range []struct {
		alone []string
		among int
	}{{nil, 6}, {[]string{"cart"}, 5}} {
		times := map[string]int{}
		for seed := range uint64(seeds) {
			l := &Life{Seed: seed, parts: parts, reached: []string{"cart", "stock"}, alone: c.alone}
			names := (&stir{Life: l, known: known}).choose(l.draw(2))
			if len(names) != 2 {
				t.Fatalf("with seed %d scaled are %v", seed, names)
			}
			for _, name := range names {
				times[name]++
			}
		}
		fair := 2 * seeds / c.among
		for _, name := range []string{"frontend", "cart", "stock", "price", "mail", "cache"} {
			if slices.Contains(c.alone, name) {
				times["db"] += times[name]
				continue
			}
			if n := times[name]; n < fair*8/10 || n > fair*12/10 {
				t.Errorf("without %v, %s was scaled with %d of %d seeds", c.alone, name, n, seeds)
			}
		}
		if times["db"] > 0 {
			t.Errorf("the database, or %v, was scaled", c.alone)
		}
	}
}

// A faulty service that is scaled stays as faulty as it is: nothing but the number of its pods is written.
func TestStirLeavesTheFault(t *testing.T) {
	raised := 0
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			x := newTrial(t, Busy, seed)
			x.live(t, 0, x.breakCart(t))
			x.life.HandOver()
			before := x.deployment(t, "cart")
			for range 40 {
				time.Sleep(700 * time.Millisecond)
				d := x.deployment(t, "cart")
				n := *d.Spec.Replicas
				if spare := x.life.Env.Spare("cart"); n < 1 || n > 2 || int32(spare) != n-1 {
					t.Fatalf("it has %d replicas, and %d to spare", n, spare)
				}
				if raised += int(n) - 1; !strings.HasSuffix(d.Spec.Template.Spec.Containers[0].Image, "example/cart:wrong") {
					t.Fatalf("its image is %s", d.Spec.Template.Spec.Containers[0].Image)
				}
				if !equal(d.Annotations, before.Annotations) || !equal(d.Spec.Template.Annotations, before.Spec.Template.Annotations) {
					t.Fatalf("its annotations are %v, %v", d.Annotations, d.Spec.Template.Annotations)
				}
			}
			x.life.Stop(t.Context())
			if n := *x.deployment(t, "cart").Spec.Replicas; n != 1 || x.life.Env.Spare("cart") != 0 {
				t.Errorf("it has %d replicas in the end", n)
			}
		})
	}
	if raised == 0 {
		t.Error("it never had a pod more")
	}
}

func equal(a, b map[string]string) bool {
	for k := range b {
		if a[k] != b[k] {
			return false
		}
	}
	return len(a) == len(b)
}

// repair sets cart right, as an agent would.
func (x *trial) repair(t *testing.T) (replicas int32) {
	t.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		d := x.deployment(t, "cart")
		d.Spec.Template.Spec.Containers[0].Image = "example/cart:v2"
		replicas = *d.Spec.Replicas
		_, err := x.client.AppsV1().Deployments("test-shop").Update(t.Context(), d, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return replicas
}

// Who sets a faulty service right, whether it has a pod more or not, is not undone, in the end either. Neither is who
// does so between a look at it and a write to it.
func TestStirLeavesTheRepair(t *testing.T) {
	had := map[int32]int{} // replicas, when it was repaired
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			x := newTrial(t, Busy, seed)
			x.live(t, 0, x.breakCart(t))
			defer x.life.Stop(t.Context())
			if !slices.Contains(x.scaled(), "cart") {
				return
			}
			var writes, left atomic.Int32 // to cart, before it is repaired
			left.Store(int32(seed % 4))
			repaired := make(chan int32, 1)
			x.Before(func(r *http.Request) error {
				if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/deployments/cart") &&
					writes.Add(1) == left.Load()+1 {
					repaired <- x.repair(t)
				}
				return nil
			})
			n := <-repaired
			had[n]++
			time.Sleep(2 * time.Minute)
			x.life.Stop(t.Context())
			d := x.deployment(t, "cart")
			if image := d.Spec.Template.Spec.Containers[0].Image; image != "example/cart:v2" || *d.Spec.Replicas != n {
				t.Errorf("its image is %s, and it has %d replicas, not %d", image, *d.Spec.Replicas, n)
			}
		})
	}
	if had[1] == 0 || had[2] == 0 {
		t.Errorf("when it was repaired it had so many replicas: %v", had)
	}
}
