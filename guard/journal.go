package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// MaxRecorded is the size of the largest object or request that an Entry holds. The API server's
// store takes little more.
const MaxRecorded = 2 << 20

// Entry is a write as the journal has it.
//
// Before is read just before the write and, for subresources, After just after it. If somebody else writes to the same
// object at that moment, they may be off by that one's change. Where the guard knows how far the store is, see
// [Options.Revision], Before is exact for updates and patches that have changed something.
type Entry struct {
	Seq  int       `json:"seq"` // from 1
	Time time.Time `json:"time"`
	// Verb is create, update, patch, delete, deletecollection, connect, or restore of what a command did.
	Verb        string `json:"verb"`
	Group       string `json:"group,omitempty"`
	Version     string `json:"version"`
	Resource    string `json:"resource"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	UserAgent   string `json:"user_agent,omitempty"`
	// User is who wrote, and From the address it came from, if it came over the cluster's network
	// with credentials of its own; empty for the agent's own clients.
	User   string `json:"user,omitempty"`
	From   string `json:"from,omitempty"`
	DryRun bool   `json:"dry_run,omitempty"` // nothing was changed
	// Proposal says that it was not sent: this is a shadow run.
	Proposal bool `json:"proposal,omitempty"`
	// Command is what an exec runs.
	Command []string `json:"command,omitempty"`
	// ContentType is the request's; it tells the kinds of patches apart.
	ContentType string `json:"content_type,omitempty"`
	// Request is the body, as JSON whatever it came in.
	Request json.RawMessage `json:"request,omitempty"`
	// Before and After are the object, without managed fields: nil where there is none. Before a
	// deletecollection it is the list. Around a write to a subresource it is the object itself.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
	Status int             `json:"status"`          // HTTP's
	Error  string          `json:"error,omitempty"` // what the API server said against it
	// Policy is what the policy says of it, if there is one.
	Policy *Ruling `json:"policy,omitempty"`
	// Children are what goes with an object that is deleted and does not come again by itself: the releases of a
	// workload, the objects of a resource definition.
	Children []json.RawMessage `json:"children,omitempty"`
	// Transaction is the number of the one that it was made in, and Undoes that of the write that it takes back; 0 for
	// none.
	Transaction int `json:"transaction,omitempty"`
	Undoes      int `json:"undoes,omitempty"`
	// Irreversible says why it cannot be taken back, if it cannot.
	Irreversible string `json:"irreversible,omitempty"`
	// Kept is the container that was kept before a command in it, or put back, as namespace/pod/container.
	Kept string `json:"kept,omitempty"`
	// Cut names what of request, before, after and children is left out for its size, and its size in bytes.
	Cut map[string]int64 `json:"cut,omitempty"`
}

// journal gives entries their order.
type journal struct {
	write func(Entry)

	mu  sync.Mutex
	seq int
}

func (j *journal) add(e *Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seq++
	e.Seq = j.seq
	if j.write != nil {
		j.write(*e)
	}
}

func newEntry(t target, r *http.Request) *Entry {
	query := r.URL.Query()
	return &Entry{
		Time: time.Now().UTC(), Verb: t.Verb, Group: t.Group, Version: t.Version, Resource: t.Resource,
		Namespace: t.Namespace, Name: t.objectName(), Subresource: t.Subresource,
		UserAgent: r.UserAgent(), DryRun: slices.Contains(query["dryRun"], "All"), Command: query["command"],
	}
}

// cut notes that something is left out.
func (e *Entry) cut(what string, size int64) {
	if e.Cut == nil {
		e.Cut = map[string]int64{}
	}
	e.Cut[what] = size
}

// bound returns a document for the entry, or nil if it is too large.
func (e *Entry) bound(what string, doc []byte) json.RawMessage {
	if len(doc) > MaxRecorded {
		e.cut(what, int64(len(doc)))
		return nil
	}
	var b bytes.Buffer
	if len(doc) == 0 || json.Compact(&b, doc) != nil {
		return nil
	}
	return b.Bytes()
}

// setRequest records the body.
func (e *Entry) setRequest(contentType string, body []byte) {
	if len(body) == 0 {
		return
	}
	e.ContentType, _, _ = mime.ParseMediaType(contentType)
	doc, ok := asJSON(e.ContentType, body)
	if !ok {
		e.cut("request", int64(len(body)))
		return
	}
	e.Request = e.bound("request", doc)
	var options struct{ DryRun []string }
	if strings.HasPrefix(e.Verb, "delete") && json.Unmarshal(doc, &options) == nil &&
		slices.Contains(options.DryRun, "All") {
		e.DryRun = true
	}
}

// asJSON reads a body in any encoding that the API server takes, except that of the few clients that
// use CBOR. Text that is no document becomes a string.
func asJSON(contentType string, body []byte) ([]byte, bool) {
	switch {
	case contentType == protobufType:
		obj, kind, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err != nil {
			return nil, false
		}
		obj.GetObjectKind().SetGroupVersionKind(*kind)
		doc, err := json.Marshal(obj)
		return doc, err == nil
	case strings.HasSuffix(contentType, "yaml"):
		if doc, err := yaml.YAMLToJSON(body); err == nil {
			return doc, true
		}
	case json.Valid(body):
		return body, true
	}
	if !utf8.Valid(body) {
		return nil, false
	}
	doc, err := marshalString(string(body))
	return doc, err == nil
}

// finish journals a write that the API server answered with raw, which is doc when it is clean.
func (x *exchange) finish(ctx context.Context, status int, doc, raw []byte) {
	e := x.entry
	e.Status = status
	all, err := fields(doc)
	var made int64
	if err == nil && status < 300 && !e.DryRun {
		made = versionOf(all)
	}
	x.settlePast(ctx, made)
	e.Before = e.bound("before", x.cleaned(x.before))
	var after []byte
	switch {
	case status >= 300:
		e.Error = text(all, "message")
	case err == nil:
		var answered bool
		if after, answered = x.after(ctx, raw, all); answered {
			e.After = e.bound("after", doc)
		} else {
			e.After = e.bound("after", x.cleaned(after))
		}
	}
	if m, err := fields(valueOr(all, "metadata", "{}")); err == nil && e.Name == "" && e.Verb == "create" {
		e.Name = text(m, "name")
	}
	x.close(after)
}

// close journals a write, remembers what the object is after it, and lets others write.
func (x *exchange) close(after []byte) {
	x.guard.journal.add(x.entry)
	x.remember(after)
	x.release()
}

// release lets others write.
func (x *exchange) release() {
	if x.unlock == nil {
		return
	}
	if s := x.entry.Status; x.taken && s >= 300 && s != statusClientGone {
		x.guard.history.giveBack(x.entry.Transaction)
	}
	x.unlock()
	x.unlock, x.taken = nil, false
}

// subject is what a write is about. The way to bind a pod that has a path of its own is about the pod.
func (x *exchange) subject() target {
	t := x.target
	if t.Group != "" || t.Resource != "bindings" || t.Verb != "create" {
		return t
	}
	var named struct {
		Metadata struct{ Name string }
	}
	if json.Unmarshal(x.entry.Request, &named) == nil {
		t.Resource, t.Subresource, t.Name = "pods", "binding", named.Metadata.Name
	}
	return t
}

// cleaned is an object without managed fields.
func (x *exchange) cleaned(raw []byte) []byte {
	if raw == nil {
		return nil
	}
	all, err := fields(raw)
	if err != nil {
		return raw
	}
	out, err := answer{veil: x.guard.veil, target: x.target}.clean(raw, all)
	if err != nil {
		return raw
	}
	return out
}

// veiled reports whether more than the managed fields may be taken out of an object.
func (x *exchange) veiled(raw []byte) bool {
	return answer{veil: x.guard.veil, target: x.target}.images() || x.guard.veil.annotated(raw)
}

// after is the object after a write, and whether that is what was answered.
func (x *exchange) after(ctx context.Context, doc []byte, all []field) (after []byte, answered bool) {
	t := x.subject()
	switch {
	case t.Verb == "deletecollection":
		return nil, false
	case t.Verb == "delete" && t.Subresource == "":
		metadata, err := fields(valueOr(all, "metadata", "{}"))
		if err == nil && text(metadata, "deletionTimestamp") != "" {
			return doc, true // It goes when its finalizers or its grace period allow.
		}
		return nil, false
	case t.Subresource == "" && x.answer.form.as == "":
		return doc, true
	}
	if was, err := fields(x.before); err == nil && text(was, "kind") == text(all, "kind") {
		return doc, true
	}
	if x.entry.DryRun || t.Name == "" {
		return nil, false
	}
	return x.guard.fetch(ctx, t, nil), false
}
