package problem

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/internal/strict"
	"github.com/aiopslab/aiopslab/internal/term"
	"github.com/aiopslab/aiopslab/workload"
)

// maxID is how long the id of a problem may be. It is in the names of files.
const maxID = 120

// Parse reads a document, which may be about any application of the library, and returns its problems. The name is for
// errors.
func (l *Library) Parse(name string, data []byte) ([]*Problem, error) {
	d := &Document{File: name, Source: data}
	r := &reader{library: l, d: d, wrong: &strict.Problems{File: name}}
	var err error
	if r.places, err = strict.DecodePlaces(name, data, d); err != nil {
		r.wrong.Absorb(0, "", err)
		if d.ID == "" && d.App == "" { // It is something else, or not there.
			return nil, r.wrong.Err()
		}
	}
	r.check()
	if err := r.wrong.Err(); err != nil {
		return nil, err
	}
	if !l.reading {
		if err := l.link(d, r.app); err != nil {
			return nil, err
		}
	}
	return d.problems(r.app), nil
}

var idPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// reader checks a document that was decoded.
type reader struct {
	library *Library
	d       *Document
	app     *app.App // that it is about
	places  strict.Places
	wrong   *strict.Problems
}

// add notes what is wrong at a place.
func (r *reader) add(path []any, format string, args ...any) {
	r.wrong.Add(r.places.Line(path...), format, args...)
}

// missing notes that something is not there, unless what is there was found wrong already.
func (r *reader) missing(path []any, format string, args ...any) {
	line := r.places.Line(path...)
	if line == 0 || !slices.ContainsFunc(r.wrong.List, func(p strict.Problem) bool { return p.Line == line }) {
		r.wrong.Add(line, format, args...)
	}
}

// at is a place.
func at(path ...any) []any { return path }

// check notes everything that is wrong with the document.
func (r *reader) check() {
	d := r.d
	if !strings.Contains(d.ID, taskMark) && d.Goal == nil && d.Shift == nil ||
		!idPattern.MatchString(strings.ReplaceAll(d.ID, taskMark, "x")) {
		r.add(at("id"), "id %q: want letters, digits, '_', '-' and '.', with %s where the task's name goes", d.ID,
			taskMark)
	}
	if longest := strings.ReplaceAll(d.ID, taskMark, string(Localization)); len(longest) > maxID {
		r.add(at("id"), "id %.20s...: it is longer than %d characters", d.ID, maxID)
	}
	if d.Title == "" {
		r.missing(at("title"), "title is missing")
	}
	r.checkTasks()
	i := slices.IndexFunc(r.library.Apps, func(a *app.App) bool { return a.Name == d.App })
	if i < 0 {
		var names []string
		for _, a := range r.library.Apps {
			names = append(names, a.Name)
		}
		text := strict.Unknown("application", d.App, names)
		if strict.Nearest(d.App, names) == "" {
			text += "; for one of your own, give its directory with --apps"
		}
		r.add(at("app"), "app: %s", text)
		r.checkLoad(nil)
		return
	}
	r.app = r.library.Apps[i]
	var mix *workload.Mix
	if name := cmp.Or(d.Load.Mix, r.app.Mix); name != "" {
		var err error
		if mix, err = r.library.findMix(r.app, name); err != nil {
			r.add(at("load", "mix"), "load.mix: %v", err)
		}
	}
	r.checkLoad(mix)
	for i := range d.Faults {
		r.checkFault(i)
	}
	for remedy := range d.TrueFixes {
		if d.Goal != nil && len(d.Goal.Report) > 0 {
			r.add(at("true_fixes", remedy),
				"true_fixes: a blunt remedy does not make the report that the goal asks for")
		}
		if !slices.Contains(fault.Remedies, remedy) {
			r.add(at("true_fixes", remedy), "true_fixes: %s", strict.Unknown("remedy", remedy, fault.Remedies))
		}
	}
	r.checkAnswer()
	r.checkGoal()
	r.checkShift()
}

