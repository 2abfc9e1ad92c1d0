package server

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func readDoc(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var (
	tableRow = regexp.MustCompile("(?m)^\\| ((?:GET|POST|DELETE) \\| `.*) \\|$")
	curlLine = regexp.MustCompile(`(?m)^    curl -s(?: -N)?(?: -X (\w+))? \$LAB(\S*)(?: -d '(.*)')?$`)
	envIDs   = regexp.MustCompile(`{"id":"([^"]+)"`)
	episode  = regexp.MustCompile(`"episode":"([^"]+)"`)
	snapID   = regexp.MustCompile(`^{"id":"([^"]+)","step":`)
	bodyID   = regexp.MustCompile(`^{"id":"([^"]+)"`)
)

// The table of paths is that of the API, and every path has an example that works.
func TestServerDocs(t *testing.T) {
	doc := readDoc(t, "docs/server.md")
	var desks sync.Map
	l := newLab(t, Options{}, &fakeBackend{desks: &desks})
	var want, got []string
	uncovered := map[string]bool{}
	for _, r := range l.front.routes() {
		path := strings.TrimSuffix(r.path, "{$}")
		want = append(want, fmt.Sprintf("%s | `%s` | %s", r.method, path, r.summary))
		uncovered[r.method+" "+path] = r.status != http.StatusSwitchingProtocols // curl does not speak that.
	}
	for _, m := range tableRow.FindAllStringSubmatch(doc, -1) {
		got = append(got, m[1])
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("paths (-code +docs):\n%s", d)
	}
	if lines, parsed := strings.Count(doc, "\n    curl"), len(curlLine.FindAllString(doc, -1)); lines != parsed {
		t.Errorf("of %d examples %d can be read", lines, parsed)
	}
	id, run, vector, snap := "", "", strings.NewReplacer(), strings.NewReplacer()
	for _, m := range curlLine.FindAllStringSubmatch(doc, -1) {
		method, path, body := m[1], m[2], m[3]
		if method == "" {
			method = map[bool]string{true: http.MethodGet, false: http.MethodPost}[body == ""]
		}
		if whose, ok := strings.CutSuffix(path, "/$ID/questions"); ok {
			lay(t, &desks, run, 1, nil)
			questions(l, whose+"/"+id, 1)
		}
		status, answer := l.do(method, snap.Replace(vector.Replace(strings.ReplaceAll(path, "$ID", id))), snap.Replace(vector.Replace(body)))
		if status >= 400 {
			t.Errorf("%s: %d %s", m[0], status, answer)
		}
		if m := bodyID.FindStringSubmatch(answer); m != nil && (path == "/sessions" || path == "/envs") {
			id, run = m[1], m[1]
		}
		if m := snapID.FindStringSubmatch(answer); m != nil {
			snap = strings.NewReplacer("$SNAPSHOT", m[1])
		}
		if m := episode.FindStringSubmatch(answer); m != nil && path == "/envs/$ID/reset" {
			run = m[1]
		}
		if found := envIDs.FindAllStringSubmatch(answer, -1); path == "/envs" && method == http.MethodPost && len(found) == 2 {
			vector = strings.NewReplacer("$ENV1", found[0][1], "$ENV2", found[1][1])
		}
		delete(uncovered, method+" "+strings.NewReplacer("$ID", "{id}", "/actions/detection", "/actions/{task}", "/questions/1", "/questions/{number}", "$SNAPSHOT", "{snapshot}").Replace(path))
	}
	maps.DeleteFunc(uncovered, func(_ string, is bool) bool { return !is })
	if len(uncovered) > 0 {
		t.Errorf("there is no example of %v", uncovered)
	}
}

func TestRewardDocs(t *testing.T) {
	doc := readDoc(t, "docs/server.md")
	for name, value := range map[string]float64{
		"solved": DefaultReward.Solved, "failed": DefaultReward.Failed, "step": DefaultReward.Step, "invalid": DefaultReward.Invalid,
		"users": DefaultReward.Users, "discount": DefaultReward.Discount,
	} {
		if !regexp.MustCompile(fmt.Sprintf("(?m)^\\| `%s` .*\\| %v \\|$", name, value)).MatchString(doc) {
			t.Errorf("the docs do not say that the default of %s is %v", name, value)
		}
	}
}

// The examples in the docs are those that are run.
func TestPythonDocs(t *testing.T) {
	doc := readDoc(t, "docs/python.md")
	for _, file := range []string{"agent.py", "train.py"} {
		if code := readDoc(t, "clients/python/examples/"+file); !strings.Contains(doc, "```python\n"+code+"```\n") {
			t.Errorf("docs/python.md does not have %s as it is", file)
		}
	}
}

// What a hop through a front and a worker adds to an action.
func BenchmarkAct(b *testing.B) {
	l := newLab(b, Options{}, &fakeBackend{})
	path := l.open(`{"problem": "` + faulty + `", "max_steps": 100000000}`)
	get[Problem](l, "GET", path+"/problem", "")
	for b.Loop() {
		get[Turn](l, "POST", path+"/act", `{"name": "get_logs", "arguments": {"namespace": "a", "service": "b"}}`)
	}
}
