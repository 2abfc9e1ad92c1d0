package aci

import (
	"fmt"
	"strings"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/internal/term"
)

// NextAction ends every observation. The words are AIOpsLab's: agents written for it look for them.
const NextAction = "Please take the next action"

// assignments say what each task is about, and what its answer is.
var assignments = map[string]struct{ question, answer string }{
	term.Detection: {
		"Something may be wrong with it, or nothing may be. Find out which.",
		`Your answer is "Yes" if there is an anomaly, "No" if there is none`,
	},
	term.Localization: {
		"If something is wrong with it, find out where that comes from.",
		"Your answer is the names of the services in which the root cause lies, or an empty list if there is no fault",
	},
	term.Analysis: {
		"If something is wrong with it, find out what kind of fault that is.",
		"Your answer is the system level and the type of the fault, or nothing if there is no fault",
	},
	term.Mitigation: {
		"If something is wrong with it, put that right, with any of the APIs.",
		"Your answer is the system itself: submit once it is well again",
	},
	term.OnCall: {
		"Something will go wrong with it: put that right whenever the pager calls.",
		"Submit when you are done with the pages so far",
	},
	term.Operation: {
		"You are asked to do something for it.",
		"Submit when it is done",
	},
}

// Description returns the task and the application as an agent is told of them. Asked is what an operation asks for,
// or how long a shift is.
func Description(task string, a *app.App, asked string) string {
	if task == term.Incident {
		return fmt.Sprintf(incidentDescription, a.Summary(), Ask(term.Detection))
	}
	if task == term.OnCall {
		return fmt.Sprintf(onCallDescription, a.Summary(), asked)
	}
	if task == term.Operation {
		return fmt.Sprintf(operationDescription, a.Summary(), asked)
	}
	t := assignments[task]
	return fmt.Sprintf(`You are on call for this service, which runs on Kubernetes:

%s
%s Look at its state and its telemetry before you decide. %s.`, a.Summary(), t.question, t.answer)
}

// operationDescription is what an agent is told of an operation.
const operationDescription = `You look after this service, which runs on Kubernetes:

%s
This is your task: %s

Look at the state and the telemetry before you change anything, and again afterwards. Submit when the task is done: how
the services do from then on, over some time, is what counts, and what you report.`

// forms say how each task's answer is written.
var forms = map[string]string{
	term.Detection: `The answer is a str:

` + written(`submit("Yes")`) + `
if there is an anomaly, and

` + written(`submit("No")`) + `
if there is none.`,
	term.Localization: `The answer is a list[str] of names, the most likely first, such as

` + written(`submit(["service-a", "service-b"])`) + `
and if there is no fault,

` + written("submit([])"),
	term.Analysis: fmt.Sprintf(`The answer is a dict with two keys. Its form is

`+written(`submit({"system_level": "LEVEL", "fault_type": "TYPE"})`)+`
where LEVEL is one of %s,
and TYPE is one of %s. If there is no fault, it is

`+written("submit()"), quoted(term.SystemLevels), quoted(term.FaultTypes)),
	term.Mitigation: `Once the system is well, write

` + written("submit()") + `
That ends your work. How the system does from then on, over some time, is what counts.`,
	term.OnCall: `When you are done with the pages so far, and to wait for the next one, write

` + written("submit()") + `
or, if you know which services were at fault,

` + written(`submit(["service-a"])`) + `
What it returns has the next page. Submit again whenever you have nothing to do, until the shift is over.`,
	term.Operation: `When the task is done, write

` + written("submit()") + `
or, where the task asks for a report, a dict with the keys that it names:

` + written(`submit({"key": value, "other": value})`) + `
That ends your work.`,
}

// written is a call as an agent writes it.
func written(call string) string { return "```\n" + call + "\n```" }

func quoted(list []string) string {
	return "'" + strings.Join(list, "', '") + "'"
}

// Instructions returns how an agent that answers in text makes its calls, and submits.
func Instructions(task string) string {
	return `Answer each message with one call of one API, written as in Python, in a markdown code block:

` + written("NAME(ARGUMENT, ...)") + `

This, for one, lists the files of the current directory:

` + written(`exec_shell("ls -l")`) + `

Submit when you know the answer. ` + answering(task) + `

Write nothing but the block: no second call, no label, no other words.`
}
