package stratus

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/runbook"
	"github.com/aiopslab/aiopslab/problem"
)

// Mode is what becomes of a mitigation that did not help.
type Mode string

const (
	// Once tries once, and asks no oracle.
	Once Mode = "none"
	// Naive tries again as if nothing had been tried, and takes nothing back.
	Naive Mode = "naive"
	// Validate takes it back, and tries again with what was learnt.
	Validate Mode = "validate"
)

const (
	// maxTries is how often a mitigation is tried.
	maxTries = 4
	// reserved are the steps that are not for planning: to set up, to close a transaction, and to submit.
	reserved = 3
	// commitWait is how many seconds the system has to be no worse than before. An alert that the trouble itself has
	// caused may have come since, and takes a minute to go.
	commitWait = 90
)

// Entries are the agent in its modes. The one without a mode validates.
func Entries() []agent.Entry {
	list := []agent.Entry{
		entry("stratus", "plans, tries, validates, takes back and tries again; with a model, or by rules", Validate),
	}
	for _, m := range []struct {
		mode Mode
		doc  string
	}{
		{Once, "stratus with one try"},
		{Naive, "stratus that tries again without taking anything back"},
		{Validate, "stratus, by its full name"},
	} {
		list = append(list, entry("stratus:"+string(m.mode), m.doc, m.mode))
	}
	return list
}

func entry(name, doc string, mode Mode) agent.Entry {
	made := agent.Entry{Name: name, Doc: doc, TakesModel: true, Live: true}
	made.New = func(b agent.Briefing) (agent.Agent, error) {
		m := &machine{mode: mode, briefing: b, transacts: slices.ContainsFunc(b.Actions, func(a *aci.Action) bool {
			return a.Name == "begin"
		})}
		return runbook.Operate(b, b.Steps-reserved, func(o *runbook.Operator) {
			m.Operator = o
			m.plan("")
			m.work()
		}), nil
	}
	return made
}

// planner decides what is tried.
type planner interface {
	// diagnose finds out what is wrong.
	diagnose()
	// answer submits what a task asks for that changes nothing, and returns the next question of an incident, or "".
	answer() problem.Task
	// ready reports whether it knows something to try, and mitigate tries it.
	ready() bool
	mitigate()
	// named are the services that it finds at fault.
	named() []string
	// repeat has the last try made again, because it was refused in a transaction.
	repeat()
	// reflect learns that what it tried did not help.
	reflect(complaints []string)
}

// state is what the machine does.
type state int

const (
	detect state = iota
	diagnose
	mitigate
	validate
	undo
	reflect
	done
)

// machine owns the flow.
type machine struct {
	*runbook.Operator
	planner
	mode       Mode
	briefing   agent.Briefing
	transacts  bool // the lab has transactions
	open       bool // one is
	bare       bool // the next try is without one, for it cannot be taken back
	tries      int
	complaints []string // of the oracles, about the last try
	over       string   // why nothing is to be done, on call
	pages      string   // what the pager said meanwhile that the oracles have not looked at
}

// plan makes a planner who knows nothing yet but what the pager says.
func (m *machine) plan(pages string) {
	m.planner = &rules{o: m.Operator, forgets: m.mode != Validate}
	if m.briefing.Model != nil {
		m.planner = &thinker{m: m, pages: pages}
	}
}

// work does the task.
func (m *machine) work() {
	task := m.briefing.Task
	if task == problem.OnCall {
		m.onCall()
		return
	}
	if task == problem.Incident {
		task = problem.Detection
		m.Ask(task)
	}
	s := detect
	if task != problem.Mitigation {
		m.Detect()
		m.diagnose()
		for task != "" && task != problem.Mitigation && !m.Closed() {
			task = m.answer()
		}
		if s = mitigate; task == "" {
			return
		}
	}
	for s != done && !m.Closed() {
		s = m.step(s)
	}
	m.leave()
}

// step does what a state is for, and returns the next.
func (m *machine) step(s state) state {
	switch s {
	case detect:
		m.Detect()
		return diagnose
	case diagnose:
		m.diagnose()
		return mitigate
	case mitigate:
		m.tries++
		if m.briefing.Task == problem.OnCall && m.briefing.Model == nil && m.tries == 1 {
			m.over = m.Over()
		}
		if m.over != "" || !m.ready() {
			return done
		}
		m.begin()
		m.mitigate()
		m.Tried()
		switch {
		case m.mode == Once:
			return done
		case m.open && m.Refused():
			m.complaints = []string{"what it takes is refused in a transaction"}
			m.bare = true
			return undo
		}
		return validate
	case validate:
		m.hear()
		m.complaints = m.Well()
		if m.Left() < 1 { // The oracles have not seen all.
			m.complaints = nil
			return done
		}
		if len(m.complaints) == 0 && m.commit() {
			return done
		}
		if m.mode == Naive {
			return m.again(mitigate)
		}
		return undo
	case undo:
		m.abort()
		if m.hear() { // What speaks against the try may be what the pager calls about.
			return done
		}
		if m.bare {
			m.repeat()
			return m.again(mitigate)
		}
		return m.again(reflect)
	case reflect:
		m.reflect(m.complaints)
		return mitigate
	}
	return done
}

// leastLeft is how many calls another try takes at least.
const leastLeft = 8

// again is the state of another try, if there is to be one.
func (m *machine) again(s state) state {
	if m.tries >= maxTries || m.Left() < leastLeft {
		return done
	}
	return s
}

// begin opens a transaction for a try that is to be taken back if it does not help.
func (m *machine) begin() {
	if m.bare || m.mode != Validate || !m.transacts || m.open {
		m.bare = false
		return
	}
	text := m.Call(fmt.Sprintf("Try %d. What I change from here on can be taken back.", m.tries), "begin")
	m.open = !strings.Contains(text, "is open already") && text != ""
}

// commit keeps what was tried, and reports whether it was kept.
func (m *machine) commit() bool {
	const thought = "The oracles find the system well. I keep what I changed."
	if m.open && !m.committed(m.Last(thought, "commit", commitWait)) {
		return false
	}
	m.pages = "" // They were about what is well again.
	return true
}

func (m *machine) committed(text string) bool {
	m.open = false
	if strings.Contains(text, "not committed") {
		m.complaints = []string{"the system was worse than before, so it was taken back"}
		m.Fell()
		return false
	}
	return true
}

// abort takes back what was tried.
func (m *machine) abort() {
	if m.open {
		m.Last("That did not help: "+strings.Join(m.complaints, "; ")+". I take it back.", "abort")
		m.open = false
		m.Fell()
	}
}

// leave ends the work.
func (m *machine) leave() {
	m.close()
	if !m.Closed() {
		m.Ask(problem.Mitigation)
		m.Submit()
	}
}

// close leaves nothing half done. What the oracles could not look at is kept if the lab finds the system no worse.
func (m *machine) close() {
	if m.open && len(m.complaints) == 0 {
		m.committed(m.Last("I have no steps left to look. I keep what I changed, if the system is no worse.", "commit",
			commitWait))
	}
	m.abort()
}
