package page

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/problem/problemtest"
)

// playing is a visitor of a site with sessions.
type playing struct {
	visitor
	sessions *fakeSessions
	all      strings.Builder // every answer, with its header
}

func newPlaying(t *testing.T) *playing {
	dir := t.TempDir()
	p := &playing{visitor: visit(t, Options{Dir: dir, Library: problemtest.Library(t)}), sessions: &fakeSessions{t: t, dir: dir}}
	p.site.Host(p.sessions)
	return p
}

const aForm = "application/x-www-form-urlencoded"

// post sends a form, and returns the answer.
func (p *playing) post(path string, pairs ...string) (int, string, http.Header) {
	p.t.Helper()
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	status, text, h := p.do("POST", Prefix+path, q.Encode(), "Content-Type", aForm)
	fmt.Fprint(&p.all, text, h)
	return status, text, h
}

// page returns the text of a page.
func (p *playing) page(path string) string {
	p.t.Helper()
	_, text, h := p.do("GET", Prefix+path, "")
	fmt.Fprint(&p.all, text, h)
	return text
}

// begin begins a game, and waits until it is one's turn.
func (p *playing) begin(pairs ...string) (path string) {
	p.t.Helper()
	status, text, h := p.post("play", pairs...)
	if status != http.StatusSeeOther {
		p.t.Fatalf("%d\n%s", status, text)
	}
	path = strings.TrimPrefix(h.Get("Location"), Prefix)
	eventually(p.t, "one's turn", func() bool { return strings.Contains(p.page(path), "You ") })
	return path
}

// Nothing that the server sends, in whatever way, tells the problem before there is a verdict.
func TestPlayIsBlind(t *testing.T) {
	for _, task := range []string{"detection", "localization", "analysis", "mitigation", "incident", "operation"} {
		t.Run(task, func(t *testing.T) {
			p := newPlaying(t)
			web := httptest.NewServer(p.site)
			defer web.Close()
			p.page("play")
			path := p.begin("task", task, "name", "Ada")
			one := p.sessions.last.problem
			conn := p.dial(web.URL, path)
			defer conn.Close()
			heard := listenTo(conn)
			for _, form := range [][]string{
				{"look", "alerts"},
				{"look", "topology"},
				{"look", "metrics", "query", "up"},
				{"look", "logs", "service", "geo"},
				{"look", "traces", "service", "geo"},
				{"call", "exec_shell", "p.command", "kubectl get pods"},
				{"call", "history"},
				{"look", "nonsense"},
				{"call", "submit"},
				{"submit", "other"},
			} {
				p.post(path, form...)
			}
			p.keys(conn, "help\r")
			p.keys(conn, "ls\r")
			eventually(t, "the steps", func() bool { return strings.Contains(heard(), "did exec_shell") })
			p.page(path + "?step=1")
			p.page(path + "/text/2")
			p.page("play")
			p.page("play?show=people")
			secrets := []string{one.ID, one.Document.Title}
			for _, f := range one.Document.Faults {
				secrets = append(secrets, f.Kind)
			}
			if g := one.Goal(); g == nil {
				secrets = append(secrets, one.Document.ID)
			}
			all := p.all.String() + heard()
			for _, s := range secrets {
				if s != "" && strings.Contains(strings.ToLower(all), strings.ToLower(s)) {
					t.Errorf("%q is told: %s", s, nearTo(all, s))
				}
			}
			if strings.Contains(all, "healthy") {
				t.Errorf("a twin is told: %s", nearTo(all, "healthy"))
			}
		})
	}
}

func nearTo(all, s string) string {
	at := strings.Index(strings.ToLower(all), strings.ToLower(s))
	return all[max(0, at-100):min(len(all), at+100)]
}

// dial opens a terminal.
func (p *playing) dial(base, path string, header ...string) *websocket.Conn {
	p.t.Helper()
	h := http.Header{"Cookie": {p.site.door.cookie + "=" + p.site.door.pass}}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	conn, res, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(base, "http")+Prefix+path+"/terminal", h)
	if err != nil {
		p.t.Fatalf("%v, %+v", err, res)
	}
	return conn
}

