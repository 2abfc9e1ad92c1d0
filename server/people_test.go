package server

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/problem/problemtest"
	"github.com/aiopslab/aiopslab/server/page"
)

// player is a person's browser at a server's pages.
type player struct {
	*lab
	client http.Client
}

func newPlayer(t *testing.T, o Options, b *fakeBackend) *player {
	t.Helper()
	o.Pages = page.New(page.Options{Dir: t.TempDir(), Library: problemtest.Library(t)})
	t.Cleanup(o.Pages.Close)
	o.Loopback = true
	p := &player{lab: newLab(t, o, b)}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	p.client = http.Client{Jar: jar, Transport: p.server.Client().Transport}
	p.get(o.Pages.Link())
	return p
}

func (p *player) get(path string) (text, at string) {
	p.t.Helper()
	return p.answer(p.client.Get(p.server.URL + path))
}

func (p *player) post(path string, form url.Values) (text, at string) {
	p.t.Helper()
	return p.answer(p.client.PostForm(p.server.URL+path, form))
}

func (p *player) answer(res *http.Response, err error) (text, at string) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b), res.Request.URL.Path
}

// until waits until a page has a text.
func (p *player) until(path, want string) string {
	p.t.Helper()
	for {
		text, _ := p.get(path)
		if strings.Contains(text, want) {
			return text
		}
		select {
		case <-p.t.Context().Done():
			p.t.Fatalf("no %q in %s", want, text)
		default:
		}
	}
}

// A person works on an incident at the pages of a server, through its sessions, and learns of the problem by the verdict.
func TestPeoplePlay(t *testing.T) {
	asked := ""
	var chosen *problem.Problem
	b := &fakeBackend{broken: func(s Spec) error {
		asked = s.Name
		var err error
		chosen, err = s.Find(problemtest.Library(t))
		return err
	}}
	p := newPlayer(t, Options{MaxSessions: 1, MaxQueued: 1}, b)
	_, at := p.post(page.Prefix+"play", url.Values{"task": {"detection"}, "app": {"hotel-reservation"}, "name": {"Ada"}})
	if !strings.HasPrefix(at, page.Prefix+"play/") {
		t.Fatal(at)
	}
	text := p.until(at, "You are an expert.")
	if asked != "human:Ada" || chosen.App.Name != "hotel-reservation" {
		t.Errorf("%q, %+v", asked, chosen)
	}
	_, second := p.post(page.Prefix+"play", url.Values{"task": {"detection"}})
	p.until(second, "number 1 in the line")
	if full, _ := p.post(page.Prefix+"play", url.Values{"task": {"detection"}}); !strings.Contains(full, "as many as there may be") {
		t.Errorf("a third begins: %s", full)
	}
	for _, form := range []url.Values{
		{"look": {"alerts"}}, {"call": {"exec_shell"}, "p.command": {"ls"}}, {"look": {"metrics"}, "query": {"up"}},
	} {
		more, _ := p.post(at, form)
		text += more
	}
	if !strings.Contains(text, "did exec_shell") || !strings.Contains(text, "3 of 100") {
		t.Errorf("%s", text)
	}
	for _, secret := range []string{chosen.ID, "the secret", "revoke_auth", "noop"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is told", secret)
		}
	}
	p.post(at, url.Values{"submit": {"detection"}, "answer": {chosen.Anomaly()}})
	if over := p.until(at, "See the whole run"); !strings.Contains(over, "the answer is right") {
		t.Errorf("%s", over)
	}
	p.until(second, "You are an expert.")
	p.post(second, url.Values{"give-up": {"1"}})
	p.until(second, "the person gave up")
}

// A session of the pages has no token, and those of others open nothing of it: no page, no form and no terminal.
func TestPlayIsNotForAgents(t *testing.T) {
	p := newPlayer(t, Options{}, &fakeBackend{})
	_, at := p.post(page.Prefix+"play", url.Values{"task": {"detection"}})
	p.until(at, "You are an expert.")
	opened := get[OpenedSession](p.lab, "POST", "/sessions", detection(faulty))
	p.header = http.Header{"Authorization": {"Bearer " + opened.Token}}
	for _, path := range []string{"play", strings.TrimPrefix(at, page.Prefix), strings.TrimPrefix(at, page.Prefix) + "/terminal"} {
		if status, _ := p.do("GET", page.Prefix+path, ""); status != http.StatusUnauthorized {
			t.Errorf("GET %s: %d", path, status)
		}
	}
	if status, _ := p.do("POST", at, "give-up=1"); status != http.StatusUnauthorized {
		t.Errorf("POST: %d", status)
	}
	_, res, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(p.server.URL, "http")+at+"/terminal", p.header)
	if err == nil || res.StatusCode != http.StatusUnauthorized {
		t.Errorf("a terminal: %v, %+v", err, res)
	}
	if status, _ := p.do("GET", "/sessions/"+strings.TrimPrefix(at, page.Prefix+"play/"), ""); status != http.StatusNotFound {
		t.Errorf("the session: %d", status)
	}
	p.do("POST", "/sessions/"+opened.ID+"/submit", `{"answer": "Yes"}`)
	p.header = http.Header{"Origin": {"https://evil.example"}, "Content-Type": {"application/x-www-form-urlencoded"}}
	if status, _ := p.do("POST", at, "give-up=1"); status != http.StatusForbidden {
		t.Errorf("a form of another origin: %d", status)
	}
}

// Ctrl-C ends the command of a step, which is done then.
func TestInterrupt(t *testing.T) {
	begun := make(chan struct{})
	p := newPlayer(t, Options{}, &fakeBackend{during: func(ctx context.Context) {
		select {
		case begun <- struct{}{}:
			<-ctx.Done()
		case <-ctx.Done():
		}
	}})
	_, at := p.post(page.Prefix+"play", url.Values{"task": {"detection"}})
	p.until(at, "You are an expert.")
	done := make(chan string)
	go func() {
		res, err := p.client.PostForm(p.server.URL+at, url.Values{"call": {"history"}})
		if err != nil {
			done <- err.Error()
			return
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		done <- string(b)
	}()
	<-begun
	p.until(at, "Interrupt</button>")
	if _, back := p.post(at+"/interrupt", nil); back != at {
		t.Errorf("%s", back)
	}
	if text := <-done; !regexp.MustCompile(`1\s+of 100`).MatchString(text) {
		t.Errorf("%s", text)
	}
}
