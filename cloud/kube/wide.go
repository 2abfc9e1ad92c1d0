package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/aiopslab/aiopslab/internal/manifest"
)

// What an application has in no namespace, such as the definition of its own kinds, is there once in a cluster, whoever
// has made it. So it is one run's at a time, and never taken from who owns the cluster: with a definition, all objects
// of its kind would go.

// ErrMayNot is the class of errors about rights that the user of the kubeconfig does not have.
var ErrMayNot = errors.New("you may not")

// Admits says why an application with the given objects cannot be had in the cluster, because of what it has in no
// namespace. It writes nothing. The error is
//   - ErrMayNot if rights are missing, which are named;
//   - ErrNotOurs if there is an object of the name that the lab has not made;
//   - ErrInUse if a run that is alive has made it.
func (c *Cloud) Admits(ctx context.Context, objects []*unstructured.Unstructured) error {
	_, err := c.admits(ctx, objects)
	return err
}

// Clear is Admits before a run: it also removes what a run that is dead has left of the name, with all else of that
// run. Who makes the objects then must be ready to find that another run was faster.
func (c *Cloud) Clear(ctx context.Context, objects []*unstructured.Unstructured) error {
	for {
		dead, err := c.admits(ctx, objects)
		if err != nil || dead == nil {
			return err
		}
		_, err = c.removeRun(ctx, dead.Run, dead.namespaces)
		if err != nil && !errors.Is(err, errChanged) { // Else it is alive after all.
			return fmt.Errorf("clear what run %s, which is dead, has left behind: %w", dead.Run, err)
		}
	}
}

// admits is Admits, and returns a dead run that has left something of a name that is needed; nil if there is none.
func (c *Cloud) admits(ctx context.Context, objects []*unstructured.Unstructured) (dead *Remains, err error) {
	needed := wide(objects)
	if len(needed) == 0 {
		return nil, nil
	}
	// Where nobody can be asked about rights, the run itself will tell.
	if missing, err := c.lacks(ctx, wideRights(objects)); err == nil && len(missing) > 0 {
		return nil, fmt.Errorf("%w %s", ErrMayNot, shorten(missing))
	}
	for _, o := range needed {
		old, err := c.meta.Resource(o.kind).Get(ctx, o.name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("look at %v: %w", o, err)
		case old.Labels[RunLabel] == "":
			return nil, fmt.Errorf("%v exists already: %w; choose a cluster without it", o, ErrNotOurs)
		}
		of, last, err := c.remainsOf(ctx, old.Labels[RunLabel])
		if err != nil {
			return nil, err
		}
		if of.Alive {
			return nil, fmt.Errorf("%v: %w (%s), and one run at a time can have it; wait for its end or, if it was "+
				"killed, %v", o, ErrInUse, describe(of.Run, last), leaseTime)
		}
		dead = of
	}
	return dead, nil
}

// remainsOf are the namespaces of a run, with the latest sign of life on one of them.
func (c *Cloud) remainsOf(ctx context.Context, run string) (r *Remains, last owner, err error) {
	all, err := c.meta.Resource(namespaces).List(ctx, metav1.ListOptions{LabelSelector: RunLabel + "=" + run})
	if err != nil {
		return nil, last, fmt.Errorf("list the namespaces of run %s: %w", run, err)
	}
	r = &Remains{Run: run}
	for _, m := range all.Items {
		_, o, ours := ownerOf(&m.ObjectMeta)
		if !ours {
			continue
		}
		r.namespaces = append(r.namespaces, spaceOf(&m))
		if o.Until.After(last.Until) {
			last = o
		}
	}
	r.Alive = c.clock.now().Before(last.Until)
	return r, last, nil
}

// Wide reports whether an application with the given objects has any in no namespace, so that one run at a time can
// have it in a cluster.
func Wide(objects []*unstructured.Unstructured) bool { return len(wide(objects)) > 0 }

// wide are those of the objects that are in no namespace, of the kinds that the lab may make.
func wide(objects []*unstructured.Unstructured) (list []object) {
	for _, u := range objects {
		resource, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
		for _, k := range slices.Concat(kindsBefore, kindsAfter) {
			if k.GroupResource() == resource.GroupResource() {
				list = append(list, object{kind: k, name: u.GetName()})
			}
		}
	}
	return list
}

// wideRights are what it takes to make such objects, to use what they define, and to remove them.
func wideRights(objects []*unstructured.Unstructured) (list []right) {
	for _, o := range wide(objects) {
		r := right{"get,list,create,patch,delete", o.kind.Group, o.kind.Resource}
		if !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	for _, r := range manifest.Resources(objects) {
		list = append(list, right{"get,list,watch,create,patch,delete", r.Group, r.Resource})
	}
	return list
}

// wide looks whether what applications have in no namespace can be made.
func (e *examination) wide(ctx context.Context) (found []Finding) {
	const check = "cluster-wide"
	var can []string
	for _, a := range e.need.Apps {
		err := e.Admits(ctx, a.Objects)
		if err == nil {
			for _, o := range wide(a.Objects) {
				can = append(can, fmt.Sprintf("%v of %s", o, a.Name))
			}
			continue
		}
		f := Finding{check, Warning, fmt.Sprintf("%s cannot be had: %v", a.Name, err), ""}
		if len(e.need.Apps) == 1 && !errors.Is(err, ErrInUse) {
			f.Level = Problem
		}
		if errors.Is(err, ErrMayNot) {
			f.Do = "Ask for it if you want " + a.Name + "."
		}
		found = append(found, f)
	}
	if len(can) > 0 {
		found = append(found, Finding{check, OK, strings.Join(can, ", ") + " can be made", ""})
	}
	return found
}
