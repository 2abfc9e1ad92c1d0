package hierarchy

import (
	"context"
	"fmt"
	"slices"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent/internal/conversation"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// This file is about equals with a model. Each knows what all are asked. Those whom that is about begin, and go on
// while somebody tells of trouble that they are to put right. A speaker hands in what they report.

// askAgain is what a speaker can do beside the submission.
var askAgain = &aci.Action{
	Name: "ask_again", Doc: "Have the maintainers go on: those whom the task is about, and those who have told of " +
		"trouble, hear what you say, and work on among themselves.",
	Params:  []aci.Param{{Name: "message", Type: "str", Doc: "What they are told.", Required: true}},
	Returns: "str: what they report then.",
}

// What equals are told who are to put something right.
const (
	mendText = "There is trouble still. Put right what of it lies with your service, and wait until that has taken " +
		"effect. If it lies with a colleague, have that one put it right."
	confirmText = "Look once more: is it well again on your side, as our task wants it, and does it stay so?"
)

// goals are what equals are asked, by task.
var goals = map[problem.Task]string{
	problem.Detection:    "Find out whether anything is wrong with the application.",
	problem.Localization: "If anything is wrong with the application, find out with which services the cause lies.",
	problem.Analysis: "If anything is wrong with the application, find out what kind of fault it is, and on which " +
		"level of the system.",
	problem.Mitigation: "If anything is wrong with the application, put it right: whoever has the cause removes it, " +
		"and the others look whether that helped.",
	problem.Incident: "If anything is wrong with the application, find out where the cause lies and what kind of " +
		"fault it is. Put it right when you are told to, and not before.",
	problem.OnCall: "Whatever goes wrong with the application, put it right: whoever has the cause removes it, and " +
		"the others look whether that helped.",
}

// goal is what the group is asked, in words for its members.
func (g *group) goal() string {
	if m := taskWords.FindStringSubmatch(g.Description); g.Task == problem.Operation && m != nil {
		return m[1]
	}
	return goals[g.Task]
}

// mends reports whether the run asks from its beginning to put right what is wrong.
func (g *group) mends() bool {
	return g.Task == problem.Mitigation || g.Task == problem.OnCall || g.order != nil && g.order.Fix
}

// concerned are the services that the task is about, or else those through which users come.
func (g *group) concerned() []string {
	if g.order != nil {
		return g.order.Services
	}
	if g.Task == problem.Operation {
		if named := mentioned(g.goal(), g.services()); len(named) > 0 {
			return named
		}
	}
	return g.entries()
}

// speaker hands in what equals with a model report.
type speaker struct {
	*chief
	heard []Message
}

// speakByModel has the maintainers work it out among themselves, and a model hand in what they say.
func (g *group) speakByModel(ctx context.Context) error {
	actions := append([]*aci.Action{askAgain}, g.submission()...)
	talk, err := conversation.New(g.briefing(), speakerPrompt.With("members", g.roster()), actions, false)
	if err != nil {
		return err
	}
	s := &speaker{chief: g.chief}
	observation, pages := "", g.floor.paged()
	if g.Task == problem.OnCall && pages == "" {
		observation, err = s.handIn(ctx, nobodyYet.answer())
	} else {
		err = s.begin(ctx, pages)
		observation = joined(s.heard) + g.room()
	}
	if err != nil {
		return err
	}
	return g.talkItOver(ctx, talk, observation, s.act)
}

// act does what a reply of the speaker says, and returns what it is told then.
func (s *speaker) act(ctx context.Context, response string) (string, error) {
	call, err := aci.Parse(response)
	switch {
	case err != nil:
		s.turn("nothing")
		return err.Error(), nil
	case call.Name == askAgain.Name:
		return s.goOn(ctx, words(call, 0, "message"))
	case has(s.g.submission(), call.Name):
		return s.handIn(ctx, response)
	}
	s.turn("nothing")
	return fmt.Sprintf("You cannot call %s. Hand in what the maintainers have found.", clip(call.Name, 60)), nil
}

// begin has those begin whom the task is about: where objectives hold at all times by their heartbeats, where
// something is asked for by being told so, else where users come in, and with those of whom the pager tells. What is to
// be put right is put right next.
func (s *speaker) begin(ctx context.Context, pages string) (err error) {
	switch {
	case s.g.order != nil && s.g.order.Standing:
		s.heard, err = s.g.firstBeat(ctx)
	case s.g.Task == problem.Operation:
		_, err = s.tell(ctx, s.g.concerned(), "This is asked of all of us:\n"+s.g.goal()+"\nDo what of it is to be "+
			"done at your service, wait until it has taken effect, and report how it is then.")
	default:
		s.heard, err = s.ring(ctx, union(s.g.entries(), s.g.called(pages)), calling(pages), Message{})
	}
	if err == nil && s.g.mends() {
		_, err = s.mend(ctx, troubledIn(s.heard))
	}
	return err
}

// tell gives some maintainers the same task, and returns what is reported until nobody has anything left to do.
func (s *speaker) tell(ctx context.Context, names []string, text string) ([]Message, error) {
	tasks := make([]Task, len(names))
	for i, n := range names {
		tasks[i] = Task{To: n, Text: text}
	}
	list, err := s.assign(ctx, tasks)
	if err != nil {
		return nil, err
	}
	more, err := s.settle(ctx)
	list = append(list, more...)
	s.heard = append(s.heard, list...)
	return list, err
}

// mend has those who tell of trouble put it right, and all whom the task is about look whether that helped, until
// nobody tells of trouble any more. It returns what they report.
func (s *speaker) mend(ctx context.Context, who []string) (list []Message, err error) {
	for range maxRepairs {
		if len(who) == 0 || s.g.floor.left() <= reserve || s.rounds()+2 > maxRounds {
			break
		}
		did, err := s.tell(ctx, who, mendText)
		if err != nil {
			return nil, err
		}
		now, err := s.tell(ctx, union(who, s.g.concerned()), confirmText)
		if err != nil {
			return nil, err
		}
		list = slices.Concat(list, did, now)
		who = troubledIn(now)
	}
	return list, nil
}

// handIn submits, and has the maintainers put right what is wrong if that is asked for then, or if the pager calls.
func (s *speaker) handIn(ctx context.Context, response string) (string, error) {
	observation, err := s.next(ctx, response)
	if pages := aci.Paged(observation); err == nil && pages != "" {
		err = s.begin(ctx, pages)
		return observation + "\n\n" + joined(s.heard) + s.g.room(), err
	}
	if err != nil || aci.Asked(observation) != string(problem.Mitigation) {
		return observation, err
	}
	who := troubledIn(s.heard)
	if len(who) == 0 {
		who = s.g.concerned()
	}
	list, err := s.mend(ctx, who)
	return observation + "\n\n" + joined(list), err
}

// goOn has the maintainers go on, and returns what the speaker is told then.
func (s *speaker) goOn(ctx context.Context, text string) (string, error) {
	who := union(troubledIn(s.heard), s.g.concerned())
	if err := s.check([]Task{{To: who[0], Text: text}}); err != nil {
		s.turn("nothing")
		return "Nobody was asked: " + err.Error(), nil
	}
	list, err := s.tell(ctx, who, text)
	return joined(list) + s.g.room(), err
}

// troubledIn are those who told of trouble when they were last heard.
func troubledIn(list []Message) (names []string) {
	last := map[string]bool{}
	for _, m := range list {
		last[m.From] = m.Kind == record.IssueMessage || m.Trouble != nil && *m.Trouble
	}
	for _, n := range sortedKeys(last) {
		if last[n] {
			names = append(names, n)
		}
	}
	return names
}

// union are the names of two lists, each once.
func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}
