package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/session"
)

func (l *lab) env(body string) string {
	l.t.Helper()
	return "/envs/" + get[Env](l, "POST", "/envs", body).ID
}

const (
	look      = `{"action": {"name": "get_alerts"}}`
	nonsense  = `{"action": "I wonder."}`
	unknown   = `{"action": {"name": "dance", "arguments": {"how": "well"}}}`
	submitYes = `{"action": "` + "```\\nsubmit(\\\"Yes\\\")\\n```" + `"}`
	submitNo  = `{"action": {"name": "submit", "arguments": {"has_anomaly": "No"}}}`
)

func TestGymEpisodes(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	path := l.env(`{"problems": ["` + faulty + `", "` + healthy + `"], "seed": 1, "max_steps": 3, "reward": {"solved": 10, "failed": -10, "step": -1, "invalid": -0.5}}`)
	l.refused("POST", path+"/step", look, 409, "reset")
	solved := 0
	for range 6 {
		first := get[First](l, "POST", path+"/reset", "")
		if !strings.HasPrefix(first.Observation, "You are an expert.") || !strings.HasSuffix(first.Observation, aci.NextAction) || !strings.Contains(first.Observation, "get_logs(") {
			t.Errorf("%s", first.Observation)
		}
		if first.Info["problem"] != nil || first.Info["task"] != "detection" || first.Info["tools"] == nil {
			t.Errorf("%v", first.Info)
		}
		r := get[Result](l, "POST", path+"/step", look)
		if r.Reward != -1 || r.Terminated || r.Truncated || r.Info["action"] != "get_alerts" || r.Info["problem"] != nil || !strings.HasSuffix(r.Observation, aci.NextAction) {
			t.Errorf("%+v", r)
		}
		r = get[Result](l, "POST", path+"/step", submitYes)
		if !r.Terminated || r.Truncated || r.Info["valid"] != true {
			t.Errorf("%+v", r)
		}
		want := map[any]float64{faulty: 9, healthy: -11}[r.Info["problem"]]
		if r.Reward != want || (r.Info["class"] == "solved") != (want > 0) {
			t.Errorf("%+v, want %v", r, want)
		}
		if want > 0 {
			solved++
		}
		l.refused("POST", path+"/step", look, 409, "reset")
	}
	if solved == 0 || solved == 6 {
		t.Errorf("of six episodes %d had a fault: nothing was drawn", solved)
	}
	if n := len(l.workers.list()); n != 1 {
		t.Errorf("%d workers for episodes that share a stage", n)
	}
	if list := get[[]Env](l, "GET", "/envs", ""); len(list) != 1 || list[0].Episodes != 6 || list[0].Reward.Solved != 10 {
		t.Errorf("%+v", list)
	}
}

func TestGymTruncation(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	path := l.env(`{"problem": "` + faulty + `", "max_steps": 2, "reward": {"invalid": -0.25, "failed": -1}}`)
	get[First](l, "POST", path+"/reset", "")
	if r := get[Result](l, "POST", path+"/step", nonsense); r.Reward != -0.25 || r.Info["action"] != "" {
		t.Errorf("%+v", r)
	}
	r := get[Result](l, "POST", path+"/step", unknown)
	if r.Reward != -1.25 || r.Terminated || !r.Truncated || r.Info["class"] != "agent" {
		t.Errorf("%+v", r)
	}
	// Out of time.
	path = l.env(`{"problem": "` + faulty + `", "max_time": 0.01, "max_steps": 1000000, "reward": {"failed": -1}}`)
	get[First](l, "POST", path+"/reset", "")
	for r.Truncated = false; !r.Truncated; {
		r = get[Result](l, "POST", path+"/step", look)
	}
	if r.Reward != -1 || !r.Truncated || r.Info["why"] != "the agent's time is up" {
		t.Errorf("%+v", r)
	}
}

// An environment keeps as many records as it is told to, the newest.
func TestGymKeepsRecords(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	l.refused("POST", "/envs", `{"problem": "`+faulty+`", "keep_records": -1}`, 422, "keep_records is -1")
	path := l.env(`{"problem": "` + faulty + `", "keep_records": 2}`)
	var files []any
	for i := range 5 {
		get[First](l, "POST", path+"/reset", "")
		if i == 3 {
			continue // Given up.
		}
		files = append(files, get[Result](l, "POST", path+"/step", submitYes).Info["record"])
	}
	newest := files[3].(string)
	list, err := filepath.Glob(filepath.Join(filepath.Dir(newest), "*.json*"))
	if err != nil || len(list) != 4 {
		t.Errorf("%v, %v: want the records and sessions of two episodes", list, err)
	}
	if !slices.Contains(list, newest) {
		t.Errorf("%s is not among %v", newest, list)
	}
}

