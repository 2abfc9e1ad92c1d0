package server

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/guard/policy"
	"github.com/aiopslab/aiopslab/session"
)

// lay puts a question on the desk of a session, and returns where its answer arrives.
func lay(t *testing.T, desks *sync.Map, id string, number int, taken error) <-chan guard.Answer {
	t.Helper()
	desk, ok := desks.Load(id)
	if !ok {
		t.Fatalf("there is no run %s", id)
	}
	q := session.Approval{Number: number, Question: guard.Question{
		Change: policy.Change{Verb: "delete", Resource: "pods", Name: "web"}, Risk: policy.Medium, Policy: "careful",
	}}
	answers := make(chan guard.Answer, 1)
	ctx, cancel := context.WithCancel(context.Background())
	var laid sync.WaitGroup
	laid.Go(func() {
		desk.(*session.Desk).Lay(ctx, q, func(a guard.Answer) error {
			answers <- a
			return taken
		})
	})
	t.Cleanup(func() {
		cancel()
		laid.Wait()
	})
	return answers
}

// questions waits until a session has so many.
func questions(l *lab, path string, n int) []session.Approval {
	l.t.Helper()
	for {
		if list := get[[]session.Approval](l, "GET", path+"/questions", ""); len(list) == n || l.t.Failed() {
			return list
		}
	}
}

func TestQuestions(t *testing.T) {
	var desks sync.Map
	operator := newLab(t, Options{Token: "open sesame"}, &fakeBackend{desks: &desks}).with("open sesame")
	mine := get[OpenedSession](operator, "POST", "/sessions", detection(faulty))
	other := get[OpenedSession](operator, "POST", "/sessions", detection(healthy))
	agent := operator.with(mine.Token)
	path, theirs := "/sessions/"+mine.ID, "/sessions/"+other.ID
	get[Problem](agent, "GET", path+"/problem", "")
	get[Problem](operator, "GET", theirs+"/problem", "")
	questions(operator, path, 0)

	answers := lay(t, &desks, mine.ID, 1, nil)
	list := questions(operator, path, 1)
	if list[0].Number != 1 || list[0].Resource != "pods" || list[0].Risk != policy.Medium || list[0].Policy != "careful" {
		t.Errorf("%+v", list)
	}

	// An agent cannot approve itself, nor learn what is asked about others.
	const yes = `{"approved": true, "by": "me"}`
	for _, p := range []string{path, theirs} {
		agent.refused("GET", p+"/questions", "", 403, "needs the server's token")
		agent.refused("POST", p+"/questions/1", yes, 403, "needs the server's token")
	}
	operator.with("").refused("POST", path+"/questions/1", yes, 401, "token")
	operator.with(other.Token).refused("POST", path+"/questions/1", yes, 403, "needs the server's token")

	// What is asked in one session is not answered in another.
	operator.refused("POST", theirs+"/questions/1", yes, 409, "nobody waits")
	operator.refused("POST", path+"/questions/7", yes, 409, "nobody waits")
	operator.refused("POST", path+"/questions/one", yes, 404, "there is no question")
	operator.refused("POST", path+"/questions/1", `{"why": "`+strings.Repeat("x", maxWhy+1)+`"}`, 422, "at most")
	operator.refused("POST", path+"/questions/1", `{"approve": true}`, 422, "")
	select {
	case a := <-answers:
		t.Fatalf("it was answered: %+v", a)
	default:
	}

	get[Verdict](operator, "POST", path+"/questions/1", `{"approved": true, "by": "Ada", "why": "it is\n broken"}`)
	if got, want := <-answers, (guard.Answer{Approved: true, By: "Ada", Why: "it is broken"}); got != want {
		t.Errorf("%+v", got)
	}
	operator.refused("POST", path+"/questions/1", `{"approved": false}`, 409, "has its answer")
	questions(operator, path, 0)

	// Who wanted it has left meanwhile.
	lay(t, &desks, mine.ID, 2, errors.New("nobody waits for that approval"))
	questions(operator, path, 1)
	operator.refused("POST", path+"/questions/2", yes, 409, "nobody waits")

	lay(t, &desks, mine.ID, 3, nil)
	questions(operator, path, 1)
	get[Outcome](agent, "POST", path+"/submit", `{"answer": "Yes"}`)
	questions(operator, path, 0)
	operator.refused("POST", path+"/questions/3", yes, 409, "over")
}

// A run without a policy that asks has no questions.
func TestNoQuestions(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	s := get[OpenedSession](l, "POST", "/sessions", detection(faulty))
	get[Problem](l, "GET", "/sessions/"+s.ID+"/problem", "")
	questions(l, "/sessions/"+s.ID, 0)
	l.refused("POST", "/sessions/"+s.ID+"/questions/1", `{"approved": true}`, 404, "there is no question")
}

// An agent that speaks MCP is not asked by the server: it would approve itself. There is no MCP at all.
func TestNoFormsOverMCP(t *testing.T) {
	var desks sync.Map
	operator := newLab(t, Options{Token: "open sesame"}, &fakeBackend{desks: &desks}).with("open sesame")
	s := get[OpenedSession](operator, "POST", "/sessions", detection(faulty))
	get[Problem](operator, "GET", "/sessions/"+s.ID+"/problem", "")
	lay(t, &desks, s.ID, 1, nil)
	questions(operator, "/sessions/"+s.ID, 1)
	for _, path := range []string{"/mcp", "/sessions/" + s.ID + "/mcp"} {
		operator.with(s.Token).refused("POST", path, `{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}`, 404, "")
	}
	questions(operator, "/sessions/"+s.ID, 1)
}
