package problem

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/fault"
)

// Shift is what somebody on call meets: incidents, drawn from the mitigations of an application, some of them at the
// same time, and quiet between them. The document of one has the task [OnCall] alone.
type Shift struct {
	// Length is how long it lasts, unless whoever runs it says otherwise: see [Problem.Lasting]. One that lasts several
	// times as long has as much in each of its parts.
	Length time.Duration `yaml:"length" json:"length"`
	// Incidents is how many there are at most in that time. There is no more than one for each 100 seconds, and two at
	// least.
	Incidents int `yaml:"incidents" json:"incidents"`
	// FalseAlarms is how many pages come in that time though nothing is wrong.
	FalseAlarms int `yaml:"false_alarms,omitempty" json:"false_alarms,omitempty"`
	// Day says that as many users come in that time as on a whole day, see [Problem.OverADay].
	Day bool `yaml:"day,omitempty" json:"day,omitempty"`
	// Of are the ids of the mitigations that incidents are drawn from.
	Of []string `yaml:"of" json:"of"`

	of []*Problem
}

// What a shift may be.
const (
	MinShift = time.Minute
	MaxShift = 24 * time.Hour
	// incidentEvery is how much of a shift there is for each incident, at least.
	incidentEvery = 100 * time.Second
	// lastPart is what of each part of a shift has no new incident any more: who mends the last one needs time.
	lastPart = 0.2
	// firstAfter is how much of its stretch passes before an incident at least, and jitter how much more may.
	firstAfter, jitter = 0.1, 0.4
	// pairMin and pairMax are how far apart the incidents of a pair begin.
	pairMin, pairMax = 5 * time.Second, 25 * time.Second
)

// Roster is what comes in one shift. It is drawn from a seed, and nobody who works on it is told.
type Roster struct {
	Length    time.Duration
	Incidents []Planned // in the order of their times
	// FalseAlarms are when somebody is called though nothing is wrong.
	FalseAlarms []time.Duration
}

// Planned is an incident of a roster.
type Planned struct {
	Problem *Problem // a mitigation
	At      time.Duration
}

// Shift is that of the document; nil for other tasks.
func (p *Problem) Shift() *Shift {
	if p.Task != OnCall {
		return nil
	}
	return p.Document.Shift
}

// Lasting is a shift that lasts as long as it says, not as its document does. Of another task it is the same.
func (p *Problem) Lasting(length time.Duration) *Problem {
	q := *p
	q.length = length
	return &q
}

// Length is how long a shift lasts; 0 for other tasks.
func (p *Problem) Length() time.Duration {
	if p.Shift() == nil {
		return 0
	}
	return cmp.Or(p.length, p.Shift().Length)
}

// Roster draws what comes in a shift. The same seed and length give the same roster. One that is several times as long
// as its document says is cut into as many parts, and each is drawn for itself: what was mended comes again.
func (p *Problem) Roster(seed uint64) Roster {
	r := rand.New(rand.NewPCG(seed, 0x73686966))
	parts := max(1, int(math.Round(float64(p.Length())/float64(p.Shift().Length))))
	roster := Roster{Length: p.Length()}
	for i := range parts {
		part := p.part(r, p.Length()/time.Duration(parts))
		from := (p.Length() * time.Duration(i) / time.Duration(parts)).Round(time.Second)
		for _, in := range part.Incidents {
			roster.Incidents = append(roster.Incidents, Planned{in.Problem, from + in.At})
		}
		for _, at := range part.FalseAlarms {
			roster.FalseAlarms = append(roster.FalseAlarms, from+at)
		}
	}
	return roster
}

// part draws what comes in a part of a shift.
//
// The part, but for its last fifth, is cut into stretches of the same length. All but one of them have an incident, or
// a pair that overlaps; the one that is left, which is not the first, has nothing but a false alarm. Of three incidents
// or more, at least two are a pair and at least one is alone. No incident comes twice. Those of a pair do not
// [Disturb] each other; where all do, there is no pair.
func (p *Problem) part(r *rand.Rand, length time.Duration) Roster {
	s := p.Shift()
	left := make([]*Problem, 0, len(s.of))
	for _, i := range r.Perm(len(s.of)) {
		q := *s.of[i]
		q.App = p.App
		left = append(left, &q)
	}
	n := min(max(int(length/incidentEvery), 2), max(s.Incidents, 1), len(left))
	waves := drawWaves(r, left, n)
	quiet := 1 + r.IntN(len(waves))
	stretch := time.Duration(float64(length) * (1 - lastPart) / float64(len(waves)+1))
	part := Roster{Length: length}
	for i, w := range waves {
		from := time.Duration(i) * stretch
		if i >= quiet {
			from += stretch
		}
		at := from + time.Duration((firstAfter+jitter*r.Float64())*float64(stretch))
		for _, q := range w {
			part.Incidents = append(part.Incidents, Planned{q, at.Round(time.Second)})
			at += pairMin + time.Duration(r.Int64N(int64(pairMax-pairMin)))
		}
	}
	for i := range s.FalseAlarms {
		at := time.Duration(quiet)*stretch + stretch*time.Duration(2*i+1)/time.Duration(2*s.FalseAlarms)
		part.FalseAlarms = append(part.FalseAlarms, at.Round(time.Second))
	}
	return part
}