// checkTasks notes what is wrong with the tasks.
func (r *reader) checkTasks() {
	d := r.d
	if len(d.Tasks) == 0 {
		r.missing(at("tasks"), "tasks is missing: some of %s", strings.Join(taskNames(), ", "))
	}
	for _, list := range []struct {
		name  string
		tasks []Task
	}{{"tasks", d.Tasks}, {"original", d.Original}, {"disabled", d.Disabled}} {
		for i, t := range list.tasks {
			switch {
			case !slices.Contains(Tasks, t):
				r.add(at(list.name, i), "%s: %s", list.name, strict.Unknown("task", string(t), taskNames()))
			case !slices.Contains(d.Tasks, t):
				r.add(at(list.name, i), "%s: %s is not among tasks", list.name, t)
			case slices.Index(list.tasks, t) < i:
				r.add(at(list.name, i), "%s: %s is there twice", list.name, t)
			}
		}
	}
	for _, t := range slices.Sorted(maps.Keys(d.Without)) {
		switch {
		case !slices.Contains(Tasks, t):
			r.add(at("without", string(t)), "without: %s", strict.Unknown("task", string(t), taskNames()))
		case slices.Contains(d.Tasks, t):
			r.add(at("without", string(t)), "without: %s is among tasks", t)
		case d.Without[t] == "":
			r.add(at("without", string(t)), "without: say why there is no %s", t)
		}
	}
}

// checkFault notes what is wrong with a fault.
func (r *reader) checkFault(i int) {
	s := &r.d.Faults[i]
	var err error
	where := "kind"
	if s.kind, err = fault.Find(r.library.Kinds, s.Kind); err == nil {
		where = "target"
		_, err = s.bind(r.app, nil)
	}
	r.wrong.Absorb(r.places.Line("faults", i, where), fmt.Sprintf("faults[%d]: ", i), err)
}

// checkAnswer notes what is wrong with the answer: each task needs its own.
func (r *reader) checkAnswer() {
	d := r.d
	asks := func(t Task) bool { return slices.Contains(d.Tasks, t) }
	if len(d.Faults) == 0 {
		if len(d.Answer.Components) > 0 || d.Answer.Cause != nil || asks(Mitigation) || asks(Incident) {
			r.add(at("answer"), "without faults there is no answer, nothing to mitigate and no incident")
		}
		return
	}
	if asks(Localization) && len(d.Answer.Components) == 0 {
		r.missing(at("answer", "components"), "answer.components is missing: the localization task asks for it")
	}
	if asks(Analysis) && d.Answer.Cause == nil {
		r.missing(at("answer", "cause"), "answer.cause is missing: the analysis task asks for it")
	}
	for i, c := range d.Answer.Components {
		if _, ok := r.app.Service(c.Name); !ok {
			var names []string
			for _, s := range r.app.Services {
				names = append(names, s.Name)
			}
			r.add(at("answer", "components", i, "name"), "answer.components: in %s %s", r.app.Name,
				strict.Unknown("service", c.Name, names))
		}
	}
	if d.Answer.Cause != nil {
		r.checkCause(*d.Answer.Cause, "answer", "cause")
	}
	for i, c := range d.Answer.Also {
		r.checkCause(c, "answer", "also", i)
	}
	if len(d.Answer.Also) > 1 {
		r.add(at("answer", "also", 1), "answer.also has %d causes: one beside answer.cause is the most, or a constant "+
			"answer is right too often", len(d.Answer.Also))
	}
	if len(d.Answer.Also) > 0 && d.Answer.Because == "" {
		r.add(at("answer", "also"), "answer.because is missing: say what can be seen that supports two causes")
	}
	if asks(Mitigation) {
		r.checkFixes()
	}
	if asks(Incident) && r.wrong.Err() == nil && len(d.questions(r.app)) == 1 {
		r.add(at("answer"), "an incident needs something to ask beside whether there is one: answer.components, "+
			"answer.cause, or a fault that can be mended")
	}
}

// checkCause notes what is wrong with a cause.
func (r *reader) checkCause(c fault.Cause, path ...any) {
	if !slices.Contains(term.SystemLevels, c.SystemLevel) {
		r.add(append(path, "system_level"), "answer: %s",
			strict.Unknown("system_level", c.SystemLevel, term.SystemLevels))
	}
	if !slices.Contains(term.FaultTypes, c.FaultType) {
		r.add(append(path, "fault_type"), "answer: %s", strict.Unknown("fault_type", c.FaultType, term.FaultTypes))
	}
}

// checkFixes notes faults that nobody can mitigate.
func (r *reader) checkFixes() {
	for i, s := range r.d.Faults {
		if s.kind == nil {
			continue // Said already.
		}
		if fix, err := s.kind.Fix(fault.Target{App: r.app, Service: s.Target}, s.params()); err == nil &&
			len(fix) == 0 {
			r.add(at("faults", i, "kind"),
				"faults[%d]: nobody but the injector can undo %s like this, so there can be no mitigation task", i,
				s.Kind)
		}
	}
}

func taskNames() (names []string) {
	for _, t := range Tasks {
		names = append(names, string(t))
	}
	return names
}