func (p *playing) keys(conn *websocket.Conn, keys string) {
	p.t.Helper()
	if err := conn.WriteMessage(websocket.BinaryMessage, []byte(keys)); err != nil {
		p.t.Fatal(err)
	}
}

// listenTo collects what a terminal is sent.
func listenTo(conn *websocket.Conn) func() string {
	texts := make(chan string)
	ask := make(chan chan string)
	go func() {
		defer close(texts)
		for {
			_, m, err := conn.ReadMessage()
			if err != nil {
				return
			}
			texts <- string(m)
		}
	}()
	go func() {
		var b strings.Builder
		for {
			select {
			case s, ok := <-texts:
				if !ok {
					texts = nil
				}
				b.WriteString(s)
			case c := <-ask:
				c <- b.String()
			}
		}
	}()
	return func() string {
		c := make(chan string)
		ask <- c
		return <-c
	}
}

// An incident is worked on to its verdict by forms alone.
func TestPlay(t *testing.T) {
	p := newPlaying(t)
	if first := p.page("play"); !strings.Contains(first, "surprise me") || !strings.Contains(first, "hotel-reservation") {
		t.Errorf("%s", first)
	}
	path := p.begin("task", "detection", "app", "hotel-reservation", "name", " Ada\u202e  Lovelace\x07 ", "pace", "agent", "mood", "rough")
	s := p.sessions.last
	if s.Name != "human:Ada Lovelace" || s.MaxSteps != 30 || s.MaxTime != 15*time.Minute || s.Noise != "busy" || len(s.Decoys) != 2 {
		t.Errorf("%+v", s.Wish)
	}
	if !strings.Contains(p.page("play"), `href="/view/`+path+`"`) {
		t.Error("a game that is under way cannot be found again")
	}
	for _, tt := range []struct {
		form []string
		want string
	}{
		{[]string{"look", "alerts"}, "<td>RequestErrors</td>"},
		{[]string{"look", "topology"}, "! mongodb-geo"},
		{[]string{"look", "metrics", "query", "up"}, `class="chart"`},
		{[]string{"look", "logs", "service", "geo"}, `<p class="error">2026-11-18T10:15:09Z ERROR`},
		{[]string{"look", "traces", "service", "frontend"}, `class="waterfall"`},
		{[]string{"call", "exec_shell", "p.command", "kubectl get pods | head"}, "$ kubectl get pods | head"},
		{[]string{"call", "exec_shell", "p.command", "echo evil"}, "&lt;script&gt;"},
	} {
		if status, text, _ := p.post(path, tt.form...); status != http.StatusSeeOther {
			t.Errorf("%v: %d %s", tt.form, status, text)
		}
		if text := p.page(path); !strings.Contains(text, tt.want) {
			t.Errorf("%v: no %q in %s", tt.form, tt.want, text)
		}
	}
	if text := p.page(path); strings.Contains(text, "\x1b") || strings.Contains(text, "<script>window") || !strings.Contains(text, "7 of 30") {
		t.Errorf("%s", text)
	}
	if text := p.page(path + "?step=1"); !strings.Contains(text, "<td>RequestErrors</td>") {
		t.Errorf("%s", text)
	}
	if text := p.page(path + "/text/1"); text != fakeAlerts {
		t.Errorf("%s", text)
	}
	if status, text, _ := p.post(path, "submit", "detection"); status != http.StatusUnprocessableEntity || !strings.Contains(text, "choose whether") {
		t.Errorf("%d %s", status, text)
	}
	p.post(path, "submit", "detection", "answer", s.problem.Anomaly())
	eventually(t, "the verdict", func() bool { return strings.Contains(p.page(path), "the answer is right") })
	if text := p.page(path); !strings.Contains(text, "runs/"+strings.TrimPrefix(path, "play/")) || !strings.Contains(text, "solved") {
		t.Errorf("%s", text)
	}
	if status, text, _ := p.post(path, "look", "alerts"); status != http.StatusConflict || !strings.Contains(text, "your turn is over") {
		t.Errorf("%d %s", status, text)
	}
	eventually(t, "the board", func() bool { return strings.Contains(p.page("play?show=people"), "Ada Lovelace") })
	if text := p.page("play?show=people"); !strings.Contains(text, "agent=human%3AAda&#43;Lovelace") {
		t.Errorf("%s", text)
	}
}

