package guard

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// caller is the sender of a request, and how the request goes on to the API server in their name.
type caller struct {
	guard    *Guard
	via      http.RoundTripper
	upgrades http.RoundTripper // the same over HTTP/1.1

	// Of somebody in the cluster's network: their credentials, which go on as they are.
	network       bool
	authorization []string
	tls           *tls.ConnectionState
	address       string
	user          string // once it is known
}

// agent is the agent by its own token.
func (g *Guard) agent() *caller {
	return &caller{guard: g, via: g.asAgent, upgrades: g.asAgentUpgraded, user: g.opts.User}
}

// somebody is who sent a request over the cluster's network.
func (g *Guard) somebody(r *http.Request) *caller {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return &caller{
		guard: g, via: g.asAnyone, upgrades: g.asAnyoneUpgraded,
		network: true, authorization: r.Header.Values("Authorization"), tls: r.TLS, address: host,
	}
}

// credit gives a request to the API server what it needs to be the caller's. A transport of the
// agent adds that itself.
func (c *caller) credit(h http.Header) {
	h.Del("Authorization")
	for _, v := range c.authorization {
		h.Add("Authorization", v)
	}
}

// do sends a request of the guard's own making as the caller.
func (c *caller) do(req *http.Request) (*http.Response, error) {
	c.credit(req.Header)
	req.TLS = c.tls
	return c.via.RoundTrip(req)
}

const anonymous = "system:anonymous"

// callers remembers whose credentials are which. They do not change hands: a token and a certificate say the name.
type callers struct {
	mu    sync.Mutex
	known map[string]string
}

// maxNames bounds what is remembered of credentials.
const maxNames = 1000

func (n *callers) get(credentials string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.known[credentials]
}

func (n *callers) set(credentials, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil || len(n.known) >= maxNames {
		n.known = map[string]string{}
	}
	n.known[credentials] = name
}

// credentials are what the caller brings, in short.
func (c *caller) credentials() string {
	h := sha256.New()
	for _, a := range c.authorization {
		fmt.Fprintf(h, "%d %s", len(a), a)
	}
	if c.tls != nil {
		for _, p := range c.tls.PeerCertificates {
			fmt.Fprintf(h, "%d ", len(p.Raw))
			h.Write(p.Raw)
		}
	}
	return string(h.Sum(nil))
}

// name is the caller's, as the API server knows it.
func (c *caller) name(ctx context.Context) string {
	if c.user != "" {
		return c.user
	}
	credentials := c.credentials()
	if c.user = c.guard.callers.get(credentials); c.user != "" {
		return c.user
	}
	if c.user = c.review(ctx); c.user != anonymous {
		c.guard.callers.set(credentials, c.user)
	}
	return c.user
}

// review asks the API server who the caller is.
func (c *caller) review(ctx context.Context) string {
	direct := *c
	direct.via = c.guard.asAnyoneDirect
	u := c.guard.direct.JoinPath("/apis/authentication.k8s.io/v1/selfsubjectreviews")
	review := `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), strings.NewReader(review))
	if err != nil {
		return anonymous
	}
	req.Header.Set("Content-Type", jsonType)
	req.Header.Set("Accept", jsonType)
	resp, err := direct.do(req)
	if err != nil {
		return anonymous
	}
	var answer struct {
		Status struct {
			UserInfo struct{ Username string }
		}
	}
	if b, err := readAnswer(resp); err == nil && json.Unmarshal(bytes.TrimSpace(b), &answer) == nil &&
		answer.Status.UserInfo.Username != "" {
		return answer.Status.UserInfo.Username
	}
	return anonymous
}

// anyone is a configuration without credentials, for those who bring their own. A transport of the
// configuration's own goes the same way, and has none.
func anyone(c *rest.Config) *rest.Config {
	a := rest.AnonymousClientConfig(c)
	a.Transport, a.UserAgent = c.Transport, ""
	return a
}
