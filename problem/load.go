package problem

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/aiopslab/aiopslab/internal/strict"
	"github.com/aiopslab/aiopslab/workload"
)

// Load is the load that runs from before the fault until after grading: requests at a rate, which may
// change, or of a trace, or of users who wait and think.
type Load struct {
	workload.Arrivals `yaml:",inline"`
	Users             *workload.Users `yaml:"users,omitempty"`
	Mix               string          `yaml:"mix,omitempty"` // the application's own by default
}

// The most and the least requests a second that a load may have: a cluster on one machine serves some
// hundred, and of less than one nobody learns soon whether users are served.
const (
	maxRate = 1000
	minRate = 1
)

// maxDay is how long the period of a daily rate may be. A run takes minutes.
const maxDay = time.Hour

// ParseLoad reads a load as it is given on a command line: requests a second, or what a document has,
// such as "{users: {count: 20, think: {min: 1s, max: 2s}}}". Nothing has to be judged by it, so it may
// also be nothing, and end.
func ParseLoad(text string) (*Load, error) {
	l := &Load{}
	if rate, err := strconv.ParseFloat(text, 64); err == nil {
		l.Rate = workload.Constant(rate)
	} else if err := strict.Decode("", []byte(text), l); err != nil {
		if wrong, ok := errors.AsType[*strict.Problems](err); ok {
			return nil, errors.New(wrong.List[0].Text) // There is one line, so its number says nothing.
		}
		return nil, err
	}
	s := l.Spec(nil)
	var wrong []string
	for _, p := range workload.Problems(s.Arrivals, s.Users, nil) {
		wrong = append(wrong, p.String())
	}
	if len(wrong) > 0 {
		return nil, errors.New(strings.Join(wrong, "; "))
	}
	if most := l.most(); most > workload.MaxRate {
		return nil, fmt.Errorf("%g requests a second; the most is %d", most, workload.MaxRate)
	}
	return l, nil
}

// most is how many requests a second there are at most.
func (l *Load) most() (high float64) {
	if l.Users != nil {
		return 0 // They wait.
	}
	_, high = l.Bounds()
	return high
}

// Peak is how many requests a second there are at most, of users if they are answered at once. It has no bound if those
// do not think.
func (l *Load) Peak() float64 {
	if l.Users != nil {
		return l.Users.Most()
	}
	return l.most()
}

// None reports whether nothing is ever sent.
func (l *Load) None() bool { return l.Users == nil && l.most() == 0 }

// Spec is the load with its mix, the one that it names.
func (l *Load) Spec(m *workload.Mix) workload.Spec {
	s := workload.Spec{Mix: m, Users: l.Users}
	if l.open() {
		s.Arrivals = &l.Arrivals
	}
	return s
}

// open reports whether the load says itself when its requests are due.
func (l *Load) open() bool {
	return l.Users == nil || l.Rate != nil || l.Process != "" || l.Noise != 0 || l.Surges != nil ||
		l.Replay != nil
}

// Key is the same for equal loads.
func (l *Load) Key() string {
	data, err := yaml.Marshal(l)
	if err != nil {
		return fmt.Sprintf("%p", l) // Then it is equal to itself alone.
	}
	return string(data)
}

// String says what the load is in a few words.
func (l *Load) String() string {
	what := ""
	switch low, high := 0.0, 0.0; {
	case l.Users != nil:
		what = fmt.Sprintf("%d users, who think for %v to %v", l.Users.Count, l.Users.Think.Min, l.Users.Think.Max)
		if l.Users.Spawn > 0 {
			what += fmt.Sprintf(", %d at first and %g more a second", max(l.Users.From, 1), l.Users.Spawn)
		}
	default:
		low, high = l.Bounds()
		what = fmt.Sprintf("%g requests/s", low)
		if low != high {
			what = fmt.Sprintf("%g to %g requests/s", low, high)
		}
		if l.Replay != nil {
			what += " of a trace"
		} else if shapes := l.shapes(); shapes != "constant" {
			what += " (" + shapes + ")"
		}
	}
	if l.Mix != "" {
		what += " of " + l.Mix
	}
	return what
}

// shapes names the shapes of the rate.
func (l *Load) shapes() string {
	var names []string
	for _, p := range l.Rate {
		names = append(names, p.Shape())
	}
	if l.Noise > 0 {
		names = append(names, "noise")
	}
	if l.Surges != nil {
		names = append(names, "surges")
	}
	return strings.Join(names, ", ")
}

// checkLoad notes what is wrong with the load, whose mix is nil if it is not known. A run must have a
// verdict whenever it ends, so there must be requests at any time, and not more than can be served.
func (r *reader) checkLoad(m *workload.Mix) {
	l := &r.d.Load
	s := l.Spec(m)
	list := workload.Problems(s.Arrivals, s.Users, m)
	if len(list) == 0 {
		list = l.senseless()
	}
	for _, p := range list {
		p.Path = append([]any{"load"}, p.Path...)
		if strings.HasPrefix(p.Text, "it is missing") || strings.HasPrefix(p.Text, "give exactly one") {
			r.missing(p.Path, "%v", p)
		} else {
			r.add(p.Path, "%v", p)
		}
	}
}

// senseless is what makes a verdict meaningless, or a run impossible.
func (l *Load) senseless() []workload.Problem {
	const (
		tooFew  = "%g: want at least %d request a second, or nobody learns whether users are served"
		tooMany = "%g: want at most %d requests a second; a cluster on one machine serves some hundred"
	)
	if l.Users != nil {
		path := []any{"users"}
		switch most := l.Users.Most(); {
		case most < minRate:
			return []workload.Problem{{Path: path, Text: fmt.Sprintf(tooFew, most, minRate)}}
		case most > maxRate:
			return []workload.Problem{{Path: path, Text: fmt.Sprintf(tooMany+"; let them think longer", most, maxRate)}}
		}
		return nil
	}
	path, what := []any{"rate"}, "it is %s "
	if l.Replay != nil {
		path = []any{"replay", "trace"}
	} else if end := l.Rate.End(); end > 0 {
		return []workload.Problem{{Path: path, Text: fmt.Sprintf(
			"it ends after %v, and a run goes on until it is graded; end with a phase without \"for\"", end)}}
	}
	for i, p := range l.Rate {
		if d := p.Daily; d != nil && (d.Period == 0 || d.Period > maxDay) {
			at := append([]any(nil), path...)
			if len(l.Rate) > 1 {
				at = append(at, i)
			}
			return []workload.Problem{{Path: append(at, "daily", "period"), Text: fmt.Sprintf(
				"say how long a day is, at most %v: a run takes minutes, and nobody would see it change", maxDay)}}
		}
	}
	low, high := l.Bounds()
	switch {
	case !(low >= minRate) && low == high:
		return []workload.Problem{{Path: path, Text: fmt.Sprintf(tooFew, low, minRate)}}
	case !(low >= minRate):
		return []workload.Problem{{Path: path, Text: fmt.Sprintf(what+tooFew, "at times", low, minRate)}}
	case !(high <= maxRate) && low == high:
		return []workload.Problem{{Path: path, Text: fmt.Sprintf(tooMany, high, maxRate)}}
	case !(high <= maxRate):
		return []workload.Problem{{Path: path, Text: fmt.Sprintf(what+tooMany, "at times", high, maxRate)}}
	}
	return nil
}
