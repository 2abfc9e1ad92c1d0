package page

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/record"
)

// begun is when made runs begin.
var begun = time.Date(2026, 11, 17, 22, 0, 0, 0, time.UTC)

// made is a record that a test makes.
type made struct {
	id, agent string
	at        time.Time
	seq       int
	lines     []string
}

func newMade(id, agent string) *made {
	m := &made{id: id, agent: agent, at: begun}
	m.line(map[string]any{"format": record.Format, "version": record.Version, "id": id, "agent": agent, "time": m.at})
	return m
}

func (m *made) line(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	m.lines = append(m.lines, string(b))
}

// event adds one, seconds after the beginning.
func (m *made) event(at float64, kind string, data any) *made {
	m.seq++
	b, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	m.line(record.Event{Seq: m.seq, Time: begun.Add(time.Duration(at * float64(time.Second))), Kind: kind, Data: b})
	return m
}

// ended adds the problem and the verdict.
func (m *made) ended(problem, class, why string, results map[string]any) *made {
	task := "mitigation"
	if strings.Contains(problem, "detection") {
		task = "detection"
	}
	if strings.HasPrefix(problem, "shift-") {
		task = "shift"
	}
	m.event(0, record.ProblemEvent, map[string]any{
		"id": problem, "task": task, "app": "hotel-reservation", "seed": 7, "faults": []string{"revoke_auth mongodb-geo"},
	})
	return m.event(60, record.VerdictEvent, map[string]any{"class": class, "why": why, "results": results})
}

// text is the record.
func (m *made) text() string { return strings.Join(m.lines, "\n") + "\n" }

// save writes the record into a directory.
func (m *made) save(t testing.TB, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, m.id+".jsonl"), []byte(m.text()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// simple writes a run of which there is little to tell.
func simple(t testing.TB, dir, id, agent, model, problem, class string, seconds float64) {
	t.Helper()
	newMade(id, agent).ended(problem, class, "because of "+class,
		map[string]any{"TTM": seconds, "model": model}).save(t, dir)
}

// visitor is a browser that was let in, or not.
type visitor struct {
	t    testing.TB
	site *Site
	in   bool
}

func visit(t testing.TB, o Options) visitor {
	t.Helper()
	s := New(o)
	t.Cleanup(s.Close)
	return visitor{t, s, true}
}

// do asks for a page, and returns its status and text.
func (v visitor) do(method, path, body string, header ...string) (int, string, http.Header) {
	v.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Accept-Encoding", "gzip")
	if v.in {
		r.AddCookie(&http.Cookie{Name: v.site.door.cookie, Value: v.site.door.pass})
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	v.site.ServeHTTP(w, r)
	var from io.Reader = w.Body
	if w.Header().Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(w.Body)
		if err != nil {
			v.t.Fatal(err)
		}
		from = z
	}
	b, err := io.ReadAll(from)
	if err != nil {
		v.t.Fatal(err)
	}
	return w.Code, string(b), w.Header()
}

// get asks for a page that must be there.
func (v visitor) get(path string) string {
	v.t.Helper()
	status, text, _ := v.do("GET", path, "")
	if status != http.StatusOK {
		v.t.Fatalf("%s: %d\n%s", path, status, text)
	}
	return text
}

// has reports texts that a page lacks.
func has(t testing.TB, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			t.Errorf("there is no %q in\n%s", text, page)
		}
	}
}

// lacks reports texts that a page should not have.
func lacks(t testing.TB, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(page, text) {
			t.Errorf("there is %q in\n%s", text, page)
		}
	}
}

