package page

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/internal/term"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/record/index"
)

// onCall is what a record tells of a shift. Pages and answers it tells as they come; what was to come, and what became
// of it, when the agent is done.
type onCall struct {
	Planned   []record.Planned
	Calls     []call
	Stretches []stretch
	Score     *grade.ShiftScore // of the verdict; nil without one

	news    []record.Incident
	answers []record.PageAnswer
	end     time.Time
}

// call is one of the pager.
type call struct {
	record.Page
	At float64
}

// stretch is when an incident stood open. To is negative while it does.
type stretch struct {
	Number   int
	From, To float64
	What     string
}

// isShift reports whether an event is of a shift alone.
func isShift(kind string) bool {
	switch kind {
	case record.ShiftEvent, record.IncidentEvent, record.PageEvent, record.AnswerEvent, record.ShiftEndEvent:
		return true
	}
	return false
}

// takeShift takes what an event tells of a shift.
func (s *story) takeShift(e record.Event, begun time.Time) {
	o := s.onCall
	if o == nil {
		o = &onCall{}
	}
	ok := false
	switch e.Kind {
	case record.ShiftEvent:
		var v record.Shift
		v, ok = decode[record.Shift](e)
		o.Planned = v.Planned
	case record.IncidentEvent:
		var v record.Incident
		if v, ok = decode[record.Incident](e); ok {
			v.Time = cmp.Or(v.Time, e.Time)
			o.news = append(o.news, v)
		}
	case record.PageEvent:
		var v record.Page
		if v, ok = decode[record.Page](e); ok {
			v.Time = cmp.Or(v.Time, e.Time)
			at := max(0, v.Time.Sub(begun).Seconds())
			o.Calls = append(o.Calls, call{v, at})
			s.Paged = append(s.Paged, alert{at, v.Lines})
		}
	case record.AnswerEvent:
		a, _ := decode[record.Answer](e)
		var v record.PageAnswer
		if ok = a.Question == term.Page && json.Unmarshal(a.Answer, &v) == nil; ok {
			v.Time = cmp.Or(v.Time, e.Time)
			o.answers = append(o.answers, v)
		}
	case record.ShiftEndEvent:
		var v record.ShiftEnd
		v, ok = decode[record.ShiftEnd](e)
		o.end = v.Time
	}
	if ok {
		s.onCall = o
	}
}

// finishShift fills in what follows from all that a record tells of a shift.
func (s *story) finishShift() {
	if s.Verdict != nil {
		if score := grade.ReadShift(s.Verdict.Results); score != nil {
			s.onCall = cmp.Or(s.onCall, &onCall{})
			s.onCall.Score = score
		}
	}
	o := s.onCall
	if o == nil {
		return
	}
	slices.SortStableFunc(o.news, func(a, b record.Incident) int { return a.Time.Compare(b.Time) })
	last := map[int]int{} // the stretch of an incident that goes on, counted from 1
	for _, n := range o.news {
		at := max(0, n.Time.Sub(s.Begun).Seconds())
		switch n.Became {
		case record.IncidentShown, record.IncidentBack:
			if last[n.Number] == 0 {
				o.Stretches = append(o.Stretches, stretch{n.Number, at, -1, n.What})
				last[n.Number] = len(o.Stretches)
			}
		case record.IncidentMended:
			if i := last[n.Number]; i > 0 {
				o.Stretches[i-1].To = max(at, o.Stretches[i-1].From)
				last[n.Number] = 0
			}
		}
	}
}

// ends is when a stretch ended, or the shift did in which it went on.
func (s *story) ends(x stretch) float64 {
	if x.To >= 0 {
		return x.To
	}
	if end := s.onCall.end; !end.IsZero() {
		return max(x.From, end.Sub(s.Begun).Seconds())
	}
	return s.Length
}

// openAt are the stretches in which a moment is.
func (s *story) openAt(at float64) (list []stretch) {
	if s.onCall == nil {
		return nil
	}
	for _, x := range s.onCall.Stretches {
		if x.From <= at+0.01 && at < s.ends(x) {
			list = append(list, x)
		}
	}
	return list
}

// planned is an incident by its number.
func (o *onCall) planned(number int) (p record.Planned, ok bool) {
	i := slices.IndexFunc(o.Planned, func(p record.Planned) bool { return p.Number == number })
	if i < 0 {
		return p, false
	}
	return o.Planned[i], true
}

