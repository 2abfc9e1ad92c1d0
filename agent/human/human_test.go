package human

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
)

func TestPerson(t *testing.T) {
	var show, out strings.Builder
	lines := "help\nhelp get_logs\nget_log(\"a\", \"b\")\nfrobnicate(1)\nsubmit geo\n\nkubectl get pods\nf() { echo hi; }\nsubmit([\"geo\"])\n"
	a, err := Entry(strings.NewReader(lines), &show, &out).New(agent.Briefing{Description: "You are on call.", Actions: aci.Actions("localization")})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	observation := "not shown" + aci.NextAction
	for {
		r, err := a.Act(t.Context(), observation)
		if err != nil {
			if !strings.Contains(err.Error(), "gave up") {
				t.Error(err)
			}
			break
		}
		got = append(got, r)
		observation = strings.Repeat("line\n", 30) + "the end\n" + aci.NextAction
	}
	want := []string{agent.Call("exec_shell", "kubectl get pods"), agent.Call("exec_shell", "f() { echo hi; }"), "```\nsubmit([\"geo\"])\n```"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q", got)
	}
	for _, w := range []string{
		"You are on call.", "  get_logs(namespace: str", "\nArgs:\n", "There is no call get_log; did you mean get_logs(",
		"There is no call frobnicate; 'help' lists", "submit is a call; write it as submit(",
	} {
		if !strings.Contains(out.String(), w) {
			t.Errorf("no %q in %s", w, out.String())
		}
	}
	if n := strings.Count(show.String(), "line\n"); n != 90 || strings.Contains(show.String(), aci.NextAction) {
		t.Errorf("%d of 90 lines shown: %s", n, show.String())
	}
}

func TestPager(t *testing.T) {
	text := "1\n2\n" + strings.Repeat("x", 25) + "\n4\n5\n6\n"
	for _, tt := range []struct {
		keys  string
		pages int
		last  string // what is shown last
	}{
		{"  ", 2, "6"}, {"q", 1, "2"}, {"a", 1, "6"}, {"\x03", 1, "2"}, {"", 1, "2"},
	} {
		var b strings.Builder
		keys := tt.keys
		asked := 0
		p := &pager{out: &b, width: 10, height: 5, key: func() (byte, error) {
			asked++
			if keys == "" {
				return 0, errors.New("closed")
			}
			k := keys[0]
			keys = keys[1:]
			return k, nil
		}}
		p.print(text)
		shown := strings.Fields(b.String()[strings.LastIndex(b.String(), "\r")+1:])
		last := "2" // The first page ends there: the third line takes three rows.
		if len(shown) > 0 {
			last = shown[len(shown)-1]
		}
		if asked != tt.pages || last != tt.last {
			t.Errorf("%q: asked %d times, last %s", tt.keys, asked, last)
		}
	}
	var b strings.Builder
	(&pager{out: &b}).print(text)
	if b.String() != text {
		t.Errorf("without a size: %q", b.String())
	}
}