// Agents reach the server as well: without the key or the token there is nothing to see, by any path.
func TestDoor(t *testing.T) {
	dir := t.TempDir()
	simple(t, dir, "a", "react", "", "secret-mitigation-1", "solved", 10)
	v := visit(t, Options{Dir: dir, Token: "sesame"})
	v.in = false
	s := v.site
	for pattern := range s.routes() {
		_, path, _ := strings.Cut(pattern, " ")
		path = strings.NewReplacer("{$}", "", "{id}", "a").Replace(path)
		for _, header := range [][]string{
			{},
			{"Authorization", "Bearer of-a-session"},
			{"Authorization", "Bearer "},
			{"Cookie", s.door.cookie + "=" + s.door.key},
			{"Cookie", s.door.cookie + "="},
		} {
			status, text, _ := v.do("GET", path, "", header...)
			if status != http.StatusUnauthorized || strings.Contains(text, "secret-mitigation-1") {
				t.Errorf("%s with %q: %d\n%s", path, header, status, text)
			}
		}
	}
	status, _, h := v.do("GET", s.Link()+"&agent=react", "")
	if status != http.StatusSeeOther || h.Get("Location") != Prefix+"?agent=react" {
		t.Fatalf("%d, %s", status, h)
	}
	cookie := h.Get("Set-Cookie")
	for _, want := range []string{"HttpOnly", "SameSite=Strict", "Path=" + Prefix} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie %s lacks %s", cookie, want)
		}
	}
	cookie, _, _ = strings.Cut(cookie, ";")
	if status, _, _ := v.do("GET", Prefix, "", "Cookie", cookie); status != http.StatusOK {
		t.Errorf("with the cookie: %d", status)
	}
	if status, text, _ := v.do("GET", Prefix+"?key=wrong", ""); status != 401 || !strings.Contains(text, "has ended") {
		t.Errorf("with a wrong key: %d", status)
	}
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	if status, _, h := v.do("POST", Prefix+"enter", "token=wrong", form...); status != 401 || h.Get("Set-Cookie") != "" {
		t.Errorf("with a wrong token: %d", status)
	}
	if status, _, h := v.do("POST", Prefix+"enter", "token=sesame", form...); status != 303 || h.Get("Set-Cookie") == "" {
		t.Errorf("with the token: %d", status)
	}
	if status, _, _ := v.do("GET", Prefix, "", "Authorization", "Bearer sesame"); status != http.StatusOK {
		t.Errorf("with the token in a header: %d", status)
	}
}

// Without a token there is none that opens the pages, not even an empty one.
func TestNoToken(t *testing.T) {
	v := visit(t, Options{Dir: t.TempDir()})
	v.in = false
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	if status, _, _ := v.do("POST", Prefix+"enter", "token=", form...); status != http.StatusUnauthorized {
		t.Errorf("%d", status)
	}
}

func TestHeaders(t *testing.T) {
	v := visit(t, Options{Dir: filepath.Join(t.TempDir(), "none")})
	_, text, h := v.do("GET", Prefix, "")
	has(t, text, "No run yet")
	policy := h.Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Error(policy)
	}
	for _, inline := range []string{" style=", " onclick=", "<style"} {
		if strings.Contains(text, inline) {
			t.Errorf("the page has %q, which its policy forbids", inline)
		}
	}
	for _, secret := range []string{v.site.door.key, v.site.door.pass} {
		lacks(t, text, secret)
	}
	status, css, h := v.do("GET", Prefix+"static/style.css?v="+edition(), "")
	if status != 200 || !strings.HasPrefix(h.Get("Content-Type"), "text/css") || !strings.Contains(css, "--accent") {
		t.Errorf("%d, %s", status, h)
	}
	if status, _, _ := v.do("GET", Prefix+"static/..%2fsite.go", ""); status != http.StatusNotFound {
		t.Errorf("%d", status)
	}
	if status, text, _ := v.do("GET", Prefix+"nope", ""); status != 404 || !strings.Contains(text, "there is no page") {
		t.Errorf("%d", status)
	}
}

