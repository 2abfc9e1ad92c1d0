package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Remains is what a run has in the cluster.
type Remains struct {
	Run string `json:"run"`
	// Alive says that the run uses it. If it was killed, that is so for another minute and a half.
	Alive   bool      `json:"alive"`
	Since   time.Time `json:"since,omitzero"`
	Objects []string  `json:"objects"` // as in namespaces/test-hotel-reservation

	namespaces []object
}

// Remains lists what the lab has in the cluster, run by run. Namespaces that have the lab's label but were not made by
// it are not there.
func (c *Cloud) Remains(ctx context.Context) ([]Remains, error) {
	runs := map[string]*Remains{}
	of := func(run string) *Remains {
		if runs[run] == nil {
			runs[run] = &Remains{Run: run}
		}
		return runs[run]
	}
	spaces, err := c.meta.Resource(namespaces).List(ctx, metav1.ListOptions{LabelSelector: RunLabel})
	if err != nil {
		return nil, fmt.Errorf("list the namespaces of the lab: %w", err)
	}
	for _, m := range spaces.Items {
		run, o, ok := ownerOf(&m.ObjectMeta)
		if !ok {
			continue
		}
		r, ns := of(run), spaceOf(&m)
		r.Alive = r.Alive || c.clock.now().Before(o.Until)
		if r.Since.IsZero() || o.Since.Before(r.Since) {
			r.Since = o.Since
		}
		r.namespaces, r.Objects = append(r.namespaces, ns), append(r.Objects, ns.String())
	}
	found, err := c.labelled(ctx, RunLabel, slices.Concat(kindsBefore, kindsAfter))
	for _, o := range found {
		if o.run != "" {
			of(o.run).Objects = append(of(o.run).Objects, o.String())
		}
	}
	all := make([]Remains, 0, len(runs))
	for _, name := range slices.Sorted(maps.Keys(runs)) {
		all = append(all, *runs[name])
	}
	return all, err
}

// Cleanup removes what runs that are dead have left behind, and waits until it is gone. What runs that are alive use
// stays; Remains tells of it. The error names what could not be removed, and why.
func (c *Cloud) Cleanup(ctx context.Context) (removed []string, err error) {
	all, err := c.Remains(ctx)
	for _, r := range all {
		if r.Alive {
			continue
		}
		gone, rerr := c.removeRun(ctx, r.Run, r.namespaces)
		if !errors.Is(rerr, errChanged) { // Else it is alive after all.
			removed, err = append(removed, gone...), errors.Join(err, rerr)
		}
	}
	return removed, err
}
