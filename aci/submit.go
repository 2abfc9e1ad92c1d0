package aci

import (
	"context"
	"fmt"
	"strings"

	"github.com/aiopslab/aiopslab/internal/term"
)

// analysisFields are the keys of an analysis with their values.
var analysisFields = map[string][]string{"system_level": term.SystemLevels, "fault_type": term.FaultTypes}

type (
	detectionArgs struct {
		Answer any `arg:"has_anomaly" type:"str" doc:"\"Yes\" if there is an anomaly, \"No\" if there is none."`
	}
	localizationArgs struct {
		Answer any `arg:"faulty_components" type:"list[str]" doc:"Names of the faulty services, the most likely first; an empty list if there is no fault."`
	}
	analysisArgs struct {
		Answer any `arg:"analysis" type:"dict[str, str]" default:"" doc:"The root cause, with the keys system_level and fault_type; None or nothing if there is no fault."`
	}
	mitigationArgs struct{}
	operationArgs  struct {
		Answer any `arg:"report" type:"dict[str, str | float]" default:"" doc:"What the task asks to be reported, by the keys that it names; nothing if it asks for none."`
	}
	onCallArgs struct {
		Services any `arg:"services" type:"list[str]" default:"" doc:"Names of the services that were at fault, at most three; nothing if there were none, or if you do not know."`
		Wait     int `arg:"wait" default:"300" doc:"How many seconds to wait for the next page at most, from 5 to 600."`
	}
	incidentArgs struct {
		Answer any `arg:"answer" type:"str | list[str] | dict[str, str]" default:"" doc:"The answer to the question at hand, in the form that the question asks for; nothing where that is an answer."`
	}
)

const (
	submitDoc     = "Hand in the solution of the task. This ends the run, so do it once and last."
	submitReturns = "SubmissionStatus: the status of the submission. Valid does not mean correct."
)

// submitAction returns the action that ends a task, or of an incident the one that answers its questions.
func submitAction(task string) *Action {
	const name = "submit"
	switch task {
	case term.Detection:
		return define(name, Submit, submitDoc, submitReturns,
			func(_ context.Context, _ *Interface, a *detectionArgs) Result { return submitted(a.Answer) })
	case term.Localization:
		return define(name, Submit, submitDoc, submitReturns,
			func(_ context.Context, _ *Interface, a *localizationArgs) Result { return submitted(a.Answer) })
	case term.Analysis:
		doc := submitDoc + fmt.Sprintf(" system_level is one of %s. fault_type is one of %s.",
			strings.Join(term.SystemLevels, ", "), strings.Join(term.FaultTypes, ", "))
		return define(name, Submit, doc, submitReturns, func(_ context.Context, _ *Interface, a *analysisArgs) Result {
			return submitted(a.Answer)
		})
	case term.Mitigation:
		doc := "Say that the anomalies are mitigated. The system itself is judged. This ends the run, so do " +
			"it once and last."
		a := define(name, Submit, doc, submitReturns, func(context.Context, *Interface, *mitigationArgs) Result {
			return submitted(nil)
		})
		a.loose = true
		return a
	case term.Operation:
		doc := "Say that the task is done, and report what it asks for. The services themselves are judged. This " +
			"ends the run, so do it once and last."
		return define(name, Submit, doc, submitReturns,
			func(_ context.Context, _ *Interface, a *operationArgs) Result { return submitted(a.Answer) })
	case term.OnCall:
		doc := "Say that you are done with all pages so far, and wait for the next one. It returns when the pager " +
			"calls, when the time is up, or when the shift is over. Until then the run goes on. It costs no step."
		returns := "SubmissionStatus: the status of the submission, and the next page if there is one."
		return define(name, Submit, doc, returns,
			func(ctx context.Context, i *Interface, a *onCallArgs) Result { return i.answerPages(ctx, a) })
	case term.Incident:
		doc := "Hand in the answer to the question at hand. What it returns has the next question, until the last is " +
			"answered. An answer cannot be taken back, and nobody tells whether it is right."
		return define(name, Submit, doc, submitReturns, func(_ context.Context, _ *Interface, a *incidentArgs) Result {
			return submitted(a.Answer)
		})
	}
	return nil
}

func submitted(answer any) Result {
	return Result{Text: validSubmission, Submitted: true, Answer: answer}
}

// validSubmission is AIOpsLab's word for an answer that was taken.
const validSubmission = "SubmissionStatus.VALID_SUBMISSION"
