package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/flowcontrol"
)

// This file is the guard of a shadow run: the cluster is live, and the agent only reads. The rules are:
//
//   - Nothing but GET and HEAD goes to the API server, without a body, an upgrade or any header of the agent's but
//     what it accepts. This is decided by the method and the path, before there is a connection, and once more by the
//     transport, which cannot send anything else.
//   - What would be a write is refused, and told to the journal as a proposal. So are exec, attach, port-forward and
//     proxy, whatever their method. A dry run is refused as well: webhooks would see it.
//   - Reads are those of the namespaces that were named, without Secrets, and of what all of a cluster has in common.
//   - No rights are made in the cluster, and nobody is impersonated: reads have the rights of the kubeconfig's user.

const (
	// shadowAtOnce is how many requests may be under way, watches included, and shadowRate and shadowBurst how many
	// there may be a second: the cluster is somebody's.
	shadowAtOnce = 64
	shadowRate   = 50
	shadowBurst  = 200
	// maxProposals is how many proposals the journal is told of, and maxProposed how many bytes they have in all.
	maxProposals = 1000
	maxProposed  = 32 << 20
)

// shadow is what a guard has for a shadow run.
type shadow struct {
	slots     chan struct{}
	limit     flowcontrol.RateLimiter
	proposals atomic.Int64
	bytes     atomic.Int64
}

func newShadow() *shadow {
	return &shadow{
		slots: make(chan struct{}, shadowAtOnce), limit: flowcontrol.NewTokenBucketRateLimiter(shadowRate, shadowBurst),
	}
}

// ErrShadow is why a request of a shadow run is not sent.
var ErrShadow = errors.New("this is a shadow run: nothing but reads is sent to the cluster")

// readOnly is a transport that cannot send anything but reads.
type readOnly struct {
	next   http.RoundTripper
	prefix string // of the API server's paths
}

// RoundTrip implements http.RoundTripper.
func (o readOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	u := *r.URL
	u.Path = strings.TrimPrefix(u.Path, o.prefix)
	t, resource := parseTarget(r.Method, &u)
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead,
		r.Header.Get("Upgrade") != "", r.ContentLength != 0, r.Body != nil && r.Body != http.NoBody,
		resource && !slices.Contains(shadowSubresources, t.Subresource):
		return nil, ErrShadow
	}
	return o.next.RoundTrip(r)
}

// WrappedRoundTripper is for who closes connections.
func (o readOnly) WrappedRoundTripper() http.RoundTripper { return o.next }

// shadowSubresources are those that are read, and connect to nothing.
var shadowSubresources = []string{"", "status", "scale", "log"}

// shadowCommon are the resources that are in no namespace and that all of a cluster has in common.
var shadowCommon = []string{
	"nodes", "nodes.metrics.k8s.io", "storageclasses.storage.k8s.io", "priorityclasses.scheduling.k8s.io",
	"ingressclasses.networking.k8s.io",
}

// serveShadow answers a request of a shadow run.
func (g *Guard) serveShadow(w http.ResponseWriter, r *http.Request, from *caller) {
	select {
	case g.shadow.slots <- struct{}{}:
		defer func() { <-g.shadow.slots }()
	default:
		writeStatus(w, apierrors.NewTooManyRequests(
			fmt.Sprintf("shadow run: %d requests are under way; end a watch first", shadowAtOnce), 1))
		return
	}
	if !g.shadow.limit.TryAccept() {
		writeStatus(w, apierrors.NewTooManyRequests("shadow run: too many requests a second", 1))
		return
	}
	t, resource := parseTarget(r.Method, r.URL)
	read := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case !resource && !read:
		writeStatus(w, refusal("%s of %s is not sent", r.Method, r.URL.Path))
	case !resource:
		g.serveOther(w, plain(r), from)
	case t.ambiguous(r.URL):
		writeStatus(w, apierrors.NewBadRequest("the path is not that of a resource"))
	case t.Group == "authorization.k8s.io" || t.Group == "authentication.k8s.io":
		writeStatus(w, refusal("reviews are not sent: it may read %s, and write nothing", g.mayRead()))
	case !read || t.Verb == "connect":
		g.propose(w, r, t)
	default:
		if why := g.outOfSight(t); why != "" {
			writeStatus(w, refusal("%s", why))
			return
		}
		g.serveResource(w, plain(r), from, t)
	}
}