// An episode that says nothing of the agent can be told from one that does.
func TestGymInvalidEpisode(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{class: session.Infra})
	path := l.env(`{"problem": "` + faulty + `", "reward": {"failed": -1, "step": -1}}`)
	get[First](l, "POST", path+"/reset", "")
	r := get[Result](l, "POST", path+"/step", submitNo)
	if r.Reward != 0 || !r.Terminated || r.Info["valid"] != false || r.Info["class"] != "infra" {
		t.Errorf("%+v", r)
	}
}

// The same seed gives the same episodes, and another gives others.
func TestGymSeeds(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	draw := func(path, reset string) (list []string) {
		for range 8 {
			if first := get[First](l, "POST", path+"/reset", reset); first.Info["seed"] != nil {
				t.Fatal("an episode begins with its seed, from which an agent could tell what is made up")
			}
			r := get[Result](l, "POST", path+"/step", submitYes)
			list = append(list, fmt.Sprint(r.Info["problem"], r.Info["seed"]))
			reset = ""
		}
		return list
	}
	problems := `"problems": ["` + faulty + `", "` + healthy + `"]`
	a := l.env(`{` + problems + `, "seed": 5}`)
	first, second := draw(a, ""), draw(a, "")
	if d := cmp.Diff(first, second); d == "" {
		t.Errorf("the episodes repeat: %v", first)
	}
	b := l.env(`{` + problems + `, "seed": 6}`)
	if d := cmp.Diff(first, draw(b, `{"seed": 5}`)); d != "" {
		t.Errorf("the same seed:\n%s", d)
	}
	if d := cmp.Diff(first, draw(b, `{"seed": 6}`)); d == "" {
		t.Error("another seed gives the same")
	}
}

// A problem that needs another stage gets another worker; a reset ends an episode that is under way.
func TestGymOptions(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	path := l.env(detection(faulty))
	get[First](l, "POST", path+"/reset", "")
	first := get[First](l, "POST", path+"/reset", `{"options": {"problem": "`+social+`"}}`)
	if first.Info["namespace"] != "test-social-network" {
		t.Errorf("%v", first.Info)
	}
	if r := get[Result](l, "POST", path+"/step", submitNo); r.Info["problem"] != social || r.Reward != 1 {
		t.Errorf("%+v", r)
	}
	workers := l.workers.list()
	if len(workers) != 2 {
		t.Fatalf("%d workers", len(workers))
	}
	<-workers[0].Done()
	l.refused("POST", path+"/reset", `{"options": {"problem": "x"}}`, 404, "There are: ")
	l.refused("POST", path+"/step", `{"action": 3}`, 422, "an action is")
	l.refused("POST", path+"/step", `{"action": {"arguments": {}}}`, 422, "an action is")
}

// A stage that breaks is replaced once; one that cannot be set up is an error.
func TestGymBreakdown(t *testing.T) {
	var fails atomic.Int32
	l := newLab(t, Options{}, &fakeBackend{broken: func(Spec) error {
		if fails.Add(-1) >= 0 {
			return errors.New("no space left")
		}
		return nil
	}})
	fails.Store(1)
	path := l.env(detection(faulty))
	get[First](l, "POST", path+"/reset", "")
	l.workers.list()[1].Kill()
	l.refused("POST", path+"/step", look, 502, "killed")
	get[First](l, "POST", path+"/reset", "")
	fails.Store(2)
	l.workers.list()[2].Kill()
	l.refused("POST", path+"/reset", "", 502, "no space left")
	fails.Store(0)
	get[First](l, "POST", path+"/reset", "")
	if r := get[Result](l, "POST", path+"/step", submitYes); r.Reward != 1 {
		t.Errorf("%+v", r)
	}
}

