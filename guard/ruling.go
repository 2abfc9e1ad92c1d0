package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httputil"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/aiopslab/aiopslab/guard/policy"
)

// Ruling is what came of a write by a policy.
type Ruling struct {
	policy.Decision
	// Asked says that somebody was asked, and Approved what the answer was. By is who answered, and Why what was said.
	Asked    bool   `json:"asked,omitempty"`
	Approved bool   `json:"approved,omitempty"`
	By       string `json:"by,omitempty"`
	Why      string `json:"why,omitempty"`
}

// Question is a change that somebody is to approve of.
type Question struct {
	policy.Change
	Risk    policy.Risk     `json:"risk"`
	Because string          `json:"because"`
	Policy  string          `json:"policy"`            // its name
	Request json.RawMessage `json:"request,omitempty"` // the body, as JSON
}

// Answer is what somebody says to a [Question].
type Answer struct {
	Approved bool   `json:"approved"`
	By       string `json:"by"`
	Why      string `json:"why,omitempty"`
}

// permitted has the policy decide about a write of the agent's own clients. It reports false if it has refused it. What
// programs in the cluster write with credentials of their own is not judged: to start or reach one is.
func (x *exchange) permitted(w http.ResponseWriter, r *http.Request) bool {
	p, e := x.guard.opts.Policy, x.entry
	if p == nil || e == nil || x.from.network {
		return true
	}
	c := policy.Change{
		Verb: e.Verb, Group: e.Group, Resource: e.Resource, Subresource: e.Subresource, Namespace: e.Namespace,
		Name: e.Name, Command: e.Command, DryRun: e.DryRun,
	}
	var named struct {
		Metadata struct{ Name string }
	}
	if c.Name == "" && json.Unmarshal(e.Request, &named) == nil {
		c.Name = named.Metadata.Name
	}
	d := p.Decide(c, x.guard.opts.Home)
	e.Policy = &Ruling{Decision: d}
	switch d.Do {
	case policy.Allow:
	case policy.Ask:
		a := x.guard.approve(r.Context(), Question{c, d.Risk, d.Because, p.Name, e.Request})
		e.Policy.Asked, e.Policy.Approved, e.Policy.By, e.Policy.Why = true, a.Approved, a.By, a.Why
		if !a.Approved {
			why := a.Why
			if why != "" {
				why = ": " + why
			}
			x.refuse(w, newStatus(http.StatusForbidden, metav1.StatusReasonForbidden,
				"the policy %s has %s approved, risk %s (%s), and it was not%s", p.Name, c, d.Risk, d.Because, why))
			return false
		}
	default:
		x.refuse(w, newStatus(http.StatusForbidden, metav1.StatusReasonForbidden,
			"the policy %s does not allow %s, risk %s: %s", p.Name, c, d.Risk, d.Because))
		return false
	}
	return !d.DryRun || c.DryRun || x.tried(w, r)
}

func (g *Guard) approve(ctx context.Context, q Question) Answer {
	if g.opts.Approve == nil {
		return Answer{Why: "nobody can be asked here"}
	}
	return g.opts.Approve(ctx, q)
}

// tried does a server-side dry run of a write. It reports false if that failed, and has told so.
func (x *exchange) tried(w http.ResponseWriter, r *http.Request) bool {
	t := x.target
	if !slices.Contains([]string{"create", "update", "patch", "delete"}, t.Verb) ||
		!slices.Contains([]string{"", "scale", "status"}, t.Subresource) {
		return true // The API server has none.
	}
	_, ok := x.dryRun(w, r)
	return ok
}

// dryRun does one, and returns what the object would be. It reports false if that failed, and has told so.
func (x *exchange) dryRun(w http.ResponseWriter, r *http.Request) (would []byte, ok bool) {
	t := x.target
	body, err := io.ReadAll(r.Body)
	if err != nil {
		x.refuse(w, apierrors.NewBadRequest("the request ends too early"))
		return nil, false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	out := r.Clone(r.Context())
	x.answer = &answer{veil: x.guard.veil, target: t}
	x.rewrite(&httputil.ProxyRequest{In: r, Out: out})
	if t.Verb == "delete" && len(body) > 0 { // Options in the body take the place of those in the query.
		var ok bool
		if body, ok = dryDelete(x.entry.Request); !ok {
			x.refuse(w, apierrors.NewBadRequest("the options of the deletion cannot be read, so it is not tried"))
			return nil, false
		}
		out.Header.Set("Content-Type", jsonType)
	}
	query := out.URL.Query()
	query.Set("dryRun", "All")
	out.URL.RawQuery, out.RequestURI = query.Encode(), ""
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if len(body) == 0 {
		out.Body = http.NoBody
	}
	resp, err := x.from.via.RoundTrip(out)
	if err != nil {
		x.fail(w, err)
		return nil, false
	}
	doc, err := readAnswer(resp)
	if err != nil {
		x.fail(w, err)
		return nil, false
	}
	if resp.StatusCode < 300 {
		return doc, true
	}
	status := newStatus(resp.StatusCode, metav1.StatusReasonUnknown, "the dry run failed, so nothing was changed")
	var told metav1.Status
	if json.Unmarshal(doc, &told) == nil && told.Message != "" {
		status.ErrStatus.Reason = told.Reason
		status.ErrStatus.Message = told.Message + " (in the dry run; nothing was changed)"
	}
	x.refuse(w, status)
	return nil, false
}

// dryDelete is the options of a deletion with a dry run among them.
func dryDelete(options []byte) ([]byte, bool) {
	var all map[string]any
	if json.Unmarshal(options, &all) != nil || all == nil {
		return nil, false
	}
	all["dryRun"] = []string{"All"}
	b, err := json.Marshal(all)
	return b, err == nil
}