// refusal is an answer that says that this is a shadow run.
func refusal(format string, args ...any) *apierrors.StatusError {
	return newStatus(http.StatusForbidden, metav1.StatusReasonForbidden, "shadow run: "+format, args...)
}

// plain is a read with nothing of the agent's in it but the path, the query and what it accepts.
func plain(r *http.Request) *http.Request {
	r = r.Clone(r.Context())
	h := http.Header{}
	if accept := r.Header.Values("Accept"); len(accept) > 0 {
		h["Accept"] = accept
	}
	r.Header, r.Body, r.ContentLength, r.TransferEncoding, r.Trailer = h, http.NoBody, 0, nil, nil
	return r
}

// mayRead are the namespaces, in words.
func (g *Guard) mayRead() string { return "the namespace " + strings.Join(g.opts.Namespaces, ", ") }

// outOfSight says why something is not shown, or "".
func (g *Guard) outOfSight(t target) string {
	switch {
	case t.Group == "" && t.Resource == "secrets":
		return "secrets are not shown"
	case !slices.Contains(shadowSubresources, t.Subresource) || len(t.Rest) > 0:
		return fmt.Sprintf("%s/%s is not shown", t.Resource, t.Subresource)
	case t.Namespace != "":
		if !slices.Contains(g.opts.Namespaces, t.Namespace) {
			return fmt.Sprintf("namespace %s is not shown: it may read %s; --namespace adds others", t.Namespace,
				g.mayRead())
		}
		return ""
	case t.Group == "" && t.Resource == "namespaces":
		if !slices.Contains(g.opts.Namespaces, t.Name) {
			return "other namespaces are not shown: it may read " + g.mayRead()
		}
		return ""
	case !slices.Contains(shadowCommon, t.groupResource().String()):
		return fmt.Sprintf("%s of the whole cluster are not shown: it may read %s", t.groupResource(), g.mayRead())
	}
	return ""
}

// propose refuses a write, and tells the journal what it would have been.
func (g *Guard) propose(w http.ResponseWriter, r *http.Request, t target) {
	e := newEntry(t, r)
	if e.Verb == "watch" { // By its path, but not by its method.
		e.Verb = verbs[r.Method]
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	switch {
	case err != nil:
		writeStatus(w, apierrors.NewBadRequest("the request ends too early"))
		return
	case len(body) > MaxBody:
		e.cut("request", int64(len(body)))
	default:
		e.setRequest(r.Header.Get("Content-Type"), body)
	}
	var named struct {
		Metadata struct{ Name string }
	}
	if e.Verb == "create" && e.Name == "" && json.Unmarshal(e.Request, &named) == nil {
		e.Name = named.Metadata.Name
	}
	if n := int64(len(e.Request)); g.shadow.bytes.Add(n) > maxProposed && n > 0 {
		e.Request = nil
		e.cut("request", n)
	}
	verdict := refusal("nothing is written; %s is recorded as a proposal", e.what())
	if e.DryRun {
		verdict = refusal("a dry run is not sent either: webhooks would see %s", e.what())
	}
	e.Proposal, e.Status, e.Error = true, http.StatusForbidden, verdict.ErrStatus.Message
	if g.shadow.proposals.Add(1) <= maxProposals {
		g.journal.add(e)
	}
	writeStatus(w, verdict)
}

// what says in words what a write is about.
func (e *Entry) what() string {
	resource := e.Resource
	if e.Group != "" {
		resource += "." + e.Group
	}
	if e.Subresource != "" {
		resource += "/" + e.Subresource
	}
	text := e.Verb + " " + resource
	if e.Name != "" {
		text += " " + e.Name
	}
	if e.Namespace != "" {
		text += " in " + e.Namespace
	}
	return text
}

// Proposals is how many writes were refused in a shadow run.
func (g *Guard) Proposals() int64 {
	if g.shadow == nil {
		return 0
	}
	return g.shadow.proposals.Load()
}
