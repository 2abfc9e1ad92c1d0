package undo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// restore creates what a write has deleted.
func (u *Undoer) restore(ctx context.Context, c Change, ref Ref, before map[string]any, r *report) error {
	now, err := u.api.Get(ctx, ref)
	if err != nil {
		return err
	}
	owner := controller(before)
	switch {
	case now != nil && !terminating(now):
		r.did("%s has been made anew by somebody else", ref)
		return nil
	case ref.Resource == "pods" && owner != "":
		r.did("the pod is left to its %s, which makes another", owner)
		return nil
	case ref.Resource == "jobs" && ended(before):
		r.lacks("%s had ended and would run again, so it is not created anew", ref)
		return nil
	case now != nil:
		if gone, err := u.hurry(ctx, ref, now, r); err != nil || !gone {
			return err
		}
	}
	adopt := ref.Resource != crds
	if adopt {
		u.bring(ctx, c.Children, true, r)
	}
	made, err := u.create(ctx, ref, before, r)
	if err != nil || made == nil {
		return err
	}
	r.did("created anew, with another uid")
	if ref.Resource == "serviceaccounts" {
		r.lacks("%s: tokens that pods were given before are not valid any more, until they are renewed", ref)
	}
	if !adopt {
		if err := u.established(ctx, ref); err != nil {
			return err
		}
		u.bring(ctx, c.Children, false, r)
	}
	return nil
}

const crds = "customresourcedefinitions"

// hurry makes an object that is being deleted be gone, so that it can be created anew: a deletion cannot be called off.
func (u *Undoer) hurry(ctx context.Context, ref Ref, now map[string]any, r *report) (gone bool, err error) {
	if ref.Resource == "pods" {
		err := u.api.Delete(ctx, ref, Deletion{UID: uid(now), Now: true})
		if err != nil && !apierrors.IsNotFound(err) {
			return false, err
		}
	}
	if _, err := u.release(ctx, ref, uid(now), finalizers(now)); err != nil {
		return false, err
	}
	n := len(r.left)
	err = u.awaitGone(ctx, ref, uid(now), r)
	return len(r.left) == n, err
}

// create creates an object as it was. It returns nil if somebody else was faster.
func (u *Undoer) create(ctx context.Context, ref Ref, before map[string]any, r *report) (map[string]any, error) {
	o := fresh(before, ref.Resource, u.uids)
	made, err := u.api.Create(ctx, ref, o)
	if apierrors.IsInvalid(err) && ref.Resource == "services" {
		// Somebody else has its address or its ports by now.
		o["spec"] = withoutAddress(spec(o))
		if made, err = u.api.Create(ctx, ref, o); err == nil {
			r.lacks("%s has another address, because its own is taken", ref)
		}
	}
	if apierrors.IsAlreadyExists(err) {
		r.did("%s has been made anew by its controller", ref)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	u.created(before, made)
	return made, nil
}

// withoutAddress is the spec of a Service without what is drawn for it.
func withoutAddress(s map[string]any) map[string]any {
	s = maps.Clone(s)
	delete(s, "clusterIP")
	delete(s, "clusterIPs")
	delete(s, "healthCheckNodePort")
	ports, _ := s["ports"].([]any)
	ports = slices.Clone(ports)
	for i, v := range ports {
		p, _ := v.(map[string]any)
		p = maps.Clone(p)
		delete(p, "nodePort")
		ports[i] = p
	}
	s["ports"] = ports
	return s
}

// bring creates children of an object that was deleted. As orphans they come before it, and it adopts them: so the
// releases of a workload, which are its ReplicaSets, are its own again.
func (u *Undoer) bring(ctx context.Context, children []Object, orphans bool, r *report) {
	n := 0
	for _, c := range children {
		before := decode(c.Before)
		if orphans {
			before = maps.Clone(before)
			before["metadata"] = maps.Clone(metadata(before))
			delete(metadata(before), "ownerReferences")
		}
		if err := u.bringOne(ctx, c.Ref, before, r); err != nil {
			r.lacks("%s: %s", c.Ref, oneLine(err))
			continue
		}
		n++
	}
	if n > 0 {
		r.did("%d of what it owned created anew", n)
	}
}

// bringOne waits until the garbage collector has deleted the old one, if it is to.
func (u *Undoer) bringOne(ctx context.Context, ref Ref, before map[string]any, r *report) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		now, err := u.api.Get(ctx, ref)
		switch {
		case err != nil:
			return err
		case now == nil:
			_, err := u.create(ctx, ref, before, r)
			return err
		case controller(now) == "" && !terminating(now):
			return nil // It was orphaned, and will be adopted.
		case terminating(now):
			if _, err := u.release(ctx, ref, uid(now), finalizers(now)); err != nil {
				return err
			}
		}
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			return fmt.Errorf("the one that goes is not gone yet%s", waitsFor(now))
		}
	}
}

