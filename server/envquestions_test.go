package server

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aiopslab/aiopslab/session"
)

const (
	change  = `{"action": {"name": "exec_shell", "arguments": {"command": "kubectl delete pod web"}}}`
	approve = `{"approved": true, "by": "Ada", "why": "go on"}`
	decline = `{"why": "not now"}`
)

// askingLab is a lab whose episodes ask before they run a command, with the server's token.
func askingLab(t *testing.T) *lab {
	o := Options{Token: "open sesame"}
	return newLab(t, o, &fakeBackend{desks: &sync.Map{}, asks: true}).with("open sesame")
}

// later sends a request, and returns where what comes of it arrives.
func later[T any](l *lab, path, body string) <-chan T {
	got := make(chan T, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(got)
		got <- get[T](l, "POST", path, body)
	})
	l.t.Cleanup(func() {
		for _, w := range l.workers.list() {
			w.Stop() // A test that has failed may have left a question without an answer.
		}
		wg.Wait()
	})
	return got
}

// asks waits until an environment has one question, and returns its number as a path has it.
func (l *lab) asks(path string) string {
	l.t.Helper()
	return fmt.Sprintf("%s/questions/%d", path, questions(l, path, 1)[0].Number)
}

// says checks the observation of a step.
func says(t *testing.T, r Result, want string) {
	t.Helper()
	if !strings.HasPrefix(r.Observation, want) {
		t.Errorf("%q, want %q", r.Observation, want)
	}
}

func TestEnvQuestions(t *testing.T) {
	operator := askingLab(t)
	mine := get[OpenedEnv](operator, "POST", "/envs", detection(faulty))
	other := get[OpenedEnv](operator, "POST", "/envs", detection(faulty))
	path, theirs := "/envs/"+mine.ID, "/envs/"+other.ID
	trainer := operator.with(mine.Token)
	questions(operator, path, 0)
	operator.refused("POST", path+"/questions/1", approve, 404, "there is no question")
	get[First](trainer, "POST", path+"/reset", "")
	get[First](operator, "POST", theirs+"/reset", "")

	step := later[Result](trainer, path+"/step", change)
	if list := questions(operator, path, 1); list[0].Number != 1 || list[0].Policy != "careful" {
		t.Errorf("%+v", list)
	}

	// Whoever trains cannot approve, nor learn what is asked.
	for _, p := range []string{path, theirs} {
		trainer.refused("GET", p+"/questions", "", 403, "needs the server's token")
		trainer.refused("POST", p+"/questions/1", approve, 403, "needs the server's token")
		trainer.refused("POST", p+"/refuse", "", 404, "")
	}
	operator.with(other.Token).refused("POST", path+"/questions/1", approve, 403, "needs the server's token")
	operator.with("").refused("GET", path+"/questions", "", 401, "token")
	operator.with("").refused("POST", path+"/questions/1", approve, 401, "token")

	operator.refused("POST", theirs+"/questions/1", approve, 409, "nobody waits")
	operator.refused("POST", path+"/questions/7", approve, 409, "to question 7")
	operator.refused("POST", path+"/questions/one", approve, 404, "there is no question")
	operator.refused("POST", path+"/questions/1", `{"approve": true}`, 422, "")
	operator.refused("GET", "/envs/nobody/questions", "", 404, "no environment")
	operator.refused("POST", "/envs/nobody/questions/1", approve, 404, "no environment")
	operator.refused("GET", "/sessions/"+mine.ID+"/questions", "", 404, "no session")
	select {
	case r := <-step:
		t.Fatalf("the step did not wait: %+v", r)
	default:
	}

	get[Verdict](operator, "POST", path+"/questions/1", approve)
	says(t, <-step, "approved by Ada: go on")
	operator.refused("POST", path+"/questions/1", approve, 409, "has its answer")
	step = later[Result](trainer, path+"/step", change)
	get[Verdict](operator, "POST", operator.asks(path), decline)
	says(t, <-step, "refused: not now")

	// The next episode does not begin to count anew.
	get[Result](trainer, "POST", path+"/step", submitYes)
	questions(operator, path, 0)
	operator.refused("POST", path+"/questions/2", approve, 409, "nobody waits")
	get[First](trainer, "POST", path+"/reset", "")
	step = later[Result](trainer, path+"/step", change)
	if n := operator.asks(path); n != path+"/questions/3" {
		t.Error(n)
	}
	operator.refused("POST", path+"/questions/1", approve, 409, "nobody waits")
	get[Verdict](operator, "POST", path+"/questions/3", decline)
	says(t, <-step, "refused: not now")
}

