package report

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

// ran are runs of an agent, one for each letter: s solved, a failed, i not judged. Each is of a problem of its own, or,
// with tries, so many are of one.
func ran(agent, ends string, tries int, seconds float64) (list []*Run) {
	for i, end := range ends {
		class := map[rune]session.Class{'s': session.Solved, 'a': session.AgentFailed, 'i': session.Infra}[end]
		list = append(list, &Run{
			Run:  record.Run{ID: fmt.Sprintf("%s-%03d", agent, i), Agent: agent, Problem: fmt.Sprint("p", i/tries), Seed: uint64(i % tries)},
			Task: problem.Tasks[i%2], Class: class, Seconds: seconds + float64(i%3),
		})
	}
	return list
}

func TestCompare(t *testing.T) {
	for _, tt := range []struct {
		name          string
		first, second string
		tries         int
		both, a, b, n int
		sentence      string
	}{
		{
			"one is better", strings.Repeat("sa", 20), strings.Repeat("ss", 19) + "sa", 1, 20, 0, 19, 1,
			"b solves 48 % more than a, 95 % 29 to 62.",
		},
		{
			"the other is better", strings.Repeat("ss", 19) + "sa", strings.Repeat("sa", 20), 1, 20, 19, 0, 1,
			"a solves 48 % more than b, 95 % 29 to 62.",
		},
		{
			"nobody knows", "ssaasa", "ssasaa", 1, 2, 1, 1, 2,
			"a and b solve equally many, 95 % -44 to 44: these runs do not tell them apart. So few problems would show no difference, however large.",
		},
		{"the same", "ss", "ss", 1, 2, 0, 0, 0, "a and b solve equally many, 95 % -66 to 66: these runs do not tell them apart. So few problems would show no difference, however large."},
		{"not judged is not counted", "sis", "ssi", 1, 1, 0, 0, 0, "a and b solve equally many, 95 % -79 to 79: these runs do not tell them apart. So few problems would show no difference, however large."},
		{
			"tries of one problem are no evidence about others", strings.Repeat("a", 50), strings.Repeat("s", 50), 50, 0, 0, 50, 0,
			"b solves 100 % more than a, 95 % -12 to 100: these runs do not tell them apart. So few problems would show no difference, however large.",
		},
		{
			"two problems are no evidence, however alike their tries", "aaaa", "ssss", 2, 0, 0, 4, 0,
			"b solves 100 % more than a, 95 % 7 to 100, P 0.5: these runs do not tell them apart. So few problems would show no difference, however large.",
		},
		{
			"tries of many problems are", strings.Repeat("as", 20), strings.Repeat("ss", 20), 2, 20, 0, 20, 0,
			"b solves 50 % more than a, 95 % 24 to 70.",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Compare("a", "b", ran("a", tt.first, tt.tries, 10), ran("b", tt.second, tt.tries, 4))
			p := c.Paired
			if p.Both != tt.both || p.First != tt.a || p.Second != tt.b || p.Neither != tt.n {
				t.Errorf("%+v", p.Pairs)
			}
			if got := c.Sentence(); got != tt.sentence {
				t.Errorf("%s\nwant\n%s", got, tt.sentence)
			}
		})
	}
}

// A comparison can be put into a pull request, or on a page. Names are an agent's to choose, and do nothing there.
func TestCompareFormats(t *testing.T) {
	name := "<b>|@x"
	c := Compare("a", name, ran("a", "ssas", 1, 10), ran(name, "ssss", 1, 4))
	for format, f := range map[string]struct {
		write func(io.Writer) error
		want  []string
	}{
		"Markdown": {c.WriteMarkdown, []string{
			"**&lt;b&gt;\\|&#64;x solves 25 % more than a,", "\n\n4 pairs of runs of the same problems with the same seeds.\n",
			"\n### Solved\n\n| TASK | PAIRS | a | &lt;b&gt;\\|&#64;x |", "\n| all | 4 | 75.0 % | 100.0 % |",
			"\n### What a run takes\n",
		}},
		"HTML": {c.WriteHTML, []string{
			"<!doctype html>", "<h1>a and &lt;b&gt;|@x</h1>", "<p><strong>&lt;b&gt;|@x solves 25 % more than a,",
			"<h2>Solved</h2>", "<td>75.0 %</td><td>100.0 %</td>", "</html>\n",
		}},
	} {
		var out bytes.Buffer
		if err := f.write(&out); err != nil {
			t.Fatal(err)
		}
		for _, want := range f.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in\n%s", format, want, out.String())
			}
		}
		if strings.Contains(out.String(), "<b>") {
			t.Errorf("%s: a name is a tag:\n%s", format, out.String())
		}
	}
}

// Who has no partner is left out, and said so; a run that is there twice is one.
func TestCompareAlone(t *testing.T) {
	a, b := ran("a", "ssas", 1, 10), ran("b", "ssa", 1, 4)
	c := Compare("a", "b", append(a, a[0]), append(b, &Run{
		Run: record.Run{ID: "b-9", Problem: "p0", Seed: 7}, Task: problem.Detection, Class: session.Solved,
	}))
	if c.Paired.Of() != 3 || c.First.Alone != 1 || c.Second.Alone != 1 {
		t.Errorf("%d pairs, %d and %d alone", c.Paired.Of(), c.First.Alone, c.Second.Alone)
	}
	var out bytes.Buffer
	if err := c.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"3 pairs of runs of the same problems with the same seeds. Left out, without a partner: 1 run of a. Left out, without a partner: 1 run of b.",
		"all           3      66.7 %   66.7 %   2", "time (s)    3      11  5  -6          -\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "cost") {
		t.Errorf("a cost that nobody told:\n%s", out.String())
	}
}

// A spreadsheet gets the same numbers, and no formula.
func TestCompareCSV(t *testing.T) {
	a, b := ran("=a", "ssaasa", 1, 10), ran("b", "ssaaas", 1, 4)
	var out bytes.Buffer
	if err := Compare("=a", "b", a, b).WriteCSV(&out); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range lines {
		for _, at := range []int{12, 13} { // Where an interval lies is what other tests are about.
			if l[at] != "" && l[at] != "low" && l[at] != "high" {
				l[at] = "x"
			}
		}
		got = append(got, strings.Join(l, ","))
	}
	want := []string{
		"by,name,first,second,pairs,both,first_alone,second_alone,neither,first_value,second_value,difference,low,high,p,detectable",
		"all,,'=a,b,6,2,1,1,2,0.5,0.5,0,x,x,1,1",
		"task,detection,'=a,b,3,1,1,0,1,0.666667,0.333333,-0.333333,x,x,1,",
		"task,localization,'=a,b,3,1,0,1,1,0.333333,0.666667,0.333333,x,x,1,",
		"measure,time (s),'=a,b,6,,,,,11,5,-6,x,x,,",
		"measure,steps,'=a,b,6,,,,,0,0,0,x,x,,",
		"measure,tokens in,'=a,b,6,,,,,0,0,0,x,x,,",
		"measure,tokens out,'=a,b,6,,,,,0,0,0,x,x,,",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
