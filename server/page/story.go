package page

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/record/index"
	"github.com/aiopslab/aiopslab/session"
)

// story is a run as its record tells it, by time. Times are seconds since it began. What a record does not tell yet is
// not there: of a run under way, that is what was wrong.
type story struct {
	index.Run
	Length   float64 // to the last event
	Done     bool    // there is a verdict
	Torn     bool
	Phases   []phase
	Briefing record.Briefing
	// BriefingSeq is the number of the event of the briefing.
	BriefingSeq int

	Steps   []step
	Writes  []write
	Samples []sample
	Course  []point
	Base    *grade.Look
	Looks   []look
	Faults  []shownFault
	Paged   []alert
	Noise   []change
	Decoys  []record.Decoy
	Outputs []output
	Safety  *harm // what it did to the system; nil if the verdict does not tell

	// Of an agent that is several: who it is, what they said, and who decided. Group is nil if it is one.
	Group    *record.Group
	Messages []said
	Turns    []turn

	onCall *onCall // nil if the run is no shift

	Injecting  float64 // when the injection began; negative if the record does not tell
	Turn, Over float64 // when the agent's turn began and ended; negative as above

	Submission *record.Submission
	Verdict    *session.Verdict
	Truth      json.RawMessage // the answer
}

type phase struct {
	At   float64
	Name string
}

// step is one of the agent, done or under way.
type step struct {
	record.Step
	Begun, At  float64 // when the agent was asked, and when it was done
	Acting     float64 // when the action began
	Said, Call string
	UnderWay   bool
	Seq        int // of its event
	SaySeq     int
	Who        string // of a group
}

type write struct {
	guard.Entry
	At  float64
	Seq int
}

// sample is what users got at a time.
type sample struct {
	At, Rate, Success, P95 float64
}

// point is how the system was at a time of the run, from the injection on.
type point struct {
	At, Served, Alerts float64 // Served is the part of what users want that they get
}

// look is one at the system after the agent was done, or at the healthy one.
type look struct {
	sample
	Complaints []string
	Symptoms   []string
	Unready    []string // workloads
}

type shownFault struct {
	record.Fault
	At float64
}

type alert struct {
	At    float64
	Lines []string
}

type change struct {
	record.Change
	At float64
}

type output struct {
	At   float64
	Kind string
	Text string
	Seq  int
}

// newStory takes what a record tells. What of it cannot be read is left out: a page shows what there is.
func newStory(rec *record.Record, run index.Run) *story {
	s := &story{Run: run, Torn: rec.Torn, Injecting: -1, Turn: -1, Over: -1}
	events := slices.Clone(rec.Events)
	// What was withheld from the agent is written late, with the time it is of.
	slices.SortStableFunc(events, func(a, b record.Event) int { return a.Time.Compare(b.Time) })
	for _, e := range events {
		at := max(0, e.Time.Sub(rec.Time).Seconds())
		s.Length = max(s.Length, at)
		s.take(e, at, rec.Time)
	}
	s.finish()
	return s
}

func decode[T any](e record.Event) (v T, ok bool) {
	ok = json.Unmarshal(e.Data, &v) == nil
	return v, ok
}

func (s *story) take(e record.Event, at float64, begun time.Time) {
	if isShift(e.Kind) {
		s.takeShift(e, begun)
		return
	}
	switch e.Kind {
	case record.PhaseEvent:
		if p, ok := decode[record.Phase](e); ok {
			s.Phases = append(s.Phases, phase{at, p.Name})
			if p.Name == "injecting" {
				s.Injecting = at
			}
		}
	case record.BriefingEvent:
		s.Briefing, _ = decode[record.Briefing](e)
		s.Turn, s.BriefingSeq = at, e.Seq
	case record.ActionEvent:
		if a, ok := decode[record.Action](e); ok {
			s.Steps = append(s.Steps, step{
				Step: record.Step{Number: a.Number, Response: a.Response, Action: a.Action}, Acting: at, At: at,
				UnderWay: true, SaySeq: e.Seq, Who: s.turnOf(a.Action),
			})
		}
	case record.StepEvent:
		if st, ok := decode[record.Step](e); ok {
			s.step(st, at, e.Seq)
		}
	case record.WriteEvent, record.ProposalEvent:
		if w, ok := decode[guard.Entry](e); ok {
			s.Writes = append(s.Writes, write{w, max(0, cmp.Or(w.Time, e.Time).Sub(begun).Seconds()), e.Seq})
		}
	case record.SubmissionEvent:
		if sub, ok := decode[record.Submission](e); ok {
			s.Submission, s.Over = &sub, at
		}
	case record.LogEvent, record.StderrEvent:
		if o, ok := decode[record.Output](e); ok {
			s.Outputs = append(s.Outputs, output{at, e.Kind, o.Text, e.Seq})
		}
	case record.VerdictEvent:
		if v, ok := decode[session.Verdict](e); ok {
			s.Verdict, s.Done = &v, true
			s.Safety = harmOf(v.Results)
		}
	case record.GroupEvent, record.MessageEvent, record.TurnEvent:
		s.takeTalk(e, at)
	default:
		s.takeTruth(e, at, begun)
	}
}

// takeTalk takes what a group is, and what goes on in it.
func (s *story) takeTalk(e record.Event, at float64) {
	switch e.Kind {
	case record.GroupEvent:
		if g, ok := decode[record.Group](e); ok {
			s.Group = &g
		}
	case record.MessageEvent:
		if m, ok := decode[record.Message](e); ok {
			s.Messages = append(s.Messages, said{m, at, e.Seq})
		}
	case record.TurnEvent:
		if t, ok := decode[record.Turn](e); ok {
			s.Turns = append(s.Turns, turn{t, at})
		}
	}
}

