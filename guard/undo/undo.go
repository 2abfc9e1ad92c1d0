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

// Ref names an object of the API.
type Ref struct {
	Group, Version, Resource, Namespace, Name string
}

// String is the object as kubectl would name it, with its namespace.
func (r Ref) String() string {
	resource := r.Resource
	if r.Group != "" {
		resource += "." + r.Group
	}
	if r.Namespace == "" {
		return resource + " " + r.Name
	}
	return resource + " " + r.Name + " in " + r.Namespace
}

// API is how objects are read and written. Errors are those of the API server. It is used by one at a time.
type API interface {
	// Get returns nil without an error if there is no such object.
	Get(ctx context.Context, r Ref) (map[string]any, error)
	Create(ctx context.Context, r Ref, o map[string]any) (map[string]any, error)
	// Update writes an object, or its subresource. The object has the resource version it is based on.
	Update(ctx context.Context, r Ref, subresource string, o map[string]any) (map[string]any, error)
	Delete(ctx context.Context, r Ref, o Deletion) error
}

// Deletion is how an object is deleted.
type Deletion struct {
	UID    string // only the object with this uid
	Orphan bool   // what it owns stays
	Now    bool   // without the time that a pod has to end
}

// Object is what a write did to an object. Before and After are JSON, nil if it was not there.
type Object struct {
	Ref
	Before, After []byte
}

// Change is a write.
type Change struct {
	Seq         int    // its number
	What        string // in words
	Subresource string
	Objects     []Object // one, or all that were deleted together
	// Children are what goes with the object that was deleted, and does not come again by itself.
	Children []Object
	// Never says why it cannot be taken back, if it cannot, and Excused whether that is the lab's doing.
	Never   string
	Excused bool
}

// Outcome is what came of taking a write back.
type Outcome struct {
	Seq  int    `json:"seq"`
	What string `json:"what"` // the write, in words
	Text string `json:"text"` // what was done
	// Left is what could not be restored as it was, in words.
	Left []string `json:"left,omitempty"`
	// Excused says that what is left is the lab's doing: who wrote could not have known.
	Excused bool `json:"excused,omitempty"`
}

const (
	// patience is how long a deleted object may take to be gone. It is a matter of milliseconds, unless somebody else
	// has a say in it.
	patience      = 3 * time.Second
	poll          = 10 * time.Millisecond
	conflictTries = 10
)

// Undoer takes writes back. It is used by one at a time.
type Undoer struct {
	api  API
	uids map[string]string // of objects that were created anew, by the uids they had
}

// New makes an Undoer.
func New(api API) *Undoer { return &Undoer{api: api, uids: map[string]string{}} }

// Use has it use another API from now on. It still knows what it has created anew.
func (u *Undoer) Use(api API) { u.api = api }

// maxUIDs bounds what is remembered of objects that were created anew.
const maxUIDs = 10_000

// report gathers what is done for one write.
type report struct{ done, left []string }

func (r *report) did(format string, args ...any) {
	r.done = append(r.done, fmt.Sprintf(format, args...))
}

func (r *report) lacks(format string, args ...any) {
	r.left = append(r.left, fmt.Sprintf(format, args...))
}

// Undo takes a write back. Writes are taken back from the latest to the earliest.
func (u *Undoer) Undo(ctx context.Context, c Change) Outcome {
	r := &report{}
	if c.Never != "" {
		r.lacks("%s", c.Never)
	} else {
		for _, o := range slices.Backward(c.Objects) {
			u.undo(ctx, c, o, r)
		}
	}
	if len(r.done) == 0 && len(r.left) == 0 {
		r.did("nothing was to be done")
	}
	return Outcome{Seq: c.Seq, What: c.What, Text: strings.Join(r.done, "; "), Left: r.left, Excused: c.Excused}
}