// An incident asks one question after another, and a form that answers another one does nothing.
func TestPlayIncident(t *testing.T) {
	p := newPlaying(t)
	path := p.begin("task", "incident")
	questions := p.sessions.last.problem.Questions()
	answers := map[string][]string{
		"detection": {"answer", "Yes"}, "localization": {"answer", "geo, mongodb-geo"},
		"analysis": {"system_level", "Application", "fault_type", "Code Defect"}, "mitigation": nil,
	}
	for i, q := range questions {
		if status, _, _ := p.post(path, "submit", "nonsense"); status != http.StatusConflict {
			t.Errorf("%d", status)
		}
		if text := p.page(path); !strings.Contains(text, `name="submit" value="`+string(q)+`"`) {
			t.Fatalf("question %d is not %s:\n%s", i, q, text)
		}
		p.post(path, append([]string{"submit", string(q)}, answers[string(q)]...)...)
	}
	eventually(t, "the verdict", func() bool { return strings.Contains(p.page(path), "See the whole run") })
}

func TestSubmission(t *testing.T) {
	for _, tt := range []struct {
		question, form, want, wrong string
	}{
		{"detection", "answer=No", `submit("No")`, ""},
		{"detection", "answer=no", "", "choose whether"},
		{"localization", "answer=geo%2C+rate%0Auser", `submit(["geo", "rate", "user"])`, ""},
		{"localization", "none=1&answer=geo", `submit([])`, ""},
		{"localization", "", "", "name a service"},
		{"analysis", "none=1", `submit()`, ""},
		{"analysis", "system_level=Hardware&fault_type=Code+Defect", `submit({"fault_type": "Code Defect", "system_level": "Hardware"})`, ""},
		{"analysis", "system_level=Hardware", "", "choose a level"},
		{"mitigation", "answer=x", `submit()`, ""},
		{"operation", "", `submit()`, ""},
		{"operation", "answer=slowest%3A+geo%0Aerrors+%3D+1.5", `submit({"errors": 1.5, "slowest": "geo"})`, ""},
		{"operation", "answer=nothing", "", "key: value"},
	} {
		q, err := url.ParseQuery(tt.form)
		if err != nil {
			t.Fatal(err)
		}
		got, err := submission(tt.question, q)
		if err != nil {
			if tt.wrong == "" || !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("%s %s: %v", tt.question, tt.form, err)
			}
			continue
		}
		c, err := aci.Parse(got)
		want, err2 := aci.Parse(tt.want)
		if err != nil || err2 != nil || cmp.Diff(want.Args, c.Args) != "" || c.Name != "submit" {
			t.Errorf("%s %s: %s, %v, %v", tt.question, tt.form, got, err, err2)
		}
	}
}

