package page

import (
	"testing"

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
		return x.share()
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