func (u *Undoer) undo(ctx context.Context, c Change, o Object, r *report) {
	before, after := decode(o.Before), decode(o.After)
	deleted := before != nil && !terminating(before) && (after == nil || terminating(after))
	var err error
	switch {
	case before == nil && after == nil:
	case before == nil:
		err = u.remove(ctx, o.Ref, after, r)
	case deleted:
		err = u.restore(ctx, c, o.Ref, before, r)
	default:
		err = u.putBack(ctx, c, o.Ref, before, after, r)
	}
	if err != nil {
		r.lacks("%s: %s", o.Ref, oneLine(err))
	}
}

// oneLine is an error's text without line breaks.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// is reports whether an object is the one that had a uid when it was written.
func (u *Undoer) is(now map[string]any, was string) bool {
	for range len(u.uids) + 1 { // It may have been created anew more than once.
		if was == "" || uid(now) == was {
			return true
		}
		next, ok := u.uids[was]
		if !ok {
			return false
		}
		was = next
	}
	return false
}

// remove deletes what a write has created, with all that it owns.
func (u *Undoer) remove(ctx context.Context, ref Ref, after map[string]any, r *report) error {
	now, err := u.api.Get(ctx, ref)
	switch {
	case err != nil:
		return err
	case now == nil:
		r.did("it is gone already")
		return nil
	case !u.is(now, uid(after)):
		r.lacks("%s: somebody else has created it anew since, so it is left as it is", ref)
		return nil
	}
	if err := u.api.Delete(ctx, ref, Deletion{UID: uid(now), Now: ref.Resource == "pods"}); err != nil &&
		!apierrors.IsNotFound(err) {
		return err
	}
	dropped, err := u.release(ctx, ref, uid(now), finalizers(after))
	if err != nil {
		return err
	}
	if len(dropped) > 0 {
		r.did("deleted, without waiting for its finalizers %s", strings.Join(dropped, ", "))
	} else {
		r.did("deleted")
	}
	return u.awaitGone(ctx, ref, uid(now), r)
}

// release takes finalizers from an object that is being deleted, but for Kubernetes' own, and returns which.
func (u *Undoer) release(ctx context.Context, ref Ref, id string, which []any) (dropped []string, err error) {
	for range conflictTries {
		now, err := u.api.Get(ctx, ref)
		if err != nil || now == nil || uid(now) != id {
			return dropped, err
		}
		dropped = nil
		kept := slices.DeleteFunc(slices.Clone(finalizers(now)), func(f any) bool {
			drop := contains(which, f) && !protected(f)
			if drop {
				dropped = append(dropped, fmt.Sprint(f))
			}
			return drop
		})
		if len(dropped) == 0 {
			return nil, nil
		}
		now = maps.Clone(now)
		now["metadata"] = maps.Clone(metadata(now))
		metadata(now)["finalizers"] = kept
		_, err = u.api.Update(ctx, ref, "", now)
		if err == nil || apierrors.IsNotFound(err) {
			return dropped, nil
		}
		if !apierrors.IsConflict(err) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("its finalizers change all the time: %v", dropped)
}

// awaitGone waits until an object is gone. What is not gone in time is said.
func (u *Undoer) awaitGone(ctx context.Context, ref Ref, id string, r *report) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		now, err := u.api.Get(ctx, ref)
		if err == nil && (now == nil || uid(now) != id) {
			return nil
		}
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			r.lacks("%s is still being deleted%s", ref, waitsFor(now))
			return nil
		}
	}
}

// waitsFor says what holds up a deletion.
func waitsFor(o map[string]any) string {
	var list []string
	for _, f := range finalizers(o) {
		list = append(list, fmt.Sprint(f))
	}
	if len(list) == 0 {
		return ""
	}
	return ", and waits for the finalizers " + strings.Join(list, ", ")
}

// created notes that an object was created anew.
func (u *Undoer) created(was, now map[string]any) {
	if len(u.uids) < maxUIDs && uid(was) != "" && uid(was) != uid(now) {
		u.uids[uid(was)] = uid(now)
	}
}
