package guard

import (
	"bytes"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/guard/undo"
)

const (
	// MaxBody is the size of the largest request for an object, which is the API server's own limit.
	MaxBody = 3 << 20
	// maxAnswer bounds what is read of an answer that has to be filtered.
	maxAnswer = 512 << 20
)

// exchange is a request that is passed on, and what is done with the answer.
type exchange struct {
	guard  *Guard
	from   *caller
	target target
	answer *answer // filters objects; nil for other documents
	filter filter  // filters other documents; nil for none
	json   bool    // whether JSON is asked for, whatever the client would rather have
	text   bool    // whether plain text is
	entry  *Entry  // for the journal; nil for reads
	before []byte  // the object before a write
	past   *past   // the same, while it is read beside the write
	lost   bool    // whether it could not be read
	// Of a write: what goes with the object, how to let others write, and whether it has taken room in a transaction.
	children []undo.Object
	unlock   func()
	end      func() // of its context
	taken    bool
	kept     cloud.Kept // the container that the command is run in, in a transaction
}

// handler answers the requests of the agent's own clients.
func (g *Guard) handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.visit() {
			writeStatus(w, unavailable())
			return
		}
		defer g.visits.Done()
		if !g.authenticates(r) {
			writeStatus(w, newStatus(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized"))
			return
		}
		g.serve(w, r, g.agent())
	})
}

// serve answers all requests.
func (g *Guard) serve(w http.ResponseWriter, r *http.Request, from *caller) {
	if !g.enter() {
		writeStatus(w, unavailable())
		return
	}
	defer g.requests.Done()
	if !from.network && strings.HasPrefix(r.URL.Path, TransactionPath) {
		g.serveTransaction(w, r)
		return
	}
	if g.shadow != nil {
		g.serveShadow(w, r, from)
		return
	}
	switch t, resource := parseTarget(r.Method, r.URL); {
	case resource && impersonated(r) != "":
		// Discovery is the same for all, and clients show no more than "unknown" of a refusal there.
		writeStatus(w, newStatus(http.StatusForbidden, metav1.StatusReasonForbidden,
			"users %q is forbidden: User %q cannot impersonate resource \"users\" in API group \"\" at "+
				"the cluster scope", impersonated(r), from.name(r.Context())))
	case resource:
		g.serveResource(w, r, from, t)
	default:
		g.serveOther(w, r, from)
	}
}

func (g *Guard) authenticates(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && subtle.ConstantTimeCompare([]byte(strings.TrimSpace(token)), []byte(g.token)) == 1
}

// impersonate is how the headers begin by which a request acts as somebody else.
const impersonate = "Impersonate-"

// impersonated says whom a request wants to act as; empty if it does not.
func impersonated(r *http.Request) string {
	for name, values := range r.Header {
		if strings.HasPrefix(name, impersonate) {
			if u := r.Header.Get("Impersonate-User"); u != "" {
				return u
			}
			return strings.Join(append(values, "unknown")[:1], "")
		}
	}
	return ""
}

// forward passes a request on and the answer back.
func (x *exchange) forward(w http.ResponseWriter, r *http.Request) {
	p := httputil.ReverseProxy{
		Rewrite: x.rewrite, Transport: x.from.via, ModifyResponse: x.modify, FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { x.fail(w, err) },
		ErrorLog:     x.guard.errors,
	}
	if r.Header.Get("Upgrade") != "" {
		if x.streams() {
			p.Transport = x.from.upgrades
		} else {
			// Streams of objects inside another protocol could not be read.
			r.Header.Del("Upgrade")
			r.Header.Del("Connection")
		}
	}
	p.ServeHTTP(w, r)
}

// streams reports whether the answer is a stream of somebody else than the API server.
func (x *exchange) streams() bool { return x.target.Verb == "connect" || x.target.Subresource == "log" }