// An episode that cannot begin on one worker leaves a record, and is another one on the next.
func TestGymSecondAttempt(t *testing.T) {
	var fails atomic.Int32
	l := newLab(t, Options{}, &fakeBackend{broken: func(s Spec) error {
		if s.Name != "" && fails.Add(-1) >= 0 { // A stage has no name.
			return errors.New("not healthy")
		}
		return nil
	}})
	path := l.env(detection(faulty))
	ids := map[any]bool{}
	for range 2 {
		fails.Store(1)
		ids[get[First](l, "POST", path+"/reset", "").Info["episode"]] = true
		s := get[Snapshot](l, "POST", path+"/snapshot", "")
		fails.Store(1)
		ids[get[Restored](l, "POST", path+"/restore", restoring(s.ID)).Info["episode"]] = true
	}
	if len(ids) != 4 {
		t.Errorf("%v", ids)
	}
	fails.Store(2)
	l.refused("POST", path+"/reset", "", 502, "not healthy")
}

func TestGymSideBySide(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			path := l.env(detection([]string{faulty, social}[i%2]))
			for range 3 {
				get[First](l, "POST", path+"/reset", "")
				if r := get[Result](l, "POST", path+"/step", []string{submitYes, submitNo}[i%2]); r.Reward != 1 {
					t.Errorf("%+v", r)
				}
			}
		})
	}
	wg.Wait()
}

// An environment that is ended while it works goes when it can.
func TestGymDelete(t *testing.T) {
	acting, goOn := make(chan struct{}), make(chan struct{})
	l := newLab(t, Options{MaxSessions: 1}, &fakeBackend{during: func(context.Context) {
		acting <- struct{}{}
		<-goOn
	}})
	path := l.env(detection(faulty))
	get[First](l, "POST", path+"/reset", "")
	done := make(chan struct{})
	go func() {
		defer close(done)
		get[Result](l, "POST", path+"/step", look)
	}()
	<-acting
	if status, _ := l.do("DELETE", path, ""); status != 204 {
		t.Errorf("%d", status)
	}
	l.refused("POST", path+"/step", look, 404, "no environment")
	goOn <- struct{}{}
	<-done
	<-l.workers.list()[0].Done()
}

// An environment that nobody uses any more does not keep its place.
func TestGymIdle(t *testing.T) {
	l := newLab(t, Options{MaxSessions: 1, EnvIdle: time.Millisecond}, &fakeBackend{})
	path := l.env(detection(faulty))
	<-l.workers.list()[0].Done()
	l.refused("POST", path+"/reset", "", 404, "no environment")
	l.opensSoon()
}

// FuzzAction gives steps to read that nobody has thought of: they are refused, or make a response that
// names the same action with the same arguments.
func FuzzAction(f *testing.F) {
	for _, s := range []string{look, nonsense, unknown, submitYes, submitNo, `{"action": {"name": "a", "arguments": {"x": "\"\\u2028'\\n"}}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		var m Move
		if json.Unmarshal([]byte(body), &m) != nil {
			return
		}
		response, err := m.response()
		call, isCall := m.Action.(map[string]any)
		if err != nil || !isCall {
			return
		}
		name, args := call["name"].(string), call["arguments"]
		if !regexp.MustCompile(`^[a-z]\w*$`).MatchString(name) {
			return
		}
		for key, value := range mapOf(args) {
			if _, ok := value.(string); !ok || !regexp.MustCompile(`^[a-z]\w*$`).MatchString(key) {
				return
			}
		}
		parsed, err := aci.Parse(response)
		if err != nil || parsed.Name != name || len(parsed.Args) > 0 || !maps.Equal(parsed.Kwargs, mapOf(args)) {
			t.Errorf("%s becomes %s, which is read as %+v (%v)", body, response, parsed, err)
		}
	})
}

func mapOf(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// In an episode of an incident each answer is a step, and the last ends it.
func TestGymIncident(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	path := l.env(`{"problems": ["` + strings.Replace(faulty, "detection", "incident", 1) + `"]}`)
	if first := get[First](l, "POST", path+"/reset", ""); first.Info["task"] != "incident" {
		t.Errorf("%+v", first.Info)
	}
	for _, question := range []any{"localization", "analysis", "mitigation", nil} {
		r := get[Result](l, "POST", path+"/step", `{"action": {"name": "submit"}}`)
		if r.Info["question"] != question || r.Terminated != (question == nil) || r.Truncated || question != nil && r.Reward != 0 {
			t.Errorf("%v: %+v", question, r)
		}
	}
}
