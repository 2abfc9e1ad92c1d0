package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/server/page"
)

// An agent is a client of the server like others: with a session of its own, and where the API needs no token, it gets
// no page, neither about its run nor about its problem.
func TestPagesAreNotForAgents(t *testing.T) {
	for _, token := range []string{"", "sesame"} {
		site := page.New(page.Options{Dir: t.TempDir(), Token: token})
		defer site.Close()
		l := newLab(t, Options{Token: token, Loopback: true, Pages: site}, &fakeBackend{})
		if token != "" {
			l.header.Set("Authorization", "Bearer "+token)
		}
		opened := get[OpenedSession](l, "POST", "/sessions", detection(faulty))
		for _, header := range []string{"", "Bearer " + opened.Token, "Basic OnNlc2FtZQ=="} {
			l.header = http.Header{}
			if header != "" {
				l.header.Set("Authorization", header)
			}
			for _, path := range []string{
				"", "runs/" + opened.ID, "runs/" + opened.ID + "/events", "problems/" + faulty, "compare", "nope",
			} {
				status, text := l.do("GET", page.Prefix+path, "")
				if status != http.StatusUnauthorized || strings.Contains(text, "revoke") {
					t.Errorf("token %q, %q, %s: %d\n%s", token, header, path, status, text)
				}
			}
		}
		l.header = http.Header{"Authorization": {"Bearer " + opened.Token}}
		l.do("POST", "/sessions/"+opened.ID+"/submit", `{"answer": "Yes"}`)
	}
}

// A browser that opens the server's address comes to the pages; other callers get what they got before.
func TestPagesForBrowsers(t *testing.T) {
	site := page.New(page.Options{Dir: t.TempDir()})
	defer site.Close()
	front := NewFront(Options{Library: newLab(t, Options{}, &fakeBackend{}).front.Library, Loopback: true, Pages: site})
	ask := func(path, host string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", path, nil)
		r.Host = host
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		front.ServeHTTP(w, r)
		return w
	}
	if w := ask("/", "localhost:1818", "Accept", "text/html"); w.Code != 303 || w.Header().Get("Location") != page.Prefix {
		t.Errorf("%d, %v", w.Code, w.Header())
	}
	if w := ask("/", "localhost:1818"); w.Code != 200 || !strings.Contains(w.Body.String(), "/sessions/{id}/act") {
		t.Errorf("%d, %s", w.Code, w.Body)
	}
	if w := ask(site.Link(), "localhost:1818"); w.Code != 303 || w.Header().Get("Set-Cookie") == "" {
		t.Errorf("%d, %v", w.Code, w.Header())
	}
	if w := ask(site.Link(), "evil.example"); w.Code != 403 || w.Header().Get("Set-Cookie") != "" {
		t.Errorf("%d, %v", w.Code, w.Header())
	}
	alone := ProtectPages(site, true)
	for host, want := range map[string]int{"127.0.0.1:1819": 303, "evil.example": 403} {
		r := httptest.NewRequest("GET", site.Link(), nil)
		r.Host = host
		w := httptest.NewRecorder()
		alone.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: %d", host, w.Code)
		}
	}
	r := httptest.NewRequest("POST", page.Prefix+"enter", strings.NewReader("token="))
	r.Header.Set("Origin", "https://evil.example")
	w := httptest.NewRecorder()
	ProtectPages(site, false).ServeHTTP(w, r)
	if w.Code != http.StatusForbidden {
		t.Errorf("a form of another origin: %d", w.Code)
	}
}