// drawWaves takes n mitigations from a list, alone and in pairs, in a drawn order. Pairs are found first: those that
// are left may all disturb each other.
func drawWaves(r *rand.Rand, left []*Problem, n int) (waves [][]*Problem) {
	pairs := 0
	if n >= 2 {
		pairs = 1 + r.IntN(max(1, (n-1)/2))
	}
	for ; pairs > 0; pairs-- {
		pair := takePair(&left)
		if pair == nil {
			break
		}
		waves, n = append(waves, pair), n-2
	}
	for _, p := range left[:n] {
		waves = append(waves, []*Problem{p})
	}
	r.Shuffle(len(waves), func(i, j int) { waves[i], waves[j] = waves[j], waves[i] })
	return waves
}

// takePair takes the first two of a list that do not disturb each other; nil if there are none.
func takePair(list *[]*Problem) []*Problem {
	for i, a := range *list {
		for j := i + 1; j < len(*list); j++ {
			if b := (*list)[j]; !Disturb(a, b) {
				*list = slices.Delete(slices.Delete(*list, j, j+1), i, i+1)
				return []*Problem{a, b}
			}
		}
	}
	return nil
}

// Disturb reports whether two mitigations must not be open at the same time: they write the same objects or need the
// same pods left alone, one of them is about what the other's services call, so that the one would hide the other, or
// it is not known what one reaches.
func Disturb(a, b *Problem) bool {
	x, xs := a.reaches()
	y, ys := b.reaches()
	if !x || !y {
		return true
	}
	for _, m := range xs {
		for _, n := range ys {
			if m == n || calls(a.App, m, n) || calls(a.App, n, m) {
				return true
			}
		}
	}
	return false
}

// reaches are the services that a problem's faults are about; known is false if a fault does not tell, or is about all.
func (p *Problem) reaches() (known bool, services []string) {
	faults, err := p.Bind()
	if err != nil {
		return false, nil
	}
	for i, f := range faults {
		r := fault.ReachOf(f)
		if !r.Known || r.Whole {
			return false, nil
		}
		services = append(services, p.Faults()[i].Target)
		services = append(services, r.Touches...)
		for _, o := range r.Applies {
			_, name, _ := strings.Cut(o, "/")
			services = append(services, name)
		}
	}
	return true, append(services, p.Involved()...)
}

// Involved are the components that are the answer, by their own names.
func (p *Problem) Involved() (names []string) {
	for _, c := range p.Answer().Components {
		names = append(names, c.Name)
	}
	return names
}

func calls(a *app.App, caller, service string) bool {
	s, ok := a.Service(caller)
	return ok && slices.Contains(s.Calls, service)
}

// checkShift notes what is wrong with a shift, but for what its incidents are drawn from.
func (r *reader) checkShift() {
	d := r.d
	asks := slices.Contains(d.Tasks, OnCall)
	switch {
	case d.Shift == nil && asks:
		r.missing(at("shift"), "shift is missing: how long it is, and what may happen in it")
		return
	case d.Shift == nil:
		return
	case !asks || len(d.Tasks) != 1:
		r.add(at("shift"), "shift: it is for documents with the task %s alone", OnCall)
	}
	s := d.Shift
	if s.Length < MinShift || s.Length > MaxShift {
		r.add(at("shift", "length"), "shift.length %v: it is from %v to %v", s.Length, MinShift, MaxShift)
	}
	if s.Incidents < 1 {
		r.add(at("shift", "incidents"), "shift.incidents: there is one at least")
	}
	if s.FalseAlarms < 0 {
		r.add(at("shift", "false_alarms"), "shift.false_alarms: it is a number of pages")
	}
	if err := d.Load.dayless(); s.Day && err != nil {
		r.add(at("shift", "day"), "shift.day: %v", err)
	}
	if len(d.Faults) > 0 {
		r.add(at("faults"), "faults: those of a shift are the ones of the mitigations in shift.of")
	}
	if len(s.Of) < 2 {
		r.missing(at("shift", "of"), "shift.of: name two mitigations at least, by their ids")
	}
}

// link finds the mitigations of a shift.
func (l *Library) link(d *Document, a *app.App) error {
	if d.Shift == nil {
		return nil
	}
	d.Shift.of = nil
	for _, id := range d.Shift.Of {
		p, err := l.Find(id)
		switch {
		case err != nil:
			return fmt.Errorf("%s: shift.of: %w", d.File, err)
		case p.Task != Mitigation || p.App.Name != a.Name:
			return fmt.Errorf("%s: shift.of: %s is no mitigation of %s", d.File, id, a.Name)
		case slices.Contains(d.Shift.of, p):
			return fmt.Errorf("%s: shift.of: %s is there twice", d.File, id)
		}
		if known, _ := p.reaches(); !known {
			return fmt.Errorf("%s: shift.of: %s changes the whole application, so nothing else can happen beside it",
				d.File, id)
		}
		d.Shift.of = append(d.Shift.of, p)
	}
	return nil
}

// spelled is a duration in words.
func spelled(d time.Duration) string {
	n, unit := d/time.Second, "second"
	if d%time.Minute == 0 {
		n, unit = d/time.Minute, "minute"
	}
	if n != 1 {
		unit += "s"
	}
	return fmt.Sprintf("%d %s", n, unit)
}
