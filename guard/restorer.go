package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/aiopslab/aiopslab/guard/undo"
)

// restorer writes to the API with the lab's rights, in a way that nothing in the cluster can redirect or refuse: what
// an agent registers there has no say in how its writes are taken back. Its own writes are journalled. What is hidden
// from the agent is not there for it either.
type restorer struct {
	guard *Guard
	seq   int // of the write that is taken back
}

var _ undo.API = (*restorer)(nil)

func targetOf(r undo.Ref) target {
	return target{Group: r.Group, Version: r.Version, Resource: r.Resource, Namespace: r.Namespace, Name: r.Name}
}

// Get reads an object.
func (s *restorer) Get(ctx context.Context, r undo.Ref) (map[string]any, error) {
	doc, err := s.send(ctx, http.MethodGet, targetOf(r), "", nil)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	o := targetOf(r).object()
	if o.raw = doc; s.guard.veil.hides(o) {
		return nil, nil
	}
	return parse(withoutManaged(doc))
}

// Create creates an object.
func (s *restorer) Create(ctx context.Context, r undo.Ref, o map[string]any) (map[string]any, error) {
	t := targetOf(r)
	t.Name = ""
	return s.write(ctx, http.MethodPost, "create", r, t, "", o)
}

// Update writes an object or its subresource.
func (s *restorer) Update(ctx context.Context, r undo.Ref, subresource string, o map[string]any,
) (map[string]any, error) {
	return s.write(ctx, http.MethodPut, "update", r, targetOf(r), subresource, o)
}

// Delete deletes an object.
func (s *restorer) Delete(ctx context.Context, r undo.Ref, d undo.Deletion) error {
	options := map[string]any{
		"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": metav1.DeletePropagationBackground,
	}
	if d.Orphan {
		options["propagationPolicy"] = metav1.DeletePropagationOrphan
	}
	if d.UID != "" {
		options["preconditions"] = map[string]any{"uid": d.UID}
	}
	if d.Now {
		options["gracePeriodSeconds"] = 0
	}
	_, err := s.write(ctx, http.MethodDelete, "delete", r, targetOf(r), "", options)
	return err
}

// write sends a write and journals it.
func (s *restorer) write(ctx context.Context, method, verb string, r undo.Ref, t target, subresource string,
	o map[string]any,
) (map[string]any, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	e := &Entry{
		Time: time.Now().UTC(), Verb: verb, Group: r.Group, Version: r.Version, Resource: r.Resource,
		Namespace: r.Namespace, Name: r.Name, Subresource: subresource, Undoes: s.seq, Status: http.StatusOK,
	}
	doc, err := s.send(ctx, method, t, subresource, body)
	if err != nil {
		e.Status, e.Error = http.StatusServiceUnavailable, err.Error()
		if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
			e.Status, e.Error = int(status.ErrStatus.Code), status.ErrStatus.Message
		}
	} else if verb != "delete" {
		x := exchange{guard: s.guard, target: t}
		e.After = e.bound("after", x.cleaned(doc))
	}
	s.guard.journal.add(e)
	if err != nil {
		return nil, err
	}
	return parse(doc)
}

// send makes a request. Errors of the API server are [apierrors.StatusError].
func (s *restorer) send(ctx context.Context, method string, t target, subresource string, body []byte) ([]byte, error) {
	g := s.guard
	base, via := g.direct, g.asLabDirect
	if t.Group == aggregation {
		base, via = g.upstream, g.asLab
	}
	path := t.path()
	if subresource != "" {
		path += "/" + url.PathEscape(subresource)
	}
	u := *base
	u.Path, u.RawPath = "", ""
	full, err := u.Parse(strings.TrimSuffix(base.Path, "/") + path)
	if err != nil {
		return nil, err
	}
	var content io.Reader = http.NoBody
	if body != nil {
		content = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, full.String(), content)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", jsonType)
	if body != nil {
		req.Header.Set("Content-Type", jsonType)
	}
	resp, err := via.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	doc, err := readAnswer(resp)
	if err != nil || resp.StatusCode < 300 {
		return bytes.TrimSpace(doc), err
	}
	var status metav1.Status
	if json.Unmarshal(doc, &status) != nil || status.Code == 0 {
		return nil, fmt.Errorf("the API server answered with status %d", resp.StatusCode)
	}
	return nil, &apierrors.StatusError{ErrStatus: status}
}

// parse reads an object. Numbers stay as they are written.
func parse(doc []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var o map[string]any
	err := d.Decode(&o)
	return o, err
}
