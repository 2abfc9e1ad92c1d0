package apps

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/test/labtest"
	"github.com/aiopslab/aiopslab/world/noise"
)

// live has the application released, and its services scaled up and down, until each that can be was. One
// that an agent scales meanwhile stays as the agent wants it; the others are left as they were. Stores keep
// their pods all the time.
func (x *application) live(t *testing.T, agents string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	before := x.pods(t)
	life := &noise.Life{Env: &fault.Env{Client: lab.Client, Dial: lab.Cloud.Dial, App: x.App}, Level: noise.Busy, Seed: 7}
	if err := life.Release(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if err := life.Go(ctx); err != nil {
		t.Fatal(err)
	}
	defer life.Stop(ctx)
	x.scale(t, agents, 3)
	scaled := map[string]int{}
	labtest.Await(t, func() (none struct{}, err error) {
		for _, c := range life.Changes() {
			if c.What == "scale down" {
				scaled[c.Service]++
			}
		}
		if len(scaled) < 3 {
			err = fmt.Errorf("only %v were scaled up and down", scaled)
		}
		return none, err
	})
	life.Stop(ctx)
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
		if now := x.pods(t); s.Kind != "service" && now[s.Name] != before[s.Name] {
			t.Errorf("the pods of %s were %s, and are %s", s.Name, before[s.Name], now[s.Name])
		} else if s.Kind == "service" && strings.Contains(now[s.Name], before[s.Name]) {
			t.Errorf("%s has the pods of before, %s", s.Name, before[s.Name])
		}
	}
	x.scale(t, agents, 1)
	x.waitReady(t)
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
