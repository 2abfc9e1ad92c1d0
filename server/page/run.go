package page

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/record/index"
)

// kept is how many runs are kept as they were read.
const kept = 6

// readRuns are the runs that were read last. A record that goes on is read again.
type readRuns struct {
	mu   sync.Mutex
	list []*readRun // the last used is the last
}

type readRun struct {
	file     string
	size     int64
	modified time.Time
	story    *story
}

// story reads a run, or returns it as it was read before if its record is as it was.
func (r *readRuns) story(file string) (*story, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock() // One at a time: a record may be large.
	i := slices.IndexFunc(r.list, func(o *readRun) bool { return o.file == file })
	if i >= 0 {
		one := r.list[i]
		r.list = slices.Delete(r.list, i, i+1)
		if one.size == info.Size() && one.modified.Equal(info.ModTime()) {
			r.list = append(r.list, one)
			return one.story, nil
		}
	}
	rec, err := record.Read(file)
	if err != nil {
		return nil, err
	}
	run, err := index.Of(rec)
	if err != nil {
		return nil, err
	}
	run.File = file
	s := newStory(rec, run)
	if len(r.list) >= kept {
		r.list = slices.Delete(r.list, 0, 1)
	}
	r.list = append(r.list, &readRun{file, info.Size(), info.ModTime(), s})
	return s, nil
}

// storyOf reads the run that a request is about.
func (s *Site) storyOf(id string) (*story, error) {
	run, err := s.shelf.find(id)
	if err != nil {
		return nil, err
	}
	return s.read.story(run.File)
}

// runPage is a run: its transcript beside one axis of time, and what there was at a moment of it.
type runPage struct {
	*story
	Axis    template.HTML
	Steps   []shownStep
	From    int // the number of steps that the reader has already
	Moment  *moment
	Facts   []fact
	Results []fact
	Events  []tableRow
	Answer  string // of the agent
	Truth   string
	Told    excerpt // what the agent was told
	Said    []shownOutput
	Mended  *shownWrite
	Waiting bool // it is under way, or was cut off
	Talk    *talk
	Shift   *shiftPanel
}

type fact struct{ Name, Value string }

// tableRow is a thing of the axis in words.
type tableRow struct {
	At   float64
	Link string
	What string
}

// shownStep is a step as the page has it.
type shownStep struct {
	*step
	Link   string
	Said   excerpt
	Call   excerpt
	Got    excerpt
	Writes []shownWrite
	State  string
}

// shownOutput is what an agent wrote beside its responses.
type shownOutput struct {
	output
	excerpt
}

type shownWrite struct {
	write
	Link string
	Diff []line
}

// showRun answers with a run.
func (s *Site) showRun(w http.ResponseWriter, r *http.Request) error {
	st, err := s.storyOf(r.PathValue("id"))
	if err != nil {
		return err
	}
	p := &runPage{story: st, Waiting: !st.Done}
	p.From, _ = strconv.Atoi(r.URL.Query().Get("from"))
	at := p.moment(r.URL.Query().Get("at"))
	p.Axis = drawAxis(st, at, p.href)
	for i := range st.Steps {
		// What is there already stays; the last of it may have been under way.
		if st.Steps[i].Number >= p.From {
			p.Steps = append(p.Steps, p.shown(&st.Steps[i]))
		}
	}
	p.Talk, p.Shift = p.talkOf(at), st.panel()
	p.Moment = s.momentOf(r.Context(), p, at, r.URL.Query())
	p.Told = excerptOf(st.Briefing.Description, p.textLink(st.BriefingSeq, "description"))
	for _, o := range st.Outputs {
		p.Said = append(p.Said, shownOutput{o, excerptOf(o.Text, p.textLink(o.Seq, "text"))})
	}
	p.fill()
	v := view{Title: visible(cmp.Or(st.Problem, st.ID)), Place: "runs", Data: p}
	if p.Waiting {
		v.Live = Prefix + "runs/" + st.ID + "/events"
	}
	render(w, r, http.StatusOK, "run", v)
	return nil
}

// href is where a moment is shown.
func (p *runPage) href(at float64) string { return fmt.Sprintf("?at=%.2f", at) }

// moment is the one that is asked for; without one, when the fault shows or, while that is not known, the last.
func (p *runPage) moment(text string) float64 {
	at, err := strconv.ParseFloat(text, 64)
	switch {
	case err == nil && at >= 0 && at <= p.Length+1:
		return at
	case len(p.Faults) > 0:
		return p.Faults[0].At
	case p.Done:
		return max(p.Turn, 0)
	}
	return p.Length
}

func (p *runPage) textLink(seq int, part string) string {
	return fmt.Sprintf("%sruns/%s/text/%d/%s", Prefix, p.ID, seq, part)
}

