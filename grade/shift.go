package grade

import (
	"encoding/json"
	"math"
	"time"
)

// This file makes one number of a shift. It is a pure function of what a record tells: which incidents there were and
// when each stood open, when somebody was called, what users got, what was written, and what it cost.

// What a shift's score is made of.
const (
	// PassingShift is the score from which on a shift counts as solved.
	PassingShift = 60
	// pagesWeight is the part of the score that right answers to pages are worth.
	pagesWeight = 0.2
	// needlessCost is what a needless write takes off, and worseCost what it takes off if the system is worse than its
	// incidents explain for the whole shift; both of 1.
	needlessCost, worseCost = 0.02, 2.0
	// budgetPerHour is the money in US dollars for an hour of which budgetWeight of the score is lost, at most.
	budgetPerHour, budgetWeight = 10.0, 0.1
	// answerGrace is how long after an answer what it is about may take to be well: pods start.
	answerGrace = 30 * time.Second
	// recovery is how long after the last incident was mended, or after one has begun, users may still wait: what they
	// got is known of some seconds, and clients try again.
	recovery = 20 * time.Second
	// tailSamples tell how users fare from when nobody looks any more.
	tailSamples = 10
)

// ShiftIncident is an incident of a shift.
type ShiftIncident struct {
	Number     int      `json:"number"` // from 1, in the order in which they came
	Problem    string   `json:"problem"`
	Components []string `json:"components,omitempty"`
	// Planned is when it was to come, and Shown when it could be seen; the zero time if it never came, because another
	// one stood open until the end that it must not be beside.
	Planned time.Time `json:"planned"`
	Shown   time.Time `json:"shown"`
	// Called is when somebody was called first since; the zero time if it was mended before.
	Called time.Time `json:"called"`
	// Open is when it stood open, in order.
	Open []Stretch `json:"open"`
}

// Stretch is a stretch of time. One without an end goes on.
type Stretch struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// ShiftPage is a call by the pager.
type ShiftPage struct {
	Number int       `json:"number"`
	Sent   time.Time `json:"sent"`
	// About are the numbers of the incidents that stood open then; none for a false alarm.
	About []int `json:"about"`
	// Answered is when the agent said that it was done with it; the zero time if it never did. Named is which services
	// it said were at fault.
	Answered time.Time `json:"answered"`
	Named    []string  `json:"named,omitempty"`
}

// Deed is a write of the agent, and the service that it was to; "" if it is to none of the application.
type Deed struct {
	Time    time.Time
	Service string
	Object  string
}

// ShiftRun is what the score of a shift is made of.
type ShiftRun struct {
	From, To  time.Time // when it began, and when it was to end
	Ended     time.Time // when nobody looked any more: not before To, unless all was over, or the agent left
	Over      bool      // all that was to come had come and was mended
	Incidents []ShiftIncident
	Pages     []ShiftPage
	Deeds     []Deed
	// Near reports whether a service is one of an incident's components, or calls one of them over whatever others.
	Near   func(i ShiftIncident, service string) bool
	Points []Point // how bad the system was
	// Busy are moments at which the machine was too busy to serve users, not through the agent. What they got around
	// these does not count.
	Busy []time.Time
	Cost float64 // in US dollars; 0 if it is not known
}

