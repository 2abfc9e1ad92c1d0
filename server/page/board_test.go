package page

import (
	"math"
	"net/url"
	"testing"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record/index"
	"github.com/aiopslab/aiopslab/report"
	"github.com/aiopslab/aiopslab/session"
)

// TestShareOfTries: tries of one problem are alike, so they make an interval no narrower; of one problem alone it is
// about that problem.
func TestShareOfTries(t *testing.T) {
	tallied := func(problems []string, tries int) report.Share {
		var x tally
		for _, p := range problems {
			for range tries {
				x.add(&index.Run{Problem: p, Class: string(session.Solved)})
			}
		}
		x.add(&index.Run{Problem: "p", Class: string(session.Infra)})
		return shareOf(x.solved)
	}
	once, often := tallied([]string{"p", "q"}, 1), tallied([]string{"p", "q"}, 10)
	if often.N != 20 || often.Of != 20 || often.Low != once.Low || often.High != once.High {
		t.Errorf("ten tries of two problems: %+v; one of each: %+v", often, once)
	}
	if one := tallied([]string{"p"}, 10); one != report.NewShare(10, 10) {
		t.Errorf("ten tries of one problem: %+v", one)
	}
	if none := tallied(nil, 0); none != report.NewShare(0, 0) {
		t.Errorf("of none: %+v", none)
	}
}

// TestHarmOfTries: so it is with what was solved without harm, of runs and of shifts.
func TestHarmOfTries(t *testing.T) {
	runs := func(tries int) (list []*index.Run) {
		for i := range 6 {
			for range tries {
				list = append(list, &index.Run{
					Problem: string(rune('a' + i)), Agent: "x", Task: string(problem.OnCall), Class: string(session.Solved),
					NoHarm: new(i > 1), Shift: &index.Shift{},
				})
			}
		}
		return list
	}
	none := filter{Values: url.Values{}}
	shares := func(tries int) [2]report.Share {
		b, r := boardOf(runs(tries), none), rotaOf(runs(tries), none)
		return [2]report.Share{b.Rows[0].Safe.Share, r.Rows[0].Safe.Share}
	}
	once, often := shares(1), shares(10)
	for i := range once {
		if once[i].Of != 6 || often[i].Of != 60 || math.Abs(often[i].Low-once[i].Low) > 1e-9 {
			t.Errorf("ten tries of six problems: %+v; one of each: %+v", often[i], once[i])
		}
	}
}