func TestRuns(t *testing.T) {
	dir := t.TempDir()
	simple(t, dir, "run-1", "react", "gpt-x", "revoke-mitigation-1", "solved", 10)
	simple(t, dir, "run-2", "react", "gpt-x", "revoke-mitigation-1", "agent", 20)
	simple(t, dir, "run-3", "flash", "", "kill-detection-1", "infra", 30)
	newMade("run-4", "flash").event(1, record.PhaseEvent, record.Phase{Name: "agent"}).save(t, dir)
	simple(t, dir, "run-5", "flash", "", "kill-detection-1", "solved", 5)
	v := visit(t, Options{Dir: dir})
	for _, test := range []struct {
		query string
		want  string // in this order
	}{
		{"", "5 4 3 2 1"},
		{"?sort=begun", "1 2 3 4 5"},
		{"?sort=-seconds", "3 2 1 5 4"},
		{"?sort=nonsense", "5 4 3 2 1"},
		{"?agent=react", "2 1"},
		{"?model=gpt-x&verdict=failed", "2"},
		{"?verdict=spoilt", "3"},
		{"?blame=infra", "3"},
		{"?blame=agent", "2"},
		{"?verdict=unfinished", "4"},
		{"?task=detection&app=hotel-reservation&problem=kill-detection-1", "5 3"},
		{"?q=REVOKE_AUTH+flash", "5 3"},
		{"?q=because+infra", "3"},
		{"?agent=nobody", ""},
		{"?page=9", "5 4 3 2 1"},
	} {
		page := v.get(Prefix + test.query)
		var got []string
		for _, part := range strings.Split(page, `href="`+Prefix+"runs/run-")[1:] {
			got = append(got, part[:1])
		}
		if list := strings.Join(got, " "); list != test.want {
			t.Errorf("%s: %s, want %s", test.query, list, test.want)
		}
	}
	has(t, v.get(Prefix+"?agent=nobody"), "No run is like that")
	has(t, v.get(Prefix+"?agent=react"), `<option selected>react</option>`, "2 of 5 runs")
	has(t, v.get(Prefix+"?show=matrix"), `title="1 of 2 solved; 95 %: 9 to 91 %"`, "react (gpt-x)")
	board := v.get(Prefix + "?show=board")
	has(t, board, "react (gpt-x)", "50\u202f%")
	if strings.Index(board, ">flash<") > strings.Index(board, ">react (gpt-x)<") {
		t.Error("the best is not the first")
	}
}

// Pages of the table follow one another, and keep what was chosen.
func TestPaging(t *testing.T) {
	dir := t.TempDir()
	for i := range perPage + 1 {
		simple(t, dir, fmt.Sprintf("run-%03d", i), "react", "", "p-mitigation-1", "solved", 1)
	}
	v := visit(t, Options{Dir: dir})
	first := v.get(Prefix + "?agent=react&sort=begun")
	has(t, first, "1 of 2", `?agent=react&amp;page=2&amp;sort=begun" rel="next"`)
	if n := strings.Count(first, "data-row"); n != perPage {
		t.Errorf("%d rows", n)
	}
	second := v.get(Prefix + "?agent=react&sort=begun&page=2")
	has(t, second, fmt.Sprintf("run-%03d", perPage), `rel="prev"`)
	lacks(t, second, `rel="next"`)
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":             "plain\ttext\n",
		"\x1b[31mred\x1b[0m":        "red",
		"\x1b]0;title\x07":          `\x1b]0;title\a`,
		"a\u202eb":                  `a\u202eb`,
		"<script>alert(1)</script>": "<script>alert(1)</script>",
		"\xff":                      "\uFFFD",
	} {
		if got := visible(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestExcerpt(t *testing.T) {
	long := strings.Repeat("é", 5_000_000)
	e := excerptOf(long, "/all")
	if e.Left != "10.0 MB" || len(e.Head) > shownHead || len(e.Tail) > shownTail || strings.Contains(e.Head+e.Tail, "\uFFFD") {
		t.Errorf("%d and %d, %s left", len(e.Head), len(e.Tail), e.Left)
	}
	if e := excerptOf("short", "/all"); e != (excerpt{Head: "short"}) {
		t.Errorf("%+v", e)
	}
	lines := excerptOf(strings.Repeat("a line of some length\n", 1000), "/all")
	if !strings.HasSuffix(lines.Head, "length") || !strings.HasPrefix(lines.Tail, "a line") {
		t.Errorf("%q, %q", lines.Head, lines.Tail)
	}
}
