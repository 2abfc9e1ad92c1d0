package kube

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/aiopslab/aiopslab/cloud"
)

var (
	// ErrNotOurs is the class of errors about a namespace that the lab has not made, and so leaves alone.
	ErrNotOurs = errors.New("the lab did not make it and leaves it alone")
	// ErrInUse is the class of errors about a namespace that another run uses.
	ErrInUse = errors.New("another run uses it")
)

// The labels by which a namespace says what its pods may do to the machines they run on. At "baseline" there is no way
// from a pod to its node. At "restricted", which all that the lab deploys keeps to, kubectl run would be refused: an
// agent who looks around that way is only warned.
const (
	podsMay    = "pod-security.kubernetes.io/enforce"
	podsShould = "pod-security.kubernetes.io/warn"
)

// Claim is a run's right to its namespaces: it has made them, and nobody else of the lab uses them until Close.
type Claim struct {
	cloud  *Cloud
	run    string
	suffix string // of the namespaces' names; see Settle
	since  time.Time
	stop   context.CancelFunc
	done   chan struct{} // no more renewing

	mu   sync.Mutex
	made []object // namespaces
}

// Claim makes namespaces for a run and, until Close, tells all other runs every few seconds that they are in use. A
// namespace that is there already is
//   - left alone if the lab has not made it: the error is ErrNotOurs;
//   - left alone if its run is alive: the error is ErrInUse;
//   - removed, with all else that its run has left in the cluster, and made anew if that run is dead.
//
// Where there is Chaos Mesh, the run has one more for what that is to do, see Disturb.
//
// It blocks until all of them are made or ctx ends. If it fails, it has made none. A run is known by its namespaces:
// if somebody removes them all, what else it has made counts as left behind. It has one claim.
func (c *Cloud) Claim(ctx context.Context, run string, namespaces ...string) (*Claim, error) {
	if wrong := validation.IsValidLabelValue(run); run == "" || len(wrong) > 0 {
		return nil, fmt.Errorf("the name of run %q cannot be a label: %s", run, strings.Join(wrong, "; "))
	}
	if len(namespaces) == 0 {
		return nil, errors.New("a claim needs a namespace")
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	claim := &Claim{cloud: c, run: run, since: c.clock.now(), stop: stop, done: make(chan struct{})}
	go claim.renew(background)
	namespaces = slices.Compact(slices.Sorted(slices.Values(namespaces)))
	if c.mesh.usable() {
		namespaces = append(namespaces, quarters(run))
	}
	for _, name := range namespaces {
		if err := claim.take(ctx, name); err != nil {
			return nil, errors.Join(err, claim.release(context.WithoutCancel(ctx), ""))
		}
	}
	return claim, nil
}

// Tenancy is what is the run's in the cluster. Close removes what has its labels.
func (c *Claim) Tenancy() cloud.Tenancy {
	t := cloud.Tenancy{Run: c.run, Suffix: c.suffix, Labels: map[string]string{RunLabel: c.run}}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ns := range c.made {
		if ns.name != quarters(c.run) {
			t.Namespaces = append(t.Namespaces, ns.name)
		}
	}
	return t
}

// quarters is the namespace in which a run keeps what Chaos Mesh is to do, where there is Chaos Mesh. It is made and
// removed with the others, but is none of those that the run's agent may use: nobody but the lab has rights in it, and
// the guard hides namespaces of such a name.
func quarters(run string) string {
	name := "aiopslab-" + run
	if len(validation.IsDNS1123Label(name)) > 0 {
		name = fmt.Sprintf("aiopslab-%x", sha256.Sum256([]byte(run)))[:25]
	}
	return name
}

// Close removes the namespaces and all else that has the run's label, and waits until it is gone, but not for longer
// than closeTime. The error names what could not be removed, and why. It may be called again, to try once more.
func (c *Claim) Close(ctx context.Context) error { return c.release(ctx, c.run) }

// release removes the namespaces and, if a run is given, all that has its label.
func (c *Claim) release(ctx context.Context, run string) error {
	c.stop()
	<-c.done
	c.mu.Lock()
	made := slices.Clone(c.made)
	c.mu.Unlock()
	_, err := c.cloud.removeRun(ctx, run, made)
	return err
}

// take makes a namespace.
func (c *Claim) take(ctx context.Context, name string) error {
	for {
		err := c.create(ctx, name)
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		old, err := c.cloud.meta.Resource(namespaces).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return fmt.Errorf("look at namespace %s: %w", name, err)
		}
		if err := c.supersede(ctx, old); err != nil {
			return err
		}
	}
}

func (c *Claim) create(ctx context.Context, name string) error {
	created, err := c.cloud.client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: c.annotations(name),
			Labels: map[string]string{RunLabel: c.run, podsMay: "baseline", podsShould: "restricted"},
		},
	}, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		return err
	case apierrors.IsForbidden(err):
		return fmt.Errorf("make namespace %s: %w; 'aiopslab doctor' lists the rights that the lab needs", name, err)
	case err != nil:
		return fmt.Errorf("make namespace %s: %w", name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made = append(c.made, object{namespaces, name, c.run, created.UID, ""})
	return nil
}

func (c *Claim) annotations(namespace string) map[string]string {
	o := owner{Namespace: namespace, Since: c.since, Until: c.cloud.clock.now().Add(leaseTime)}
	return map[string]string{ownerAnnotation: o.annotation()}
}

// supersede removes a namespace of a run that is dead, or says why it is left alone.
func (c *Claim) supersede(ctx context.Context, old *metav1.PartialObjectMetadata) error {
	if err := c.cloud.takeable(&old.ObjectMeta, &old.ObjectMeta); err != nil {
		return err
	}
	run := old.Labels[RunLabel]
	all, err := c.cloud.meta.Resource(namespaces).List(ctx, metav1.ListOptions{LabelSelector: RunLabel + "=" + run})
	if err != nil {
		return fmt.Errorf("list the namespaces of run %s: %w", run, err)
	}
	dead := []object{spaceOf(old)}
	for _, m := range all.Items {
		if err := c.cloud.takeable(&old.ObjectMeta, &m.ObjectMeta); err != nil {
			return err
		}
		if _, _, ours := ownerOf(&m.ObjectMeta); ours && m.Name != old.Name {
			dead = append(dead, spaceOf(&m))
		}
	}
	if _, err = c.cloud.removeRun(ctx, run, dead); err != nil && !errors.Is(err, errChanged) {
		return fmt.Errorf("clear what run %s, which is dead, has left behind: %w", run, err)
	}
	return nil
}

// renew says again and again that the run is alive, until ctx ends.
func (c *Claim) renew(ctx context.Context) {
	defer close(c.done)
	ticker := time.NewTicker(renewTime)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		c.mu.Lock()
		made := slices.Clone(c.made)
		c.mu.Unlock()
		for _, ns := range made {
			c.renewOne(ctx, ns)
		}
	}
}

// renewOne says of one namespace that the run is alive. What fails, as it does if the namespace is gone, is tried again
// with the next renewal. One of the same name that somebody else has made has another UID, and is not changed.
func (c *Claim) renewOne(ctx context.Context, ns object) {
	ctx, cancel := context.WithTimeout(ctx, renewTime)
	defer cancel()
	patch, err := json.Marshal(metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		UID: ns.uid, Labels: map[string]string{RunLabel: c.run}, Annotations: c.annotations(ns.name),
	}})
	if err == nil {
		_, _ = c.cloud.meta.Resource(namespaces).Patch(ctx, ns.name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
}