// name is an incident in a few words.
func (o *onCall) name(number int) string {
	text := fmt.Sprintf("incident %d", number)
	if p, ok := o.planned(number); ok && len(p.Components) > 0 {
		text += " (" + strings.Join(p.Components, ", ") + ")"
	}
	return text
}

// answerTo is the first answer to a page, or nil.
func (o *onCall) answerTo(number int) *record.PageAnswer {
	for i, a := range o.answers {
		if slices.Contains(a.Pages, number) {
			return &o.answers[i]
		}
	}
	return nil
}

// shiftPanel is a shift on the page of its run.
type shiftPanel struct {
	Done      bool
	Score     *grade.ShiftScore
	Parts     []shiftPart
	Incidents []shiftRow
	Pages     []pageRow
	Left      int // pages that are not shown
}

// shiftPart is a part of the score.
type shiftPart struct {
	Name, Value, What string // Value is what the score is multiplied by
}

// shiftRow is an incident: when it came, when somebody was called and answered, and when it was mended; negative for
// never.
type shiftRow struct {
	Number                        int
	Problem, About                string
	Came, Paged, Answered, Mended float64
	After                         *float64
	Again                         bool // it came back
	Never                         bool // it could not come
}

// pageRow is a call of the pager.
type pageRow struct {
	Number   int
	At       float64
	Lines    []string
	Open     []string // incidents that stood open then, or when there was more of it
	Answered float64
	Named    string
}

// What of a shift is shown at most. A shift of a day has fewer incidents, and its pages are in the table of events.
const (
	shownIncidents = 1000
	shownCalls     = 200
	shownLines     = 12 // of a page
)

// panel is what the page of a run shows of its shift; nil if it was none.
func (s *story) panel() *shiftPanel {
	o := s.onCall
	if o == nil {
		return nil
	}
	p := &shiftPanel{Done: s.Done, Score: o.Score}
	if o.Score != nil {
		p.Parts = partsOf(*o.Score)
		for _, i := range o.Score.Each[:min(len(o.Score.Each), shownIncidents)] {
			p.Incidents = append(p.Incidents, s.incidentRow(i))
		}
	}
	for _, c := range o.Calls {
		n := len(p.Pages)
		switch {
		case n > 0 && c.More && p.Pages[n-1].Number == c.Number:
			p.Pages[n-1].add(c.Lines)
			p.Pages[n-1].about(s.nowOpen(c.At))
		case c.More && n > 0: // more of one that is left out
		case n == shownCalls:
			p.Left++
		default:
			p.Pages = append(p.Pages, s.pageRow(c))
		}
	}
	return p
}

// since is a time as seconds of the run; negative if there is none.
func (s *story) since(t time.Time) float64 {
	if t.IsZero() {
		return -1
	}
	return max(0, t.Sub(s.Begun).Seconds())
}

func (s *story) incidentRow(i grade.IncidentScore) shiftRow {
	row := shiftRow{
		Number: i.Number, Problem: i.Problem, About: strings.Join(i.Components, ", "), Came: s.since(i.Shown),
		Paged: s.since(i.Called), Answered: -1, Mended: -1, After: i.Seconds, Never: i.Shown.IsZero(),
		Again: len(i.Open) > 1,
	}
	if n := len(i.Open); i.Mended && n > 0 {
		row.Mended = s.since(i.Open[n-1].To)
	}
	for _, c := range s.onCall.Calls {
		if c.Time.Equal(i.Called) {
			if a := s.onCall.answerTo(c.Number); a != nil {
				row.Answered = s.since(a.Time)
			}
			break
		}
	}
	return row
}

func (s *story) pageRow(c call) pageRow {
	row := pageRow{Number: c.Number, At: c.At, Answered: -1}
	row.add(c.Lines)
	row.about(s.nowOpen(c.At))
	if a := s.onCall.answerTo(c.Number); a != nil {
		row.Answered, row.Named = s.since(a.Time), clip(strings.Join(a.Services, ", "))
	}
	return row
}

// nowOpen are the incidents that stand open at a moment.
func (s *story) nowOpen(at float64) (list []string) {
	for _, x := range s.openAt(at) {
		list = append(list, s.onCall.name(x.Number))
	}
	return list
}

// about adds what a page is about: what stood open at each of its calls.
func (r *pageRow) about(open []string) {
	for _, name := range open {
		if !slices.Contains(r.Open, name) {
			r.Open = append(r.Open, name)
		}
	}
}

// About is what a page is about, in words.
func (r pageRow) About() string { return cmp.Or(strings.Join(r.Open, "; "), "nothing: a false alarm") }

