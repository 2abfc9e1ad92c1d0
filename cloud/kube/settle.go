package kube

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/aiopslab/aiopslab/cloud"
)

// maxPlaces is how many runs there may be in a cluster at a time.
const maxPlaces = 100

// Settle claims namespaces for a run beside others: with the usual names or, where one of them is taken, with -2, -3
// and so on behind all of them. Who has taken it, a run that is alive or somebody else, does not matter.
func (c *Cloud) Settle(ctx context.Context, run string, usual ...string) (*Claim, error) {
	var taken error
	for place := 1; place <= maxPlaces; place++ {
		t := cloud.Tenancy{}
		if place > 1 {
			t.Suffix = fmt.Sprintf("-%d", place)
		}
		var names []string
		for _, name := range usual {
			names = append(names, t.Name(name))
		}
		if taken = c.free(ctx, names); taken == nil {
			var claim *Claim
			if claim, taken = c.Claim(ctx, run, names...); taken == nil {
				claim.suffix = t.Suffix
				return claim, nil
			}
		}
		if !errors.Is(taken, ErrInUse) && !errors.Is(taken, ErrNotOurs) {
			return nil, taken
		}
	}
	return nil, fmt.Errorf("the cluster has no place for another run: %w", taken)
}

// free says why one of the namespaces cannot be claimed. A claim would say so too, but not before it has made others.
func (c *Cloud) free(ctx context.Context, names []string) error {
	for _, name := range names {
		old, err := c.meta.Resource(namespaces).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return fmt.Errorf("look at namespace %s: %w", name, err)
		}
		if err := c.takeable(&old.ObjectMeta, &old.ObjectMeta); err != nil {
			return err
		}
	}
	return nil
}

// takeable says why a namespace cannot be taken from the run that has made it, going by a sign of life on one of the
// run's namespaces.
func (c *Cloud) takeable(old, sign *metav1.ObjectMeta) error {
	run, o, ok := ownerOf(old)
	if !ok {
		return fmt.Errorf("namespace %s exists already: %w; if nobody needs it, run 'kubectl delete namespace %s', "+
			"else choose another cluster", old.Name, ErrNotOurs, old.Name)
	}
	_, last, ok := ownerOf(sign)
	if ok && c.clock.now().Before(last.Until) { // If it is not, somebody has given it the label.
		return fmt.Errorf("namespace %s: %w (%s); wait for its end or, if it was killed, %v", old.Name, ErrInUse,
			describe(run, o), leaseTime)
	}
	return nil
}
