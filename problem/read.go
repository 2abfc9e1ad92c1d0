package problem

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/app/social"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/internal/strict"
	"github.com/aiopslab/aiopslab/workload"
)

// Apps are the applications that problems are about.
func Apps() []*app.App { return []*app.App{hotel.App(), social.App()} }

// Parse reads a document and returns its problems. The name is for errors.
func Parse(name string, data []byte) ([]*Problem, error) {
	d := &Document{File: name}
	if err := strict.Decode(name, data, d); err != nil {
		return nil, err
	}
	a, problems := d.check()
	if len(problems) > 0 {
		for i, text := range problems {
			problems[i] = name + ": " + text
		}
		return nil, errors.New(strings.Join(problems, "\n"))
	}
	return d.problems(a), nil
}

// ReadFile reads a document from a file.
func ReadFile(file string) ([]*Problem, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return Parse(file, data)
}

// readAll reads the documents of a directory.
func readAll(dir fs.FS) ([]*Problem, error) {
	files, err := fs.Glob(dir, "*.yaml")
	if err != nil {
		return nil, err
	}
	var list []*Problem
	var errs []error
	seen := map[string]string{}
	for _, file := range files {
		data, err := fs.ReadFile(dir, file)
		if err != nil {
			return nil, err
		}
		problems, err := Parse(file, data)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, p := range problems {
			if other, ok := seen[p.ID]; ok {
				errs = append(errs, fmt.Errorf("%s: problem %s is in %s already", file, p.ID, other))
			}
			seen[p.ID] = file
		}
		list = append(list, problems...)
	}
	return list, errors.Join(errs...)
}

var idPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// check returns the document's application and everything that is wrong with the document.
func (d *Document) check() (*app.App, []string) {
	var wrong []string
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }

	if !strings.Contains(d.ID, taskMark) || !idPattern.MatchString(strings.ReplaceAll(d.ID, taskMark, "x")) {
		add("id %q: want letters, digits, '_', '-' and '.', with %s where the task's name goes", d.ID, taskMark)
	}
	if d.Title == "" {
		add("title is missing")
	}
	if d.Load.Rate <= 0 {
		add("load.rate is missing: requests a second")
	}
	if d.Load.Mix != "" {
		if _, err := workload.BuiltinMix(d.Load.Mix); err != nil {
			add("load.mix: %v", err)
		}
	}
	if len(d.Tasks) == 0 {
		add("tasks is missing: some of %s", taskNames())
	}
	for _, t := range slices.Concat(d.Tasks, d.Original, d.Disabled) {
		if !slices.Contains(Tasks, t) {
			add("task %q: want one of %s", t, taskNames())
		} else if !slices.Contains(d.Tasks, t) {
			add("task %s is not among tasks", t)
		}
	}
	a := findApp(d.App)
	if a == nil {
		add("app %q: want one of %s", d.App, strings.Join(appNames(), ", "))
		return nil, wrong
	}
	for i := range d.Faults {
		if _, err := d.Faults[i].bind(a); err != nil {
			add("faults[%d]: %v", i, err)
		}
	}
	for remedy := range d.TrueFixes {
		if !slices.Contains(fault.Remedies, remedy) {
			add("true_fixes: %q: want one of %s", remedy, strings.Join(fault.Remedies, ", "))
		}
	}
	return a, append(wrong, d.checkAnswer(a)...)
}

// checkAnswer returns what is wrong with the answer: each task needs its own.
func (d *Document) checkAnswer(a *app.App) (wrong []string) {
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	asks := func(t Task) bool { return slices.Contains(d.Tasks, t) }
	if len(d.Faults) == 0 {
		if len(d.Answer.Components) > 0 || d.Answer.Cause != nil || asks(Mitigation) {
			add("without faults there is no answer and nothing to mitigate")
		}
		return wrong
	}
	if asks(Localization) && len(d.Answer.Components) == 0 {
		add("answer.components is missing: the localization task asks for it")
	}
	if asks(Analysis) && d.Answer.Cause == nil {
		add("answer.cause is missing: the analysis task asks for it")
	}
	for _, c := range d.Answer.Components {
		if _, ok := a.Service(c.Name); !ok {
			add("answer.components: %s has no service %q", a.Name, c.Name)
		}
	}
	causes := d.Answer.Also
	if d.Answer.Cause != nil {
		causes = append([]fault.Cause{*d.Answer.Cause}, causes...)
	}
	for _, c := range causes {
		if !slices.Contains(fault.SystemLevels, c.SystemLevel) {
			add("answer: system_level %q: want one of %s", c.SystemLevel, strings.Join(fault.SystemLevels, ", "))
		}
		if !slices.Contains(fault.FaultTypes, c.FaultType) {
			add("answer: fault_type %q: want one of %s", c.FaultType, strings.Join(fault.FaultTypes, ", "))
		}
	}
	if asks(Mitigation) {
		for i, s := range d.Faults {
			k, err := fault.Find(s.Kind)
			if err != nil {
				continue // Said already.
			}
			if fix, err := k.Fix(fault.Target{App: a, Service: s.Target}, s.params()); err == nil && len(fix) == 0 {
				add("faults[%d]: nobody but the injector can undo %s like this, so there can be no mitigation task", i, s.Kind)
			}
		}
	}
	return wrong
}

func taskNames() string {
	var names []string
	for _, t := range Tasks {
		names = append(names, string(t))
	}
	return strings.Join(names, ", ")
}

func appNames() []string {
	var names []string
	for _, a := range Apps() {
		names = append(names, a.Name)
	}
	return names
}

func findApp(name string) *app.App {
	for _, a := range Apps() {
		if a.Name == name {
			return a
		}
	}
	return nil
}
