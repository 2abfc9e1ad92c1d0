package aci

import (
	"fmt"
	"strings"

	"github.com/aiopslab/aiopslab/app"
)

// NextAction is what ends every observation, as agents of AIOpsLab know it.
const NextAction = "Please take the next action"

// assignments say what an engineer is asked to do in each task, and what must be submitted.
var assignments = map[string]struct{ what, submit string }{
	Detection:    {"detect anomalies", "submit the solution: \"Yes\" if there is an anomaly, \"No\" if there is none"},
	Localization: {"localize faults", "submit the names of the services in which the root cause of the fault lies, or an empty list if there is no fault"},
	Analysis:     {"do root cause analysis", "submit the system level and the type of the fault, or nothing if there is no fault"},
	Mitigation:   {"mitigate anomalies", "mitigate the anomalies you find, using any of the APIs, and then submit"},
}

// Description returns the task and the application as an agent is told of them.
func Description(task string, a *app.App) string {
	t := assignments[task]
	return fmt.Sprintf(`You are an expert DevOps engineer assigned to %s in a deployed service.

Service Details:
%s
You will begin by analyzing the service's state and telemetry, and then %s.`, t.what, a.Summary(), t.submit)
}

// answers say how each task's answer is written.
var answers = map[string]string{
	Detection: `The solution is a str: "Yes" or "No". Submit it with one of

` + "```\nsubmit(\"Yes\")\n```" + `
if there is an anomaly,

` + "```\nsubmit(\"No\")\n```" + `
if there is none.`,
	Localization: `The solution is a list[str] of the names of the faulty components, the most likely first:

` + "```\nsubmit([\"placeholderA\", \"placeholderB\"])\n```" + `
If there is no fault, submit an empty list:

` + "```\nsubmit([])\n```",
	Analysis: fmt.Sprintf(`The solution is a dict with two keys:

system_level: one of %s
fault_type: one of %s

`+"```\nsubmit({\"system_level\": \"your_system_level\", \"fault_type\": \"your_fault_type\"})\n```"+`
If there is no fault, submit nothing:

`+"```\nsubmit()\n```", quoted(SystemLevels), quoted(FaultTypes)),
	Mitigation: `Once the anomalies are mitigated, submit without any parameter:

` + "```\nsubmit()\n```" + `
A submission that is valid need not be correct: the system itself is judged, over some time.`,
}

func quoted(list []string) string {
	return "'" + strings.Join(list, "', '") + "'"
}

// Instructions return how an agent that answers in text makes its calls, and submits.
func Instructions(task string) string {
	return `You will respond with one of the above APIs as your next action, in a markdown code block:

` + "```\n<API_NAME>(<API_PARAM1>, <API_PARAM2> ...)\n```" + `

For instance, to list the files in the current directory:

` + "```\nexec_shell(\"ls -l\")\n```" + `

` + answers[task] + `

Respond with a single API call per turn, without any additional words, labels or prefixes.`
}
