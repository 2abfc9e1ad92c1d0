package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const (
	// closeTime is how long the removal of a run may take. A namespace goes when its last pod has, which has its grace
	// period.
	closeTime = 3 * time.Minute
	pollTime  = 500 * time.Millisecond
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// The cluster-scoped kinds that the lab may make. Those that pods answer for, or that refuse writes, go first: as
// long as they are there and the pods are not, a namespace cannot go.
var (
	kindsBefore = []schema.GroupVersionResource{
		{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"},
	}
	kindsAfter = []schema.GroupVersionResource{
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
		{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
		{Version: "v1", Resource: "persistentvolumes"},
		{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"},
		{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"},
	}
)

// object is something cluster-scoped, and not another of the same name.
type object struct {
	kind schema.GroupVersionResource
	name string
	run  string // by its label
	uid  types.UID
	// version is the one that was looked at, if the object may be removed only as it was then.
	version string
}

func (o object) String() string { return o.kind.Resource + "/" + o.name }

// spaceOf is a namespace as it was seen.
func spaceOf(m *metav1.PartialObjectMetadata) object {
	o := object{namespaces, m.Name, m.Labels[RunLabel], m.UID, m.ResourceVersion}
	if m.DeletionTimestamp != nil {
		o.version = "" // It goes, whatever is written to it.
	}
	return o
}

// errChanged says that a namespace is no longer as it was seen. Perhaps its run is alive after all.
var errChanged = errors.New("the namespace was changed meanwhile")

// removeRun removes namespaces and all else that has the label of a run, if one is given, and waits until it is gone.
// What was removed is named and so is, in the error, what was not. If the error is errChanged, nothing else was removed
// but namespaces that nobody uses.
func (c *Cloud) removeRun(ctx context.Context, run string, spaces []object) (removed []string, err error) {
	limit, cancel := context.WithTimeoutCause(ctx, closeTime, fmt.Errorf("still there after %v", closeTime))
	defer cancel()
	for _, ns := range spaces {
		derr := c.delete(ctx, ns)
		if errors.Is(derr, errChanged) {
			return nil, derr
		}
		err = errors.Join(err, derr)
	}
	if run != "" { // It is dead, or has ended.
		err = errors.Join(err, c.giveBack(ctx, run))
	}
	await := func(objects []object) {
		gone, werr := c.awaitGone(ctx, limit, objects)
		removed, err = append(removed, gone...), errors.Join(err, werr)
	}
	remove := func(kinds []schema.GroupVersionResource) {
		if run == "" {
			return
		}
		found, lerr := c.labelled(ctx, RunLabel+"="+run, kinds)
		err = errors.Join(err, lerr)
		for _, o := range found {
			err = errors.Join(err, c.delete(ctx, o))
		}
		await(found)
	}
	remove(kindsBefore)
	await(spaces)
	remove(kindsAfter)
	return removed, err
}

// labelled lists the objects of some kinds that have a label.
func (c *Cloud) labelled(ctx context.Context, selector string, kinds []schema.GroupVersionResource,
) (found []object, err error) {
	for _, k := range kinds {
		list, lerr := c.meta.Resource(k).List(ctx, metav1.ListOptions{LabelSelector: selector})
		switch {
		case apierrors.IsNotFound(lerr): // The cluster has no such kind.
		case lerr != nil:
			err = errors.Join(err, fmt.Errorf("look for %s of the lab: %w", k.Resource, lerr))
		default:
			for _, m := range list.Items {
				found = append(found, object{k, m.Name, m.Labels[RunLabel], m.UID, ""})
			}
		}
	}
	return found, err
}

// delete asks for the removal of an object. One that is gone, or has made way for another, is no error.
func (c *Cloud) delete(ctx context.Context, o object) error {
	preconditions := &metav1.Preconditions{UID: &o.uid}
	if o.version != "" {
		preconditions.ResourceVersion = &o.version
	}
	err := c.meta.Resource(o.kind).Delete(ctx, o.name, metav1.DeleteOptions{
		Preconditions: preconditions, PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
	})
	switch {
	case apierrors.IsConflict(err) && o.version != "":
		return errChanged
	case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil
	}
	return fmt.Errorf("remove %v: %w", o, err)
}

// awaitGone waits until objects are gone or the limit is over, and names those that are gone. What nobody has asked to
// go is not waited for.
func (c *Cloud) awaitGone(ctx, limit context.Context, objects []object) (gone []string, err error) {
	for start := time.Now(); ; {
		var left []object
		stuck := time.Since(start) >= stuckTime
		for _, o := range objects {
			m, gerr := c.meta.Resource(o.kind).Get(ctx, o.name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(gerr), gerr == nil && m.UID != o.uid:
				gone = append(gone, o.String())
			case gerr != nil:
				err = errors.Join(err, fmt.Errorf("wait until %v is gone: %w", o, gerr))
			case m.DeletionTimestamp != nil: // Else its removal was refused, which was told.
				left = append(left, o)
				if stuck {
					c.unfasten(ctx, o, m)
				}
			}
		}
		if objects = left; len(objects) == 0 {
			return gone, err
		}
		if stuck {
			start = time.Now() // What came after that has its time too.
		}
		select {
		case <-time.After(pollTime):
		case <-limit.Done():
			for _, o := range objects {
				err = errors.Join(err, fmt.Errorf("remove %v: %w%s", o, context.Cause(limit), c.holdUp(ctx, o)))
			}
			return gone, err
		}
	}
}

// holdUp says what keeps a namespace, as far as the cluster tells.
func (c *Cloud) holdUp(ctx context.Context, o object) (why string) {
	if o.kind != namespaces {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), openTimeout)
	defer cancel()
	ns, err := c.client.CoreV1().Namespaces().Get(ctx, o.name, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	for _, condition := range ns.Status.Conditions {
		if condition.Status == "True" {
			why += "; " + condition.Message
		}
	}
	return why
}