// established waits until the API of a resource definition is served.
func (u *Undoer) established(ctx context.Context, ref Ref) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		now, err := u.api.Get(ctx, ref)
		if err != nil {
			return err
		}
		status, _ := now["status"].(map[string]any)
		list, _ := status["conditions"].([]any)
		if slices.ContainsFunc(list, func(v any) bool {
			c, _ := v.(map[string]any)
			return c["type"] == "Established" && c["status"] == "True"
		}) {
			return nil
		}
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			return fmt.Errorf("the API of %s is not served yet", ref.Name)
		}
	}
}

// lasting are resources that are never deleted in order to be created anew: too much would go with them.
var lasting = []string{"namespaces", "nodes", "persistentvolumes", "persistentvolumeclaims", crds}

// putBack puts back the fields of an object that a write has changed.
func (u *Undoer) putBack(ctx context.Context, c Change, ref Ref, before, after map[string]any, r *report) error {
	for range conflictTries {
		now, err := u.api.Get(ctx, ref)
		if err != nil {
			return err
		}
		if now == nil {
			return u.putBackGone(ctx, ref, before, r)
		}
		m := &merger{}
		next, subresource := m.apply(c.Subresource, before, after, now)
		if next == nil {
			r.did("%s is as it was", ref)
			return nil
		}
		_, err = u.api.Update(ctx, ref, subresource, next)
		switch {
		case apierrors.IsConflict(err):
			continue
		case apierrors.IsInvalid(err) || apierrors.IsForbidden(err):
			return u.replace(ctx, ref, now, next, err, r)
		case err != nil:
			return err
		}
		r.did("put back %s", paths(append(m.put, m.conflicts...)))
		if slices.ContainsFunc(m.put, func(p string) bool { return within(p, "spec.template") }) {
			r.did("the release that it was stays in the history of the workload, with no pods")
		}
		if len(m.conflicts) > 0 {
			r.did("somebody else had changed %s since", paths(m.conflicts))
		}
		return nil
	}
	return fmt.Errorf("it changes all the time")
}

// apply puts fields back in now. It returns nil if there are none to put back, and what of the object is to be written.
func (m *merger) apply(subresource string, before, after, now map[string]any) (next map[string]any, which string) {
	if subresource == "status" {
		status := m.merge("status", at(before, "status"), at(after, "status"), at(now, "status"))
		if len(m.put)+len(m.conflicts) == 0 {
			return nil, ""
		}
		next = maps.Clone(now)
		next["status"] = status
		return next, "status"
	}
	merged, _ := m.merge("", any(plain(before)), any(plain(after)), any(plain(now))).(map[string]any)
	if len(m.put)+len(m.conflicts) == 0 {
		return nil, ""
	}
	next = maps.Clone(merged)
	if status, ok := now["status"]; ok {
		next["status"] = status
	}
	own := maps.Clone(metadata(merged))
	for _, f := range serverFields {
		if v, ok := metadata(now)[f]; ok && f != "managedFields" {
			own[f] = v
		}
	}
	next["metadata"] = own
	if subresource == "resize" {
		return next, subresource
	}
	return next, ""
}

// putBackGone deals with an object that is not there any more. One that was being deleted before the write, and waited
// for a finalizer that the write has taken away, waits again.
func (u *Undoer) putBackGone(ctx context.Context, ref Ref, before map[string]any, r *report) error {
	if !terminating(before) || slices.Contains(lasting, ref.Resource) || ref.Resource == "pods" {
		r.lacks("%s is not there any more, so nothing can be put back", ref)
		return nil
	}
	made, err := u.create(ctx, ref, before, r)
	if err != nil || made == nil {
		return err
	}
	r.did("created anew with its finalizers, and deleted: so it waits for them again")
	return u.api.Delete(ctx, ref, Deletion{UID: uid(made)})
}

// replace deletes an object and creates it as it is to be, because the API does not let it be changed back.
func (u *Undoer) replace(ctx context.Context, ref Ref, now, next map[string]any, why error, r *report) error {
	if slices.Contains(lasting, ref.Resource) {
		return fmt.Errorf("it cannot be changed back: %w", why)
	}
	owner := controller(now)
	d := Deletion{UID: uid(now), Orphan: true, Now: ref.Resource == "pods"}
	if err := u.api.Delete(ctx, ref, d); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if ref.Resource == "pods" && owner != "" {
		r.did("deleted, because it cannot be changed back: its %s makes another", owner)
		return nil
	}
	if gone, err := u.hurry(ctx, ref, now, r); err != nil || !gone {
		return err
	}
	if made, err := u.create(ctx, ref, next, r); err != nil || made == nil {
		return err
	}
	r.did("deleted and created anew as it was, because the API does not let it be changed back")
	return nil
}

// maxPaths are shown.
const maxPaths = 8

// paths are fields, in words.
func paths(list []string) string {
	if n := len(list) - maxPaths; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:maxPaths], ", "), n)
	}
	return strings.Join(list, ", ")
}
