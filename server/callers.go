package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// maxInFlight is how many requests at once the token of a session or an environment is good for. An
// agent takes one step after another, and watches.
const maxInFlight = 32

// caller is who sent a request, by the token they showed. The zero caller may do everything.
type caller struct {
	owns  []string      // ids of the session or the environments whose token it is; none for the server's own
	left  int           // of these, with the lock of tokens
	slots chan struct{} // of its requests that are being answered
}

type callerKey struct{}

// callerOf is who sent a request.
func callerOf(r *http.Request) *caller {
	if c, ok := r.Context().Value(callerKey{}).(*caller); ok {
		return c
	}
	return &caller{}
}

// reaches reports whether a caller may know of the session or environment with an id.
func (c *caller) reaches(id string) bool { return c.owns == nil || slices.Contains(c.owns, id) }

// own is what a caller's token is for, to be told.
func (c *caller) own() string { return strings.Join(c.owns, ", ") }

// tokens are those of sessions and environments, by their hashes: how long it takes to find one tells
// nothing of it.
type tokens struct {
	mu     sync.Mutex
	byHash map[[sha256.Size]byte]*caller
}

// issue makes the token of a session, or of environments.
func (t *tokens) issue(ids ...string) string {
	token := rand.Text()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byHash == nil {
		t.byHash = map[[sha256.Size]byte]*caller{}
	}
	t.byHash[sha256.Sum256([]byte(token))] = &caller{owns: ids, left: len(ids), slots: make(chan struct{}, maxInFlight)}
	return token
}

// revoke makes the tokens of what is gone worthless. It is called once for an id. A token that is for others as well
// stays until they are gone, too.
func (t *tokens) revoke(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for h, c := range t.byHash {
		if !slices.Contains(c.owns, id) {
			continue
		}
		if c.left--; c.left == 0 {
			delete(t.byHash, h)
		}
	}
}

func (t *tokens) find(token string) *caller {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byHash[sha256.Sum256([]byte(token))]
}

// identify says who sent a request. The server's token is compared in a time that tells nothing of it.
func (f *Front) identify(r *http.Request) (*caller, error) {
	header := r.Header.Get("Authorization")
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		token = ""
	}
	if password, ok := openPassword(r); ok {
		token = password
	}
	own, got := sha256.Sum256([]byte(f.Token)), sha256.Sum256([]byte(token))
	isOwn := subtle.ConstantTimeCompare(own[:], got[:]) == 1
	c := f.tokens.find(token)
	switch {
	case f.Token != "" && isOwn, f.Token == "" && header == "":
		return &caller{}, nil
	case c != nil:
		return c, nil
	}
	return nil, fail(http.StatusUnauthorized,
		"this needs the server's token, or that of a session, as a header 'Authorization: Bearer TOKEN'")
}

// openPassword is the password of a request by OpenEnv's protocol, whose clients can show a token in the address of the
// server alone. A page's does not count: a browser sends passwords that it knows to whoever a page names.
func openPassword(r *http.Request) (string, bool) {
	if !strings.HasPrefix(r.URL.Path, "/openenv/") || r.Header.Get("Origin") != "" {
		return "", false
	}
	_, password, ok := r.BasicAuth()
	return password, ok
}

// isToken reports whether a word is the server's token, or one that it has issued.
func (f *Front) isToken(word string) bool { return word == f.Token || f.tokens.find(word) != nil }

// admit holds a place for a request of a caller who has a limited number of them.
func (c *caller) admit() (leave func(), err error) {
	if c.slots == nil {
		return func() {}, nil
	}
	select {
	case c.slots <- struct{}{}:
		return func() { <-c.slots }, nil
	default:
		return nil, fail(http.StatusTooManyRequests,
			"there are %d requests with this token already; wait for one to be answered", maxInFlight)
	}
}

// as is a request of a caller.
func (c *caller) as(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), callerKey{}, c))
}

// limited refuses a request that only the server's token is good for.
func limited(next handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if c := callerOf(r); c.owns != nil {
			return fail(http.StatusForbidden, "this needs the server's token; the one shown is good for %s alone",
				c.own())
		}
		return next(w, r)
	}
}