// ShiftScore is what a shift came to. All parts are in it that Score is made of.
type ShiftScore struct {
	Score float64 `json:"score"` // from 0 to 100, see [ShiftRun.Score]

	From time.Time `json:"from"`
	To   time.Time `json:"to"` // when it was to end

	// Mended is from 0 to 1: how much of the time was kept that incidents would have stood open from when somebody was
	// called, if nobody had mended any.
	Mended float64 `json:"mended"`
	// Served is the part of what users wanted that they got, in the whole shift.
	Served float64 `json:"served"`
	// Answered is the part of the pages that were answered rightly.
	Answered float64 `json:"answered"`
	// Care is 1 less what was done needlessly, and less what made it worse.
	Care float64 `json:"care"`
	// Thrift is 1 less what it cost.
	Thrift float64 `json:"thrift"`

	MinutesLost     float64 `json:"minutes_lost"`  // in which no user would have got anything
	OpenMinutes     float64 `json:"open_minutes"`  // in which incidents stood open after somebody was called, in sum
	OpenPossible    float64 `json:"open_possible"` // the same if nobody had mended any
	Incidents       int     `json:"incidents"`
	IncidentsMended int     `json:"incidents_mended"`
	Pages           int     `json:"pages"`
	PagesAnswered   int     `json:"pages_answered"` // in whatever way
	PagesRight      int     `json:"pages_right"`
	// TimeToAnswer and TimeToMend are means in seconds; nil if there were none.
	TimeToAnswer *float64 `json:"time_to_answer"`
	TimeToMend   *float64 `json:"time_to_mend"`
	// Needless are the writes to what no incident was about that had come by then.
	Needless []string `json:"needless"`
	// WorseSeconds is how long the system was not well though no incident stood open.
	WorseSeconds float64 `json:"worse_seconds"`
	Cost         float64 `json:"cost_usd"`

	Each []IncidentScore `json:"each"` // by incident
}

// IncidentScore is what became of an incident.
type IncidentScore struct {
	ShiftIncident
	Mended bool `json:"mended"` // and stayed so
	// Seconds are from when somebody was called, or from when it showed if nobody was, until it was mended for good;
	// nil if it was not.
	Seconds *float64 `json:"seconds"`
}

// Score is the score of a shift:
//
//	100 · mended · served · (0.8 + 0.2 · answered) · care · thrift
//
// Each factor is from 0 to 1. So who mends nothing has nothing, whatever else it does; who mends all at once has 100
// but for what users lost before somebody was called.
func (r ShiftRun) Score() ShiftScore {
	s := ShiftScore{
		From: r.From, To: r.To, Incidents: len(r.Incidents), Pages: len(r.Pages), Cost: r.Cost, Needless: []string{},
	}
	r.Points = r.fair()
	r.mending(&s)
	r.serving(&s)
	r.paging(&s)
	r.caring(&s)
	s.Thrift = 1
	if hours := r.To.Sub(r.From).Hours(); hours > 0 {
		s.Thrift = 1 - min(budgetWeight, budgetWeight*r.Cost/(budgetPerHour*hours))
	}
	s.Score = tenth(100 * s.Mended * s.Served * (1 - pagesWeight + pagesWeight*s.Answered) * s.Care * s.Thrift)
	for _, part := range []*float64{&s.Mended, &s.Served, &s.Answered, &s.Care, &s.Thrift} {
		*part = thousandth(*part)
	}
	return s
}

// ReadShift takes what results say of a shift, as they are made or as a record has them; nil if they say nothing.
func ReadShift(r Result) *ShiftScore {
	b, err := json.Marshal(r["shift"])
	if r["shift"] == nil || err != nil {
		return nil
	}
	s := &ShiftScore{}
	if json.Unmarshal(b, s) != nil {
		return nil
	}
	return s
}

// busyAround is how long before and after a moment at which the machine is busy users may be served badly for it: what
// they got is known of the last five seconds, and a look may take as long.
const busyAround = 6 * time.Second

// fair are the points with nothing known where the machine was too busy and no incident explains what users got. A
// point before them stands for no longer time for that.
func (r ShiftRun) fair() []Point {
	points := make([]Point, len(r.Points))
	next := 0 // of the busy moments
	for n, p := range r.Points {
		for next < len(r.Busy) && r.Busy[next].Add(busyAround).Before(p.Time) {
			next++
		}
		if next < len(r.Busy) && !p.Time.Before(r.Busy[next].Add(-busyAround)) && !r.explained(p.Time) {
			p.Vitals = Vitals{Unseen, Unseen, Unseen}
		}
		points[n] = p
	}
	return points
}