// rewrite makes a request one to the API server. It says whom it is from, unless the transport does.
func (x *exchange) rewrite(pr *httputil.ProxyRequest) {
	out, up := pr.Out, x.guard.upstream
	out.URL.Scheme, out.URL.Host, out.Host = up.Scheme, up.Host, up.Host
	if prefix := strings.TrimSuffix(up.Path, "/"); prefix != "" {
		out.URL.Path = prefix + out.URL.Path
		if out.URL.RawPath != "" {
			out.URL.RawPath = prefix + out.URL.RawPath
		}
	}
	h := out.Header
	for name := range h {
		if strings.HasPrefix(name, "X-Remote-") || strings.HasPrefix(name, impersonate) {
			delete(h, name)
		}
	}
	x.from.credit(h)
	if !x.from.network {
		withoutTokens(h)
	}
	if !x.streams() || x.filter != nil {
		h.Del("Accept-Encoding")
		h.Del("Range")
	}
	switch {
	case x.answer != nil:
		query := out.URL.Query()
		t := x.target
		x.answer.form = ask(h, query, x.guard.veil.needsSpec(t.Group, t.Resource))
		if query.Get("includeObject") != pr.In.URL.Query().Get("includeObject") {
			out.URL.RawQuery = query.Encode()
		}
	case x.json:
		h.Set("Accept", strings.Join(jsonTypes(h.Values("Accept")), ", "))
	case x.text:
		h.Set("Accept", "text/plain")
	}
}

// withoutTokens removes the tokens that browsers send as the name of a protocol.
func withoutTokens(h http.Header) {
	const name, token = "Sec-Websocket-Protocol", "base64url.bearer.authorization.k8s.io."
	var kept []string
	for _, v := range h.Values(name) {
		for p := range strings.SplitSeq(v, ",") {
			if p = strings.TrimSpace(p); !strings.HasPrefix(p, token) {
				kept = append(kept, p)
			}
		}
	}
	if h.Del(name); len(kept) > 0 {
		h.Set(name, strings.Join(kept, ", "))
	}
}

// fail answers a request that the API server did not.
func (x *exchange) fail(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, context.Canceled):
		// Nobody hears it but the journal.
		x.refuse(w, newStatus(statusClientGone, metav1.StatusReasonTimeout,
			"the client left before the answer: whether anything was written is not known"))
	case errors.Is(err, errJSON):
		x.refuse(w, apierrors.NewInternalError(err))
	default:
		x.refuse(w, unavailable())
	}
}

// statusClientGone is what servers commonly log for a client that left.
const statusClientGone = 499

// note journals a write that did not get to the API server.
func (x *exchange) note(status int, message string) {
	x.settlePast(x.guard.ctx, 0)
	if x.entry != nil {
		x.entry.Status, x.entry.Error = status, message
		var now []byte
		if t := x.subject(); status == statusClientGone && t.Name != "" && t.Verb != "connect" {
			now = x.guard.fetch(x.guard.ctx, t, nil)
			x.entry.After = x.entry.bound("after", x.cleaned(now))
		}
		x.close(now)
	}
}

// refuse answers with an error. It is journalled if the request was a write.
func (x *exchange) refuse(w http.ResponseWriter, err *apierrors.StatusError) {
	x.note(int(err.ErrStatus.Code), err.ErrStatus.Message)
	writeStatus(w, err)
}

// aggregation is the group that the aggregator itself serves: there is no other way to it.
const aggregation = "apiregistration.k8s.io"

// fetch reads from the API with the lab's rights. It returns nil if there is nothing to read.
func (g *Guard) fetch(ctx context.Context, t target, query url.Values) []byte {
	base, via := g.direct, g.asLabDirect
	if t.Group == aggregation {
		base, via = g.upstream, g.asLab
	}
	u := *base
	u.Path, u.RawPath = "", ""
	full, err := u.Parse(strings.TrimSuffix(base.Path, "/") + t.path())
	if err != nil {
		return nil
	}
	full.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, full.String(), nil)
	if err != nil {
		return nil
	}
	req.Header.Set("Accept", jsonType)
	resp, err := via.RoundTrip(req)
	if err != nil {
		return nil
	}
	b, err := readAnswer(resp)
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil
	}
	return bytes.TrimSpace(b)
}

// look reads an object with the lab's rights, or returns nil.
func (g *Guard) look(o object) []byte {
	t := target{Group: o.group, Version: o.version, Resource: o.resource, Namespace: o.namespace, Name: o.name}
	return g.fetch(g.ctx, t, nil)
}

