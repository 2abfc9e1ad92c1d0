package aci

import (
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/internal/term"
)

// Pager calls an agent that is on call. It is safe for concurrent use.
type Pager interface {
	// Answer says that the agent is done with the pages that it was told of, and which services it found at fault. It
	// returns with the next page, when ctx ends, after wait, or when the shift is over; and the answer as a record has
	// it.
	Answer(ctx context.Context, services []string, wait time.Duration) (text string, answer any, over bool)
}

// How long who is on call can wait for a page.
const (
	minPageWait = 5
	maxPageWait = 600
)

// pagerCalls begins what the pager says at the end of an observation.
const pagerCalls = "The pager calls.\n"

// AddPages adds what the pager says to an observation.
func AddPages(observation, pages string) string {
	return strings.TrimRight(observation, "\n") + "\n\n" + pagerCalls + pages + "\n"
}

// CutPages takes what the pager says off an observation, for who reads the rest as data.
func CutPages(observation string) (rest, pages string) {
	at := strings.LastIndex(observation, "\n\n"+pagerCalls)
	if at < 0 {
		return observation, ""
	}
	return observation[:at], observation[at+2+len(pagerCalls):]
}

// page begins what the pager says of one call.
var page = regexp.MustCompile(`(?m)^Page \d+(?:, more)?:$`)

// Paged is what the pager says in what a submission of somebody on call returns; "" if it has not called.
func Paged(answer string) string {
	at := page.FindStringIndex(answer)
	if at == nil {
		return ""
	}
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimRight(answer[at[0]:], " \n"), NextAction))
}

// Taken reports whether an observation says that a submission was taken.
func Taken(observation string) bool { return strings.Contains(observation, validSubmission) }

// onCallDescription is what an agent is told that is on call.
const onCallDescription = `You are on call for this service, which runs on Kubernetes:

%s
%s Incidents come during the shift, alone or several at a time, and other people make
harmless changes. When something is wrong the pager calls: what it says is in the next observation that you get,
whatever you do. A page may be a false alarm. Put right what is wrong, with any of the APIs, as fast as you can: what
users lose meanwhile is what counts. Leave alone what is not broken: needless changes and harm count against you.

When you are done with what you know, submit: that answers the pages so far, and waits for the next one. Submit at
once if there is no page yet. The shift goes on until its end, and nobody tells how many incidents are still to come.`

// answerPages answers the pages, and waits for the next.
func (i *Interface) answerPages(ctx context.Context, a *onCallArgs) Result {
	if i.o.Pager == nil {
		return failed("there is no pager")
	}
	if a.Wait < minPageWait || a.Wait > maxPageWait {
		return failed("wait must be from %d to %d seconds, not %d", minPageWait, maxPageWait, a.Wait)
	}
	services, err := serviceNames(a.Services)
	if err != nil {
		return failed("%v", err)
	}
	text, answer, over := i.o.Pager.Answer(ctx, services, time.Duration(a.Wait)*time.Second)
	r := Result{Text: validSubmission + "\n\n" + text, Answer: answer, Submitted: over, Question: term.Page}
	if !over {
		r.Next = term.Page
	}
	return r
}

// serviceNames reads a list of names, or one.
func serviceNames(v any) (names []string, err error) {
	if err := namesError(v); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case string:
		names = strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' })
	case []any:
		for _, e := range v {
			names = append(names, e.(string))
		}
	}
	return names, nil
}