// Every action but the one that hands in has a form, and the form makes the call.
func TestForms(t *testing.T) {
	actions := aci.Actions("detection")
	forms := formsOf(actions, "shop")
	if len(forms) != len(actions)-1 {
		t.Errorf("%d forms", len(forms))
	}
	for _, tt := range []struct{ name, form, want string }{
		{"get_logs", "p.namespace=shop&p.service=geo&p.tail=200&p.since=0&p.level=", `get_logs(namespace="shop", service="geo")`},
		{"get_logs", "p.namespace=shop&p.service=geo&p.tail=5&p.previous=1&p.level=warn", `get_logs(level="warn", namespace="shop", previous=True, service="geo", tail=5)`},
		{"undo", "p.n=2", `undo(n=2)`},
		{"history", "", `history()`},
		{"begin", "p.x=1", `begin()`},
		{"exec_shell", "p.command=echo+%27a%27&p.timeout=30", `exec_shell(command="echo 'a'")`},
	} {
		q, err := url.ParseQuery(tt.form)
		if err != nil {
			t.Fatal(err)
		}
		got, err := callOf(actions, tt.name, q)
		if err != nil || got != "```\n"+tt.want+"\n```" {
			t.Errorf("%s: %s, %v", tt.form, got, err)
		}
	}
	for form, name := range map[string]string{"p.tail=many&p.namespace=x&p.service=y": "get_logs", "": "submit", "x=1": "frobnicate"} {
		q, _ := url.ParseQuery(form)
		if got, err := callOf(actions, name, q); err == nil {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A line that is typed is a step; what it prints is text and steers nothing; who comes back finds all of it.
func TestTerminal(t *testing.T) {
	p := newPlaying(t)
	p.sessions.gate = make(chan struct{})
	web := httptest.NewServer(p.site)
	defer web.Close()
	_, _, h := p.post("play", "task", "detection")
	path := strings.TrimPrefix(h.Get("Location"), Prefix)
	conn := p.dial(web.URL, path)
	defer conn.Close()
	heard := listenTo(conn)
	see := func(heard func() string, want string) {
		t.Helper()
		eventually(t, want, func() bool { return strings.Contains(heard(), want) })
	}
	see(heard, "being set up")
	if status, text, _ := p.post(path, "look", "alerts"); status != http.StatusConflict || !strings.Contains(text, "still being set up") {
		t.Errorf("%d", status)
	}
	close(p.sessions.gate)
	see(heard, "It is your turn")
	if err := conn.WriteMessage(websocket.TextMessage, []byte(`{"cols": 120, "rows": 30}`)); err != nil {
		t.Fatal(err)
	}
	p.keys(conn, "kubectl get pods\r")
	see(heard, "geo-7c8d9f6b5-4kq9z")
	see(heard, `"steps":1,"acting":false`)
	p.keys(conn, "echo evil\r")
	see(heard, `\x1b]0;owned\a`)
	for _, bad := range []string{"\x1b]0;", "\x1b[6n", "\x07"} {
		if strings.Contains(heard(), bad) {
			t.Errorf("the terminal obeys %q", bad)
		}
	}
	p.keys(conn, "\x04half a line\x03get_al\t\"x\")\r") // Ctrl-D does nothing, Ctrl-C deletes the line, Tab completes.
	see(heard, "RequestErrors")
	p.keys(conn, "submit Yes\r")
	see(heard, "submit is a call")
	p.keys(conn, "clear\r") // It is no step.
	see(heard, clearScreen)
	p.keys(conn, "\x1b[200~cat <<E\rmany\rE\x1b[201~\r")
	eventually(t, "the pasted lines as one step", func() bool { return p.sessions.last.steps.Load() == 4 })
	p.keys(conn, "sleep 100\r")
	see(heard, `"steps":4,"acting":true`)
	if status, text, _ := p.post(path, "look", "alerts"); status != http.StatusConflict || !strings.Contains(text, "a step is under way") {
		t.Errorf("%d %s", status, text)
	}
	eventually(t, "the command to be taken", func() bool { return strings.Contains(p.page(path), "sleep 100") })
	p.keys(conn, "typed ahead\x03")
	see(heard, "it was interrupted")
	p.post(path, "look", "topology")
	see(heard, "frontend -> search: 812")
	again := p.dial(web.URL, path)
	defer again.Close()
	back := listenTo(again)
	see(back, "frontend -> search: 812")
	for _, want := range []string{"geo-7c8d9f6b5-4kq9z", "it was interrupted", "kubectl get pods"} {
		if !strings.Contains(back(), want) {
			t.Errorf("who comes back does not see %q", want)
		}
	}
	p.keys(again, "\x1b[A\x1b[A\r") // The line before the last.
	see(back, "did exec_shell")
	p.keys(again, "submit(\"Yes\")\r")
	const verdict = "\x1b[32mThe verdict is "
	see(back, verdict)
	see(heard, verdict)
	p.keys(again, "ls\r")
	see(back, "your turn is over")
	if _, rest, _ := strings.Cut(back(), verdict); strings.Contains(rest, " $ ") {
		t.Errorf("who is done is asked for more: %q", rest)
	}
}

// A terminal belongs to this server's own pages and to those who were let in, there are some of it, and nothing that is
// typed grows without bounds or has it spin.
func TestTerminalHolds(t *testing.T) {
	p := newPlaying(t)
	web := httptest.NewServer(p.site)
	defer web.Close()
	path := p.begin("task", "detection")
	at := "ws" + strings.TrimPrefix(web.URL, "http") + Prefix + path + "/terminal"
	cookie := p.site.door.cookie + "=" + p.site.door.pass
	for name, tt := range map[string]struct {
		header http.Header
		want   int
	}{
		"a page of another origin": {http.Header{"Cookie": {cookie}, "Origin": {"https://evil.example"}}, http.StatusForbidden},
		"no cookie":                {http.Header{"Origin": {web.URL}}, http.StatusUnauthorized},
		"another cookie":           {http.Header{"Cookie": {p.site.door.cookie + "=x"}}, http.StatusUnauthorized},
		"this page":                {http.Header{"Cookie": {cookie}, "Origin": {web.URL}}, http.StatusSwitchingProtocols},
	} {
		conn, res, _ := websocket.DefaultDialer.Dial(at, tt.header)
		if res == nil || res.StatusCode != tt.want {
			t.Errorf("%s: %+v", name, res)
		}
		if conn != nil {
			conn.Close()
		}
	}
	eventually(t, "the terminals to end", func() bool {
		g := p.site.games.find(strings.TrimPrefix(path, "play/"))
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.watchers == 0
	})
	first := p.dial(web.URL, path)
	defer first.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if _, _, err := first.ReadMessage(); err != nil {
				return
			}
		}
	}()
	p.keys(first, "\x1b["+strings.Repeat("1;", 400)) // A sequence that never ends.
	<-ended
	for range maxTerminals {
		conn := p.dial(web.URL, path)
		defer conn.Close()
	}
	if _, res, err := websocket.DefaultDialer.Dial(at, http.Header{"Cookie": {cookie}}); err == nil || res.StatusCode != http.StatusTooManyRequests {
		t.Errorf("%+v, %v", res, err)
	}
	k := newKeys()
	k.add(bytes.Repeat([]byte("x"), 3*maxKeys))
	k.add([]byte("y"))
	if len(k.buf) != maxKeys {
		t.Errorf("%d keys are kept", len(k.buf))
	}
}

// Who gives up is told what was wrong, and has failed.
func TestGiveUpGame(t *testing.T) {
	p := newPlaying(t)
	path := p.begin("task", "mitigation")
	if status, _, _ := p.post(path, "give-up", "1"); status != http.StatusSeeOther {
		t.Errorf("%d", status)
	}
	eventually(t, "the verdict", func() bool { return strings.Contains(p.page(path), "the person gave up") })
}

func TestNames(t *testing.T) {
	for text, want := range map[string]string{
		"Ada": "Ada", "  a \t b\n": "a b", "\x1b[31mred\u202e": "[31mred", "": "", "\xff\xfe": "",
		strings.Repeat("ü", 100): strings.Repeat("ü", maxName), "<script>": "<script>",
	} {
		if got := nameOfPerson(text); got != want || utf8.RuneCountInString(got) > maxName {
			t.Errorf("%q: %q", text, got)
		}
	}
	p := newPlaying(t)
	if status, text, _ := p.post("play", "name", strings.Repeat("x", maxName+1)); status != http.StatusUnprocessableEntity || !strings.Contains(text, "40 characters at most") {
		t.Errorf("%d", status)
	}
	path := p.begin("task", "detection", "name", `<b onclick="x">'&`)
	if text := p.page(path); strings.Contains(text, "<b onclick") {
		t.Errorf("%s", text)
	}
	p.post(path, "give-up", "1")
	eventually(t, "the board", func() bool { return strings.Contains(p.page("play?show=people"), "onclick") })
	if text := p.page("play?show=people"); strings.Contains(text, "<b onclick") {
		t.Errorf("%s", text)
	}
}

func TestPlayRefuses(t *testing.T) {
	p := newPlaying(t)
	p.sessions.full = 3
	for path, form := range map[string][2]any{
		"play":      {http.StatusUnprocessableEntity, []string{"app", "nope"}},
		"play/nope": {http.StatusNotFound, []string{"look", "alerts"}},
	} {
		if status, _, _ := p.post(path, form[1].([]string)...); status != form[0] {
			t.Errorf("%s: %d", path, status)
		}
	}
	if status, _, _ := p.do("POST", Prefix+"play", "name="+strings.Repeat("x", maxForm), "Content-Type", aForm); status != http.StatusBadRequest {
		t.Errorf("a long form: %d", status)
	}
	p.in = false
	for _, path := range []string{"play", "play/x", "play/x/terminal"} {
		if status, _, _ := p.do("GET", Prefix+path, ""); status != http.StatusUnauthorized {
			t.Errorf("%s: %d", path, status)
		}
	}
	if status, _, _ := p.post("play"); status != http.StatusUnauthorized || p.sessions.last != nil {
		t.Errorf("a stranger begins: %d", status)
	}
	alone := visit(t, Options{Dir: t.TempDir(), Library: problemtest.Library(t)})
	if _, text, _ := alone.do("GET", Prefix+"play", ""); !strings.Contains(text, "aiopslab serve") {
		t.Errorf("%s", text)
	}
	if status, _, _ := alone.do("POST", Prefix+"play", ""); status != http.StatusNotFound {
		t.Errorf("%d", status)
	}
}

func TestTableOf(t *testing.T) {
	got := tableOf("a note\n"+fakeTopology, "SERVICE")
	want := [][]string{
		{"SERVICE", "KIND", "READY PODS", "PORTS", "DEPENDS ON"},
		{"frontend", "service", "1/1", "5000", "search, profile"},
		{"geo", "service", "1/1", "8083", "mongodb-geo"},
		{"mongodb-geo", "mongodb", "0/1", "27017", "-"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"mongodb-geo": "0/1 pods are ready"}, unready(got)); diff != "" {
		t.Error(diff)
	}
	if rows := tableOf("There are no alerts about shop.\n", "STATE"); rows != nil {
		t.Errorf("%v", rows)
	}
}

// What a lens cannot read is shown as text.
func FuzzLens(f *testing.F) {
	f.Add("metrics", fakeSeries())
	f.Add("traces", `{"spans":[["a","a","s","o",1e300,-5,true],["","","","",0,1e300,1]]}`)
	f.Add("topology", fakeTopology)
	f.Add("alerts", fakeAlerts)
	f.Add("logs", "x")
	apps := problemtest.Library(f).Apps
	markup := regexp.MustCompile(`(?i)<script|<img|onerror=`)
	f.Fuzz(func(t *testing.T, kind, text string) {
		p := &played{Turn: Turn{Observation: text}, lens: lens{kind: kind, about: text[:min(len(text), 20)]}}
		s := sightOf(p, apps[0], "all")
		if s.Drawing != "" && markup.MatchString(string(s.Drawing)) {
			t.Errorf("%s", s.Drawing)
		}
	})
}

// What is of others is as it was published: who changes it changes this list, and the licence beside it.
func TestPartsOfOthers(t *testing.T) {
	for name, want := range map[string]string{
		"xterm.js":     "1f991ac3b4b283ebf96e60ae23a00a52765dd3a2e46fa6fdda9f1aab032f7495",
		"xterm.css":    "ba8e6985669488981ccf40c0cefe3aba80722cb6c92de7ad628b0bd717faf2b6",
		"addon-fit.js": "bdaefa370b1bfc42ee88d46fe6072400902a4d4b2d45cd93438dda9b23c97089",
	} {
		b, err := static.ReadFile("static/" + name)
		if got := fmt.Sprintf("%x", sha256.Sum256(b)); err != nil || got != want {
			t.Errorf("%s is %s, %v", name, got, err)
		}
	}
	if b, err := static.ReadFile("static/xterm.LICENSE.txt"); err != nil || !strings.Contains(string(b), "5.5.0") {
		t.Error(err)
	}
}