// nodeProxy decides about a request to a kubelet, see nodePath.
func (x *exchange) nodeProxy(r *http.Request) bool {
	p := strings.Join(x.target.Rest, "/")
	f, open := x.guard.veil.nodePath(p, r.URL.Query())
	x.filter, x.text = f, strings.HasPrefix(p, "metrics")
	return open && (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header.Get("Upgrade") == ""
}

// writes are the verbs with a body that is about objects.
var writes = []string{"create", "update", "patch", "delete", "deletecollection"}

// serveResource answers a request about objects.
func (g *Guard) serveResource(w http.ResponseWriter, r *http.Request, from *caller, t target) {
	x := &exchange{guard: g, from: from, target: t}
	if t.journalled(r.Method) {
		x.entry = newEntry(t, r)
		if from.network {
			x.entry.User, x.entry.From = from.name(r.Context()), from.address
		}
	}
	switch {
	case t.ambiguous(r.URL):
		x.refuse(w, apierrors.NewBadRequest("the path is not that of a resource"))
		return
	case g.veil.hidesGroup(t.Group):
		x.note(http.StatusNotFound, "404 page not found")
		writeNoPage(w)
		return
	case t.Name != "" && g.veil.hides(t.object()):
		x.refuse(w, t.notFound())
		return
	case t.Verb == "create" && g.veil.hidesNamespace(t.Namespace):
		x.refuse(w, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, t.Namespace))
		return
	case t.Resource == "nodes" && t.Subresource == "proxy" && !x.nodeProxy(r):
		x.refuse(w, forbidden(from.name(r.Context()), "connect to",
			"the kubelet's path \"/"+strings.Join(t.Rest, "/")+"\"", kubeletAdvice))
		return
	}
	write := slices.Contains(writes, t.Verb)
	if write && !x.readBody(w, r) {
		return
	}
	defer func() {
		x.settlePast(r.Context(), 0)
		x.release()
		if x.end != nil {
			x.end()
		}
	}()
	if g.opts.Policy == nil && !x.alone(w, &r) {
		return
	}
	// An object's labels, or what it refers to, may hide it. A read without a subresource shows that
	// in the answer.
	judged := t.Name != "" && (write || t.Subresource != "") && g.veil.needsObject(t.Group, t.Resource)
	subject := t
	if x.entry != nil {
		subject = x.subject()
	}
	journalled := x.entry != nil && t.Verb != "connect" && subject.Name != ""
	known := judged || write && t.Group == aggregation && subject.Name != ""
	if known {
		x.before = g.fetch(r.Context(), subject, nil)
		o := t.object()
		if o.raw = x.before; judged && o.raw != nil && g.veil.hides(o) {
			x.before = nil
			x.refuse(w, t.notFound())
			return
		}
	}
	if write && t.Group == aggregation && ownAPI(t, x.before) {
		x.refuse(w, forbidden(from.name(r.Context()), t.Verb, "an APIService of the API server's own",
			"register APIs of your own under other names"))
		return
	}
	if !x.permitted(w, r) || !x.ofRun(w, r) {
		return
	}
	if g.opts.Policy != nil { // Somebody may have been asked, which takes long.
		if !x.alone(w, &r) {
			return
		}
		known = false
	}
	beside := journalled && !known && g.besides(x)
	if journalled && !known && !beside {
		x.before = g.fetch(r.Context(), subject, nil)
	}
	if !x.streams() {
		x.answer = &answer{veil: g.veil, target: t}
	}
	if t.Verb == "deletecollection" {
		x.deleteCollection(w, r)
		return
	}
	end, ok := x.admit(w, r)
	if !ok {
		return
	}
	defer end()
	if beside {
		x.readBeside(r.Context(), subject)
	}
	x.forward(w, r)
}

// ownAPI reports whether a write is to an APIService that the API server keeps itself. One that is
// sent elsewhere would leave its controllers blind, and what they remember of it outlives even a
// reset of the cluster.
func ownAPI(t target, before []byte) bool {
	const keeper = "kube-aggregator.kubernetes.io/automanaged"
	return t.Verb == "deletecollection" || object{raw: before}.labels()[keeper] != ""
}

// readBody reads the body of a write, so that it can be journalled. It reports false if it has
// answered because there was none to pass on.
func (x *exchange) readBody(w http.ResponseWriter, r *http.Request) bool {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if tooLong, ok := errors.AsType[*http.MaxBytesError](err); ok {
		if x.entry != nil {
			x.entry.cut("request", max(r.ContentLength, tooLong.Limit+1))
		}
		x.refuse(w, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", tooLong.Limit)))
		return false
	} else if err != nil {
		x.refuse(w, apierrors.NewBadRequest("the request ends too early"))
		return false
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
	if len(b) == 0 {
		r.Body = http.NoBody
	}
	if x.entry != nil {
		x.entry.setRequest(r.Header.Get("Content-Type"), b)
	}
	return true
}