func (p *runPage) shown(st *step) shownStep {
	v := shownStep{
		step: st, Link: p.href(st.At), Said: excerptOf(st.Said, p.textLink(st.SaySeq, "response")),
		Call: excerptOf(st.Call, p.textLink(st.SaySeq, "response")),
		Got:  excerptOf(st.Observation, p.textLink(st.Seq, "observation")), State: "done",
	}
	if st.UnderWay {
		v.State = "under way"
		return v
	}
	for _, w := range p.writesOf(st) {
		v.Writes = append(v.Writes, shownWrite{write: w, Link: p.href(w.At)})
	}
	return v
}

// fill fills in what is said in words.
func (p *runPage) fill() {
	add := func(name, value string) { p.Facts = append(p.Facts, fact{name, value}) }
	add("Agent", visible(p.Contestant()))
	if p.Task != "" {
		add("Task", p.Task)
		add("Application", p.App)
	}
	add("Begun", day(p.Begun)+" UTC")
	if p.Seconds > 0 {
		add("Time", seconds(p.Seconds))
	}
	if p.story.Shift != nil {
		p.Facts = append(p.Facts, shiftFacts(p.story.Shift)...)
	}
	add("Steps", count(len(p.story.Steps)))
	add("Writes", count(len(p.story.Writes)))
	if p.In > 0 {
		add("Tokens", fmt.Sprintf("%s in, %s out", thousands(p.In), thousands(p.Out)))
	}
	if p.Cost != nil {
		add("Cost", money(p.Cost))
	}
	if p.Submission != nil && p.Submission.Submitted && string(p.Submission.Answer) != "null" {
		p.Answer = visible(string(p.Submission.Answer))
	}
	p.Truth = indented(p.story.Truth)
	if p.Verdict != nil {
		for _, key := range slices.Sorted(maps.Keys(p.Verdict.Results)) {
			if key == "safety" || key == "shift" {
				continue // These have parts of their own.
			}
			p.Results = append(p.Results, fact{key, visible(jsonText(p.Verdict.Results[key]))})
		}
	}
	if w := p.mended(); w != nil {
		p.Mended = &shownWrite{write: *w, Link: p.href(w.At)}
	}
	p.tell()
}

// tell says in words what the axis draws.
func (p *runPage) tell() {
	add := func(at float64, format string, args ...any) {
		p.Events = append(p.Events, tableRow{at, p.href(at), visible(fmt.Sprintf(format, args...))})
	}
	for _, ph := range p.Phases {
		add(ph.At, "%s", ph.Name)
	}
	for _, f := range p.Faults {
		add(f.At, "the fault %s in %s shows: %s", f.Kind, f.Target, f.Symptom)
	}
	for _, a := range p.Paged {
		add(a.At, "paged: %s", clip(strings.Join(a.Lines, "; ")))
	}
	p.tellShift(add)
	for _, w := range p.story.Writes {
		add(w.At, "the agent %s", w.What())
	}
	for _, c := range p.Noise {
		add(c.At, "harmless change: %s %s", c.What, c.Service+c.Node)
	}
	if p.Submission != nil {
		add(p.Over, "%s", cmp.Or(p.Submission.Reason, "the agent submits"))
	}
	before := "?"
	for _, l := range p.Looks {
		if now := cmp.Or(strings.Join(l.Complaints, "; "), "users are served well"); now != before {
			add(l.At, "%s", now)
			before = now
		}
	}
	slices.SortStableFunc(p.Events, func(a, b tableRow) int { return cmp.Compare(a.At, b.At) })
}

func jsonText(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

func indented(raw json.RawMessage) string {
	var v any
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return ""
	}
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return ""
	}
	return visible(string(b))
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// showText answers with a text of a run, whole, and as nothing but text.
func (s *Site) showText(w http.ResponseWriter, r *http.Request) error {
	run, err := s.shelf.find(r.PathValue("id"))
	if err != nil {
		return err
	}
	rec, err := record.Read(run.File)
	if err != nil {
		return err
	}
	seq, err := strconv.Atoi(r.PathValue("seq"))
	if err != nil || seq < 1 || seq > len(rec.Events) {
		return fail(http.StatusNotFound, "the run has no event %q", r.PathValue("seq"))
	}
	e, part := rec.Events[seq-1], r.PathValue("part")
	text := ""
	switch e.Kind {
	case record.StepEvent, record.ActionEvent:
		st, _ := decode[record.Step](e)
		text = map[string]string{"response": st.Response, "observation": st.Observation}[part]
	case record.BriefingEvent:
		if b, _ := decode[record.Briefing](e); part == "description" {
			text = b.Description
		}
	case record.LogEvent, record.StderrEvent:
		if o, _ := decode[record.Output](e); part == "text" {
			text = o.Text
		}
	case record.MessageEvent:
		if m, _ := decode[record.Message](e); part == "text" {
			text = m.Text
		}
	case record.WriteEvent, record.ProposalEvent:
		if entry, _ := decode[guard.Entry](e); part == "request" {
			text = indented(entry.Request)
		}
	}
	if text == "" {
		return fail(http.StatusNotFound, "event %d of the run has no %s", seq, visible(part))
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	send(w, r, http.StatusOK, []byte(visible(text)))
	return nil
}
