package apps

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/test/labtest"
	"github.com/aiopslab/aiopslab/world/noise"
)

// live has the application released, its services scaled up and down, until each that can be was, and a node
// cordoned. A service that an agent scales meanwhile, and a node that it cordons anew, stay as the agent wants
// them; the others are left as they were. Stores keep their pods all the time.
func (x *application) live(t *testing.T, agents string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	before := x.pods(t)
	life := x.release(t, 7)
	if err := life.Go(ctx); err != nil {
		t.Fatal(err)
	}
	defer life.Stop(ctx)
	x.scale(t, agents, 3)
	scaled, node := map[string]int{}, ""
	labtest.Await(t, func() (none struct{}, err error) {
		for _, c := range life.Changes() {
			switch {
			case c.What == "scale down":
				scaled[c.Service]++
			case c.What == "cordon" && node == "":
				node = c.Node
				cordon(t, node, false)
				cordon(t, node, true)
			}
		}
		if len(scaled) < 2 || node == "" {
			err = fmt.Errorf("only %v were scaled up and down, and %q cordoned", scaled, node)
		}
		return none, err
	})
	life.Stop(ctx)
	nodes, err := lab.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes.Items {
		if n.Spec.Unschedulable != (n.Name == node) {
			t.Errorf("%s is cordoned: %v, and the agent has cordoned %s", n.Name, n.Spec.Unschedulable, node)
		}
	}
	cordon(t, node, false)
	for _, s := range x.Services {
		d := labtest.Await(t, func() (*appsv1.Deployment, error) {
			d, err := lab.Client.AppsV1().Deployments(x.Namespace).Get(t.Context(), s.Name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			n, now := ptr.Deref(d.Spec.Replicas, 1), d.Status
			if now.ObservedGeneration < d.Generation || now.Replicas != n || now.UpdatedReplicas != n || now.ReadyReplicas != n {
				err = fmt.Errorf("%s is not settled: %+v", s.Name, now)
			}
			return d, err
		})
		want := int32(1)
		if s.Name == agents {
			want = 3
		}
		if n := *d.Spec.Replicas; n != want {
			t.Errorf("%s has %d replicas, want %d", s.Name, n, want)
		}
		// A store keeps its pods: they have what is nowhere else.
		if now := x.pods(t); s.Kind != "service" && s.Kind != "memcached" && now[s.Name] != before[s.Name] {
			t.Errorf("the pods of %s were %s, and are %s", s.Name, before[s.Name], now[s.Name])
		} else if s.Kind == "service" && strings.Contains(now[s.Name], before[s.Name]) {
			t.Errorf("%s has the pods of before, %s", s.Name, before[s.Name])
		}
	}
	x.scale(t, agents, 1)
	x.waitReady(t)
}

// release has the application released, with what differs by a seed, and all services answer afterwards.
func (x *application) release(t *testing.T, seed uint64) *noise.Life {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	env := &fault.Env{Client: lab.Client, Dial: lab.Cloud.Dial, App: x.App}
	life := &noise.Life{Env: env, Level: noise.Busy, Seed: seed, Library: lab.Cloud}
	if err := life.Release(ctx, nil); err != nil {
		t.Fatal(err)
	}
	x.waitReady(t)
	for _, s := range x.Services {
		labtest.Await(t, func() (none struct{}, err error) {
			if err = fault.Ask(ctx, env, s.Name); err != nil {
				err = fmt.Errorf("%s, as released with seed %d: %w", s.Name, seed, err)
			}
			return none, err
		})
	}
	return life
}

// releases has the application released again and again: whatever a release draws, users are served.
func (x *application) releases(t *testing.T) {
	t.Helper()
	for seed := range uint64(4) {
		x.release(t, 100+seed)
	}
}

// cordon is what kubectl cordon and uncordon do to a node.
func cordon(t *testing.T, node string, yes bool) {
	t.Helper()
	patch := []byte(`{"spec": {"unschedulable": null}}`)
	if yes {
		patch = []byte(`{"spec": {"unschedulable": true}}`)
	}
	_, err := lab.Client.CoreV1().Nodes().Patch(t.Context(), node, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// pods are the names of the pods of each service.
func (x *application) pods(t *testing.T) map[string]string {
	t.Helper()
	list, err := lab.Client.CoreV1().Pods(x.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, p := range list.Items {
		if p.DeletionTimestamp == nil {
			names[p.Labels[x.Label]] += p.Name + " "
		}
	}
	return names
}