// Passes reports whether the score is that of somebody to be trusted with a pager.
func (s ShiftScore) Passes() bool { return s.Score >= PassingShift }

// mending is how long incidents stood open. One that could not come counts as open for as long as it would have been
// there: who leaves a service broken does not get off with fewer incidents.
func (r ShiftRun) mending(s *ShiftScore) {
	var open, possible, took time.Duration
	for _, i := range r.Incidents {
		score := IncidentScore{ShiftIncident: i}
		since := i.Called
		switch {
		case i.Shown.IsZero():
			since = i.Planned
			open += max(0, r.To.Sub(since))
		case since.IsZero():
			since = i.Shown
		}
		possible += max(0, r.To.Sub(since))
		for _, o := range i.Open {
			open += overlap(o, since, r.To)
		}
		if end, ok := i.mended(); ok {
			score.Mended = true
			s.IncidentsMended++
			seconds := tenth(max(0, end.Sub(since)).Seconds())
			score.Seconds = &seconds
			took += max(0, end.Sub(since))
		}
		s.Each = append(s.Each, score)
	}
	if possible > 0 {
		s.Mended = max(0, 1-open.Seconds()/possible.Seconds())
	}
	if n := s.IncidentsMended; n > 0 {
		mean := tenth(took.Seconds() / float64(n))
		s.TimeToMend = &mean
	}
	s.OpenMinutes, s.OpenPossible = hundredth(open.Minutes()), hundredth(possible.Minutes())
}

// mended is when an incident was mended for good.
func (i ShiftIncident) mended() (time.Time, bool) {
	if i.Shown.IsZero() || len(i.Open) == 0 {
		return time.Time{}, false
	}
	last := i.Open[len(i.Open)-1].To
	return last, !last.IsZero()
}

// Standing reports whether an incident stood open at a moment.
func (i ShiftIncident) Standing(at time.Time) bool {
	for _, o := range i.Open {
		if !at.Before(o.From) && (o.To.IsZero() || at.Before(o.To)) {
			return true
		}
	}
	return false
}

// overlap is how much of a stretch is between two moments.
func overlap(o Stretch, from, to time.Time) time.Duration {
	if o.From.After(from) {
		from = o.From
	}
	if !o.To.IsZero() && o.To.Before(to) {
		to = o.To
	}
	return max(0, to.Sub(from))
}

// serving is what users got. If nobody looked until the end, users are taken to fare as they
// did last, unless all was over.
func (r ShiftRun) serving(s *ShiftScore) {
	lost := 0.0
	var tail []float64
	run := Run{Points: r.Points}
	for n, p := range r.Points {
		if p.Vitals.Users < 0 || p.Time.Before(r.From) || p.Time.After(r.To) {
			continue
		}
		lost += p.Vitals.Users * run.length(n)
		if !p.Time.After(r.Ended) {
			tail = append(tail, p.Vitals.Users)
		}
	}
	if rest := r.To.Sub(r.Ended).Seconds(); rest > 0 && !r.Over && len(tail) > 0 {
		tail = tail[max(0, len(tail)-tailSamples):]
		sum := 0.0
		for _, u := range tail {
			sum += u
		}
		lost += rest * sum / float64(len(tail))
	}
	s.MinutesLost, s.Served = hundredth(lost/60), 1
	if length := r.To.Sub(r.From).Seconds(); length > 0 {
		s.Served = max(0, 1-lost/length)
	}
}

// paging is how pages were answered. An answer is right if what the page was about is mended then, or soon after, or if
// the service at fault is named. One to a false alarm is right if nothing was written needlessly since the page.
func (r ShiftRun) paging(s *ShiftScore) {
	took := 0.0
	for _, p := range r.Pages {
		if p.Answered.IsZero() {
			continue
		}
		s.PagesAnswered++
		took += max(0, p.Answered.Sub(p.Sent)).Seconds()
		if r.rightly(p) {
			s.PagesRight++
		}
	}
	s.Answered = 1
	if n := len(r.Pages); n > 0 {
		s.Answered = float64(s.PagesRight) / float64(n)
	}
	if n := s.PagesAnswered; n > 0 {
		mean := tenth(took / float64(n))
		s.TimeToAnswer = &mean
	}
}

