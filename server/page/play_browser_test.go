package page

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// beginGame begins an incident without a browser, and takes some steps. It returns its page.
func (b *browser) beginGame(forms ...url.Values) string {
	b.Helper()
	post := func(path string, q url.Values) string {
		r := httptest.NewRequest(http.MethodPost, Prefix+path, strings.NewReader(q.Encode()))
		r.Header.Set("Content-Type", aForm)
		r.AddCookie(&http.Cookie{Name: b.site.door.cookie, Value: b.site.door.pass})
		w := httptest.NewRecorder()
		b.site.ServeHTTP(w, r)
		if w.Code != http.StatusSeeOther {
			b.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		return strings.TrimPrefix(w.Header().Get("Location"), Prefix)
	}
	path := post("play", url.Values{"name": {"Ada"}})
	g := b.site.games.find(strings.TrimPrefix(path, "play/"))
	eventually(b, "one's turn", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.told != nil
	})
	for _, q := range forms {
		post(path, q)
	}
	return path
}

// keyboard types as a person does: chromedp's own way has a key pressed twice for who listens to keys.
func (b *browser) keyboard(keys string) {
	b.Helper()
	for _, r := range keys {
		p := input.DispatchKeyEventParams{Type: "keyDown", Key: string(r), Text: string(r), WindowsVirtualKeyCode: int64(unicode.ToUpper(r))}
		switch r {
		case '\r':
			p.Key = "Enter"
		case '\x1b':
			p.Key, p.Text = "Escape", ""
		case '\x03':
			p.Key, p.Text, p.Modifiers, p.WindowsVirtualKeyCode = "c", "", 2, 'C'
		}
		err := chromedp.Do(b.ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			if _, err := cdp.Call(ctx, target, input.DispatchKeyEvent, p); err != nil {
				return err
			}
			p.Type, p.Text = "keyUp", ""
			_, err := cdp.Call(ctx, target, input.DispatchKeyEvent, p)
			return err
		}))
		if err != nil {
			b.Fatal(err)
		}
	}
}

// galleryOfGames begins games, for pages with something in them.
func galleryOfGames(b *browser) map[string]string {
	b.Helper()
	look := func(pairs ...string) url.Values {
		q := url.Values{}
		for i := 0; i+1 < len(pairs); i += 2 {
			q.Set(pairs[i], pairs[i+1])
		}
		return q
	}
	call := look("call", "exec_shell", "p.command", "kubectl get pods -n test-hotel-reservation")
	open := b.beginGame(call, look("look", "alerts"), look("look", "metrics", "query", "sum by (pod) (rate(container_cpu_usage_seconds_total[1m]))"))
	graph := b.beginGame(call, look("look", "topology"))
	logs := b.beginGame(look("look", "logs", "service", "geo"))
	trace := b.beginGame(look("look", "traces", "service", "frontend"))
	over := b.beginGame(call, look("look", "alerts"), look("submit", "detection", "answer", "Yes"))
	g := b.site.games.find(strings.TrimPrefix(over, "play/"))
	eventually(b, "the verdict", g.done)
	for _, name := range []string{"Grace", "Linus", "Barbara"} {
		m := newMade("20261117-23"+name, "human:"+name)
		class := "solved"
		if name == "Linus" {
			class = "agent"
		}
		m.ended("revoke_auth_mongodb-detection-1", class, "so it is", map[string]any{"TTD": 61.0 + float64(len(name))}).save(b, b.dir)
		b.known("20261117-23" + name)
	}
	b.known(strings.TrimPrefix(over, "play/"))
	return map[string]string{
		"play": "play", "people": "play?show=people", "game": open, "graph": graph, "logs": logs, "trace": trace, "verdict": over,
	}
}

// A terminal works under the policy of the page, in the browser, without a single violation, and nothing that a command
// prints is more than text.
func TestBrowserTerminal(t *testing.T) {
	b := newBrowser(t)
	path := b.beginGame()
	b.open(Prefix + path)
	b.see(".xterm-rows", "It is your turn")
	eval[bool](b, `(window.violations = [], new ReportingObserver((list) => { for (const v of list) window.violations.push(v.body.effectiveDirective + ' ' + v.body.sample); }, { types: ['csp-violation'], buffered: true }).observe(), true)`)
	b.keyboard("echo evil\r")
	b.see(".xterm-rows", "window.owned")
	b.keyboard("sleep 100\r")
	b.see("#standing dd code", "sleep 100")
	b.keyboard("\x03")
	b.see(".xterm-rows", "it was interrupted")
	b.keyboard("\x1b") // Escape leaves the terminal, so that the keyboard is not caught in it.
	b.until("the terminal to be left", `!document.activeElement.closest('#terminal')`)
	b.clicks = 0
	b.click("button", "Topology")
	b.see("#seen .graph .node.red + text", "! mongodb-geo")
	b.see(".xterm-rows", "frontend -> search: 812")
	if eval[bool](b, `'owned' in window || document.title.includes('owned') || document.querySelector('main script') !== null`) {
		t.Error("what a command printed is more than text")
	}
	if v := eval[[]string](b, `window.violations`); len(v) > 0 {
		t.Errorf("the page breaks its own policy: %q", v)
	}
	if wide := eval[float64](b, `document.querySelector('.xterm-screen').getBoundingClientRect().width`); wide < 300 {
		t.Errorf("the terminal is %v wide: its style is missing", wide)
	}
	// The page is reloaded, and all is there; what is typed in one tab is in the other.
	b.open(Prefix + path)
	b.see(".xterm-rows", "frontend -> search: 812")
	// The observer would have seen a violation.
	eval[bool](b, `(window.violations = [], new ReportingObserver((list) => { for (const v of list) window.violations.push(v.body.effectiveDirective); }, { types: ['csp-violation'], buffered: true }).observe(), document.body.append(Object.assign(document.createElement('style'), { textContent: 'p { color: red }' })), true)`)
	b.until("a violation", `window.violations.length > 0`)
}