// A reset does not wait for an answer, and an answer that comes after it is not taken for the next episode's question.
func TestEnvQuestionsEndWithAReset(t *testing.T) {
	operator := askingLab(t)
	for name, next := range map[string]string{
		"the same process": "", "another process": `{"options": {"problem": "` + social + `"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			path := operator.env(detection(faulty))
			get[First](operator, "POST", path+"/reset", "")
			step := later[Result](operator, path+"/step", change)
			stale := operator.asks(path)
			operator.refused("POST", path+"/reset", `{"options": {"problem": "x"}}`, 404, "There are: ")
			questions(operator, path, 1)
			get[First](operator, "POST", path+"/reset", next)
			says(t, <-step, "refused: the episode is to end")
			questions(operator, path, 0)
			operator.refused("POST", stale, approve, 409, "nobody waits")

			step = later[Result](operator, path+"/step", change)
			now := operator.asks(path)
			if now == stale {
				t.Errorf("%s is asked again", stale)
			}
			operator.refused("POST", stale, approve, 409, "nobody waits")
			questions(operator, path, 1)
			get[Verdict](operator, "POST", now, approve)
			says(t, <-step, "approved by Ada")
		})
	}
}

// Steps that come before resets, between them or after them do not make a reset wait for an answer.
func TestEnvResetsAmongSteps(t *testing.T) {
	operator := askingLab(t)
	path := operator.env(detection(faulty))
	get[First](operator, "POST", path+"/reset", "")
	for range 20 {
		var steps []<-chan Result
		var resets []<-chan First
		for range 4 {
			steps = append(steps, later[Result](operator, path+"/step", change))
			resets = append(resets, later[First](operator, path+"/reset", ""))
		}
		for _, reset := range resets {
			<-reset
		}
		for len(steps) > 0 { // What came after all resets waits for an answer.
			for _, q := range get[[]session.Approval](operator, "GET", path+"/questions", "") {
				operator.do("POST", fmt.Sprintf("%s/questions/%d", path, q.Number), decline)
			}
			steps = slices.DeleteFunc(steps, func(step <-chan Result) bool { return len(step) > 0 })
		}
	}
}

func TestEnvQuestionsEndWithTheEnvironment(t *testing.T) {
	operator := askingLab(t)
	path := operator.env(detection(faulty))
	get[First](operator, "POST", path+"/reset", "")
	step := later[Result](operator, path+"/step", change)
	question := operator.asks(path)
	if status, _ := operator.do("DELETE", path, ""); status != 204 {
		t.Errorf("%d", status)
	}
	says(t, <-step, "refused: the episode is to end")
	operator.refused("GET", path+"/questions", "", 404, "no environment")
	operator.refused("POST", question, approve, 404, "no environment")
	<-operator.workers.list()[0].Done()
}

func TestEnvQuestionsEndWithTheProcess(t *testing.T) {
	operator := askingLab(t)
	path := operator.env(detection(faulty))
	get[First](operator, "POST", path+"/reset", "")
	done := make(chan struct{})
	go func() {
		defer close(done)
		operator.refused("POST", path+"/step", change, 502, "killed")
	}()
	stale := operator.asks(path)
	operator.workers.list()[0].Kill()
	<-done
	<-operator.workers.list()[0].Done()
	questions(operator, path, 0)
	operator.refused("POST", stale, approve, 409, "nobody waits")

	get[First](operator, "POST", path+"/reset", "")
	step := later[Result](operator, path+"/step", change)
	now := operator.asks(path)
	operator.refused("POST", stale, approve, 409, "nobody waits")
	get[Verdict](operator, "POST", now, approve)
	says(t, <-step, "approved by Ada")
}

// A step of a batch, or of OpenEnv, waits as any other, and those of a batch do not wait for each other's answers.
func TestEnvQuestionsOfABatch(t *testing.T) {
	operator := askingLab(t)
	made := get[OpenedEnvs](operator, "POST", "/envs", `{"n": 2, "problem": "`+faulty+`"}`)
	one, two := made.Envs[0].ID, made.Envs[1].ID
	trainer := operator.with(made.Token)
	get[BatchFirst](trainer, "POST", "/envs/batch/reset", `{"resets": [{"env": "`+one+`"}, {"env": "`+two+`"}]}`)
	move := strings.TrimPrefix(change, "{")
	steps := later[BatchResult](trainer, "/envs/batch/step",
		`{"steps": [{"env": "`+one+`", `+move+`, {"env": "`+two+`", `+move+`]}`)
	questions(operator, "/envs/"+one, 1)
	questions(operator, "/envs/"+two, 1)
	trainer.refused("GET", "/envs/"+one+"/questions", "", 403, "needs the server's token")
	trainer.refused("POST", "/envs/"+one+"/questions/1", approve, 403, "needs the server's token")
	get[Verdict](operator, "POST", "/envs/"+two+"/questions/1", decline)
	questions(operator, "/envs/"+one, 1)
	get[Verdict](operator, "POST", "/envs/"+one+"/questions/1", approve)
	b := <-steps
	says(t, *b.Results[0].Result, "approved by Ada")
	says(t, *b.Results[1].Result, "refused: not now")

	open := later[OpenResult](trainer, "/openenv/"+one+"/step", `{"action": {"name": "exec_shell"}}`)
	get[Verdict](operator, "POST", operator.asks("/envs/"+one), approve)
	if r := <-open; !strings.HasPrefix(r.Observation.Text, "approved by Ada") {
		t.Errorf("%+v", r)
	}
}

// An episode without a policy that asks has no questions.
func TestNoEnvQuestions(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	path := l.env(detection(faulty))
	get[First](l, "POST", path+"/reset", "")
	questions(l, path, 0)
	l.refused("POST", path+"/questions/1", approve, 404, "there is no question")
}