func (r ShiftRun) rightly(p ShiftPage) bool {
	if len(p.About) == 0 {
		for _, d := range r.Deeds {
			if d.Time.After(p.Sent) && d.Time.Before(p.Answered) && !r.needed(d) {
				return false
			}
		}
		return true
	}
	for _, number := range p.About {
		for _, i := range r.Incidents {
			if i.Number == number && i.Standing(p.Answered.Add(answerGrace)) && !i.named(p.Named) {
				return false
			}
		}
	}
	return true
}

// named reports whether a component of the incident is among a few names. A long list names nothing.
func (i ShiftIncident) named(names []string) bool {
	if len(names) > maxNamed {
		return false
	}
	for _, c := range i.Components {
		for _, n := range names {
			if n == c {
				return true
			}
		}
	}
	return false
}

// maxNamed is how many services an answer to a page may name.
const maxNamed = 3

// needed reports whether a write was to what an incident was about that had come by then, or to what depends on it.
func (r ShiftRun) needed(d Deed) bool {
	for _, i := range r.Incidents {
		if !i.Shown.IsZero() && !d.Time.Before(i.Shown) && d.Service != "" && r.Near(i, d.Service) {
			return true
		}
	}
	return false
}

// caring is what was written needlessly, and how long the system was not well though no incident stood open.
func (r ShiftRun) caring(s *ShiftScore) {
	for _, d := range r.Deeds {
		if !r.needed(d) {
			s.Needless = append(s.Needless, d.Object)
		}
	}
	run := Run{Points: r.Points}
	for n, p := range r.Points {
		mu, known := direct(p)
		if !known || mu <= regressionTolerance || p.Time.Before(r.From) || p.Time.After(r.To) || r.explained(p.Time) ||
			len(r.Deeds) == 0 || p.Time.Before(r.Deeds[0].Time) {
			continue // Who has written nothing has done nothing to it.
		}
		s.WorseSeconds += run.length(n)
	}
	s.WorseSeconds = tenth(s.WorseSeconds)
	s.Care = 1 - needlessCost*float64(len(s.Needless))
	if length := r.To.Sub(r.From).Seconds(); length > 0 {
		s.Care -= worseCost * s.WorseSeconds / length
	}
	s.Care = max(0, s.Care)
}

// explained reports whether an incident stood open at a moment, or did a short time ago or will soon: one is seen a
// little later than users feel it.
func (r ShiftRun) explained(at time.Time) bool {
	for _, i := range r.Incidents {
		for _, o := range i.Open {
			if at.After(o.From.Add(-recovery)) && (o.To.IsZero() || at.Before(o.To.Add(recovery))) {
				return true
			}
		}
	}
	return false
}

func hundredth(x float64) float64 { return math.Round(100*x) / 100 }

// Standing lists what is wrong with an incident's own part of a system: how its faults show, and what of its components
// is gone, scaled down, not ready or left by everybody who answered for it. It is mended if there is nothing.
func Standing(baseline, now Look, components, symptoms []string) []string {
	list := append([]string{}, symptoms...)
	own := map[string]bool{}
	for _, c := range components {
		own[c] = true
	}
	part := func(l Look) Look {
		var out Look
		for _, w := range l.Workloads {
			if own[w.Name] {
				out.Workloads = append(out.Workloads, w)
			}
		}
		for _, s := range l.Services {
			if own[s] {
				out.Services = append(out.Services, s)
			}
		}
		for _, s := range l.Serving {
			if own[s.Service] {
				out.Serving = append(out.Serving, s)
			}
		}
		return out
	}
	b, n := part(baseline), part(now)
	return append(append(list, Broken(b, n)...), impostors(b, n, false)...)
}