// turnOf is the member of a group whose turn an action is: that of the last turn, if it was to do this.
func (s *story) turnOf(action string) string {
	if n := len(s.Turns); n > 0 && (s.Turns[n-1].Does == action || action == "") {
		return visible(s.Turns[n-1].Who)
	}
	return ""
}

// takeTruth takes what a record tells when the agent is done.
func (s *story) takeTruth(e record.Event, at float64, begun time.Time) {
	switch e.Kind {
	case record.ProblemEvent:
		if p, ok := decode[struct {
			Answer json.RawMessage `json:"answer"`
		}](e); ok {
			s.Truth = p.Answer
		}
	case record.BaselineEvent:
		if l, ok := decode[grade.Look](e); ok {
			s.Base = &l
			s.Samples = append(s.Samples, sampleOf(at, l))
		}
	case record.LookEvent:
		if l, ok := decode[grade.Look](e); ok {
			s.look(at, l)
		}
	case record.FaultEvent:
		if f, ok := decode[record.Fault](e); ok {
			s.Faults = append(s.Faults, shownFault{f, max(0, cmp.Or(f.Time, e.Time).Sub(begun).Seconds())})
		}
	case record.HandOverEvent:
		if h, ok := decode[record.HandOver](e); ok && len(h.Page) > 0 {
			s.Paged = append(s.Paged, alert{at, h.Page})
		}
	case record.SeverityEvent:
		if c, ok := decode[grade.Course](e); ok {
			s.course(c, begun)
		}
	case record.NoiseEvent:
		if n, ok := decode[record.Noise](e); ok {
			for _, c := range n.Changes {
				s.Noise = append(s.Noise, change{c, max(0, c.Time.Sub(begun).Seconds())})
			}
		}
	case record.DecoyEvent:
		if d, ok := decode[record.Decoy](e); ok {
			s.Decoys = append(s.Decoys, d)
		}
	}
}

// course takes how the system was, second by second.
func (s *story) course(c grade.Course, begun time.Time) {
	for _, p := range c.Points() {
		at := max(0, p.Time.Sub(begun).Seconds())
		s.Course = append(s.Course, point{at, min(1, 1-p.Vitals.Users), max(0, p.Vitals.Alerts)})
		s.Length = max(s.Length, at)
	}
}

// step takes one that is done, in the place of when it was begun.
func (s *story) step(st record.Step, at float64, seq int) {
	done := step{Step: st, At: at, Acting: at - st.Took, Begun: at - st.Took - st.Thought, Seq: seq, SaySeq: seq}
	if n := len(s.Steps); n > 0 && s.Steps[n-1].UnderWay && s.Steps[n-1].Number == st.Number {
		done.Who = s.Steps[n-1].Who
		s.Steps[n-1] = done
		return
	}
	done.Who = s.turnOf(st.Action)
	s.Steps = append(s.Steps, done)
}

func sampleOf(at float64, l grade.Look) sample {
	t := l.Load.Total
	return sample{at, t.Rate, t.Success, t.P95.Seconds()}
}

func (s *story) look(at float64, l grade.Look) {
	v := look{sample: sampleOf(at, l), Symptoms: l.Symptoms}
	if s.Base != nil {
		v.Complaints = grade.Complaints(*s.Base, l)
	}
	for _, w := range l.Workloads {
		if w.Ready < w.Replicas {
			v.Unready = append(v.Unready, w.Name)
		}
	}
	s.Looks = append(s.Looks, v)
	s.Samples = append(s.Samples, v.sample)
}

// finish fills in what follows from all of it.
func (s *story) finish() {
	for i := range s.Steps {
		st := &s.Steps[i]
		st.Said, st.Call = aci.Told(st.Response)
		if st.UnderWay {
			st.Begun = st.Acting
		}
	}
	if s.Submission == nil && s.Turn >= 0 {
		s.Over = s.Length
	}
	s.finishShift()
}

// stepAt is the step that the agent was at, or nil.
func (s *story) stepAt(at float64) *step {
	for i := range s.Steps {
		if st := &s.Steps[i]; at <= st.At+0.0005 {
			if at >= st.Begun-0.0005 {
				return st
			}
			return nil
		}
	}
	return nil
}

// writesOf are the writes of a step.
func (s *story) writesOf(st *step) (list []write) {
	for _, w := range s.Writes {
		if w.At >= st.Acting-0.01 && w.At <= st.At+0.01 {
			list = append(list, w)
		}
	}
	return list
}

// What says what a write did.
func (w write) What() string {
	verb := map[string]string{
		"create": "created", "update": "changed", "patch": "changed", "delete": "deleted",
		"deletecollection": "deleted all", "connect": "connected to",
	}[w.Verb]
	text := cmp.Or(verb, w.Verb) + " " + w.Resource
	if w.Name != "" {
		text += "/" + w.Name
	}
	if w.Subresource != "" && w.Subresource != "status" {
		text += " (" + w.Subresource + ")"
	}
	switch {
	case w.Proposal:
		text += ", as a proposal"
	case w.DryRun:
		text += ", as a dry run"
	case w.Status >= 400:
		text += ", refused"
	}
	return text
}

// mended is the last write before users were well again for good, if they were; nil if none, or if nobody knows.
func (s *story) mended() *write {
	if s.Class != string(session.Solved) || len(s.Faults) == 0 {
		return nil
	}
	for i := len(s.Writes) - 1; i >= 0; i-- {
		if w := &s.Writes[i]; w.Status < 400 && !w.DryRun && w.Verb != "connect" {
			return w
		}
	}
	return nil
}