// add adds lines to a page, as far as they are shown.
func (r *pageRow) add(lines []string) {
	for _, l := range lines[:min(len(lines), shownLines-len(r.Lines))] {
		r.Lines = append(r.Lines, clip(l))
	}
}

// partsOf are the factors of a score.
func partsOf(s grade.ShiftScore) []shiftPart {
	part := func(name string, worth float64, format string, args ...any) shiftPart {
		return shiftPart{name, fmt.Sprintf("%.2f", worth), fmt.Sprintf(format, args...)}
	}
	mended := fmt.Sprintf("%d of %s; they stood open for %.1f of %.1f minutes", s.IncidentsMended,
		plural(s.Incidents, "incident"), s.OpenMinutes, s.OpenPossible)
	if s.TimeToMend != nil {
		mended += fmt.Sprintf(", each for %.0f s on average", *s.TimeToMend)
	}
	answered := fmt.Sprintf("%d of %s answered, %d rightly", s.PagesAnswered, plural(s.Pages, "page"), s.PagesRight)
	if s.TimeToAnswer != nil {
		answered += fmt.Sprintf(", after %.0f s on average", *s.TimeToAnswer)
	}
	care := plural(len(s.Needless), "needless write")
	if n := len(s.Needless); n > 0 {
		care += ": " + clip(strings.Join(s.Needless[:min(n, shownHarm)], ", "))
	}
	thrift := "it cost " + money(&s.Cost)
	if s.Cost == 0 {
		thrift = "no cost is known"
	}
	return []shiftPart{
		part("Mended", s.Mended, "%s", mended),
		part("Served", s.Served, "users lost %.2f of %.0f minutes", s.MinutesLost, s.To.Sub(s.From).Minutes()),
		part("Pages", 0.8+0.2*s.Answered, "%s", answered),
		part("Care", s.Care, "%s; worse than the incidents explain for %.0f s", care, s.WorseSeconds),
		part("Thrift", s.Thrift, "%s", thrift),
	}
}

// shiftFacts are the facts of a run that was a shift.
func shiftFacts(s *index.Shift) []fact {
	return []fact{
		{"Score", fmt.Sprintf("%.1f", s.Score)},
		{"Users lost", fmt.Sprintf("%.2f min", s.MinutesLost)},
		{"Mended", fmt.Sprintf("%d of %d", s.IncidentsMended, s.Incidents)},
		{"Pages right", fmt.Sprintf("%d of %d", s.PagesRight, s.Pages)},
	}
}

// tellShift says in words what the axis draws of a shift.
func (p *runPage) tellShift(add func(at float64, format string, args ...any)) {
	o := p.onCall
	if o == nil {
		return
	}
	for _, n := range o.news {
		at := max(0, n.Time.Sub(p.Begun).Seconds())
		text := map[string]string{
			record.IncidentShown: "shows", record.IncidentMended: "is mended", record.IncidentBack: "is back",
			record.IncidentFailed: "could not be brought about",
		}[n.Became]
		if n.What != "" {
			text += ": " + n.What
		}
		add(at, "%s %s", o.name(n.Number), cmp.Or(text, n.Became))
	}
	for _, a := range o.answers {
		text := "no page"
		if len(a.Pages) > 0 {
			text = "page " + strings.Trim(fmt.Sprint(a.Pages), "[]")
		}
		if len(a.Services) > 0 {
			text += ", at fault: " + strings.Join(a.Services, ", ")
		}
		add(p.since(a.Time), "the agent answers %s", clip(text))
	}
}

// incidents draws when each incident of a shift stood open: side by side where several did.
func (a *axis) incidents() {
	if a.s.onCall == nil {
		return
	}
	const most = 3
	list := a.s.onCall.Stretches
	lane, lanes := make([]int, len(list)), 1
	free := [most]float64{}
	for i, x := range list {
		n := 0
		for n < most-1 && free[n] > x.From {
			n++
		}
		lane[i], free[n], lanes = n, a.s.ends(x), max(lanes, n+1)
	}
	high := 14 / float64(lanes)
	for i, x := range list {
		name := a.s.onCall.name(x.Number)
		from, to := a.x(x.From), a.x(a.s.ends(x))
		a.link(a.href(x.From), clip(strings.TrimSuffix(name+" shows: "+x.What, ": ")))
		a.rect("fault", from, faultY+float64(lane[i])*high, max(3, to-from), high-0.8, 1)
		if lanes == 1 {
			a.text("warn", "start", from+4, faultY+11, fmt.Sprint(x.Number))
		}
		a.end()
	}
}
