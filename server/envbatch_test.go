package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/problem/problemtest"
)

// resets and steps are batches; a step is what is given for its environment.
func resets(envs []OpenedEnv, seed uint64) string {
	var b BatchReset
	for _, e := range envs {
		b.Resets = append(b.Resets, EnvReset{e.ID, Reset{Seed: &seed}})
	}
	text, _ := json.Marshal(b)
	return string(text)
}

func steps(envs []OpenedEnv, actions ...any) string {
	var b BatchStep
	for i, e := range envs {
		b.Steps = append(b.Steps, EnvMove{e.ID, Move{actions[i]}})
	}
	text, _ := json.Marshal(b)
	return string(text)
}

const (
	yes = "submit(\"Yes\")"
	no  = "submit(\"No\")"
)

// Environments are made, reset and stepped together, and what comes of each is in its place.
func TestBatch(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	made := get[OpenedEnvs](l, "POST", "/envs", `{"n": 3, "problems": ["`+faulty+`", "`+healthy+`"], "seed": 5}`)
	if len(made.Envs) != 3 || made.Token == "" {
		t.Fatalf("%+v", made)
	}
	early := get[BatchResult](l, "POST", "/envs/batch/step", steps(made.Envs, yes, yes, yes))
	for i, r := range early.Results {
		if r.Env != made.Envs[i].ID || r.Result != nil || r.Error == nil || r.Error.Status != 409 {
			t.Errorf("%+v", r)
		}
	}
	// Member i draws what an environment with a seed of i more draws.
	var want, got []string
	for i := range 3 {
		path := l.env(fmt.Sprintf(`{"problems": [%q, %q], "seed": %d}`, faulty, healthy, 5+i))
		get[First](l, "POST", path+"/reset", "")
		info := get[Result](l, "POST", path+"/step", submitYes).Info
		want = append(want, fmt.Sprint(info["problem"], info["seed"]))
	}
	first := get[BatchFirst](l, "POST", "/envs/batch/reset", strings.ReplaceAll(resets(made.Envs, 1), `,"seed":1`, ""))
	for i, r := range first.Results {
		if r.Env != made.Envs[i].ID || r.Error != nil || !strings.HasPrefix(r.First.Observation, "You are an expert.") {
			t.Errorf("%+v", r)
		}
	}
	for _, r := range get[BatchResult](l, "POST", "/envs/batch/step", steps(made.Envs, yes, yes, yes)).Results {
		got = append(got, fmt.Sprint(r.Result.Info["problem"], r.Result.Info["seed"]))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	// One seed for all gives all the same.
	get[BatchFirst](l, "POST", "/envs/batch/reset", resets(made.Envs, 9))
	seeds := map[string]bool{}
	for _, r := range get[BatchResult](l, "POST", "/envs/batch/step", steps(made.Envs, yes, yes, yes)).Results {
		seeds[fmt.Sprint(r.Result.Info["problem"], r.Result.Info["seed"])] = true
	}
	if len(seeds) != 1 {
		t.Errorf("%v", seeds)
	}
}

// What is wrong with one member is told in its place, and the others go on.
func TestBatchMembersFail(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	made := get[OpenedEnvs](l, "POST", "/envs", `{"n": 3, "problem": "`+faulty+`"}`).Envs
	get[BatchFirst](l, "POST", "/envs/batch/reset", resets(made, 1))
	l.workers.list()[1].Kill()
	strange := append(slices.Clone(made), OpenedEnv{Env: Env{ID: "nobody"}})
	got := get[BatchResult](l, "POST", "/envs/batch/step", steps(strange, yes, yes, 3, yes)).Results
	for i, want := range []*EnvError{nil, {502, "killed"}, {422, "an action is"}, {404, "no environment"}} {
		e := got[i].Error
		if (e == nil) != (want == nil) || e != nil && (e.Status != want.Status || !strings.Contains(e.Detail, want.Detail)) {
			t.Errorf("%d: %+v, want %+v", i, e, want)
		}
	}
	if got[0].Result == nil || got[0].Result.Reward != 1 {
		t.Errorf("%+v", got[0].Result)
	}
	again := get[BatchFirst](l, "POST", "/envs/batch/reset", resets(strange, 2)).Results
	for i, r := range again {
		if (r.First == nil) != (i == 3) || (r.Error == nil) != (i != 3) {
			t.Errorf("%d: %+v", i, r.Error)
		}
	}
}

// The token of a vector reaches its members, and nothing else, until the last of them is gone.
func TestBatchToken(t *testing.T) {
	l := newLab(t, Options{Token: "open sesame"}, &fakeBackend{})
	l.header.Set("Authorization", "Bearer open sesame")
	made := get[OpenedEnvs](l, "POST", "/envs", `{"n": 2, "problem": "`+faulty+`"}`)
	other := get[OpenedEnv](l, "POST", "/envs", detection(faulty))
	l.header.Set("Authorization", "Bearer "+made.Token)
	got := get[BatchFirst](l, "POST", "/envs/batch/reset", resets(append(made.Envs, other), 1)).Results
	if got[0].Error != nil || got[1].Error != nil || got[2].Error == nil || got[2].Error.Status != 404 {
		t.Errorf("%+v", got)
	}
	l.refused("POST", "/envs", detection(faulty), 403, made.Envs[0].ID+", "+made.Envs[1].ID)
	if status, _ := l.do("DELETE", "/envs/"+made.Envs[0].ID, ""); status != 204 {
		t.Errorf("%d", status)
	}
	get[First](l, "POST", "/envs/"+made.Envs[1].ID+"/reset", "")
	l.header.Set("Authorization", "Bearer "+made.Envs[1].Token)
	if status, _ := l.do("DELETE", "/envs/"+made.Envs[1].ID, ""); status != 204 {
		t.Errorf("%d", status)
	}
	for _, token := range []string{made.Token, made.Envs[0].Token, made.Envs[1].Token} {
		l.header.Set("Authorization", "Bearer "+token)
		l.refused("GET", "/openapi.json", "", 401, "token")
	}
}

// There are as many environments as fit, or none.
func TestBatchRoom(t *testing.T) {
	l := newLab(t, Options{MaxSessions: 3}, &fakeBackend{})
	vector := func(n int) string { return fmt.Sprintf(`{"n": %d, "problem": %q}`, n, faulty) }
	l.refused("POST", "/envs", vector(4), 422, "up to 3")
	l.refused("POST", "/envs", vector(-1), 422, "n is -1")
	l.env(detection(faulty))
	l.refused("POST", "/envs", vector(3), 503, "3 more do not fit")
	made := get[OpenedEnvs](l, "POST", "/envs", vector(2))
	l.refused("POST", "/envs", vector(1), 503, "as many as there may be")
	if n := len(l.workers.list()); n != 3 {
		t.Errorf("%d workers for 3 environments", n)
	}
	for body, want := range map[string]string{
		`{"steps": []}`: "0 members",
		`{}`:            "0 members",
		steps(append(made.Envs, made.Envs...), yes, yes, yes, yes): "4 members; it has one at least, and 3 at most",
		steps([]OpenedEnv{made.Envs[0], made.Envs[0]}, yes, yes):   "twice",
		`{"steps": [{"env": "x", "acton": 1}]}`:                    `did you mean "action"?`,
		`{"steps": {}}`:                                            "cannot be read",
	} {
		l.refused("POST", "/envs/batch/step", body, 422, want)
	}
	l.refused("POST", "/envs/batch/reset", `{"resets": [{"env": "x", "sed": 1}]}`, 422, `did you mean "seed"?`)
}

// An environment draws from what is selected, of the library or of documents.
func TestEnvSelectors(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	two := strings.Replace(ownDocument, "[detection]", "[detection, localization]", 1)
	made := get[OpenedEnvs](l, "POST", "/envs", `{"n": 1, "suite": "aiopslab", "task": "detection", "app": "hotel-reservation"}`).Envs[0]
	if len(made.Problems) < 3 || !slices.Contains(made.Problems, faulty) || slices.Contains(made.Problems, social) {
		t.Errorf("%v", made.Problems)
	}
	drawn := map[any]bool{}
	for range 12 {
		get[First](l, "POST", "/envs/"+made.ID+"/reset", "")
		drawn[get[Result](l, "POST", "/envs/"+made.ID+"/step", submitYes).Info["problem"]] = true
	}
	if len(drawn) < 3 {
		t.Errorf("twelve episodes had %v", drawn)
	}
	for id := range drawn {
		if !slices.Contains(made.Problems, id.(string)) {
			t.Errorf("%s was drawn", id)
		}
	}
	e := get[OpenedEnv](l, "POST", "/envs", `{"problem": "`+social+`", "documents": [`+quoted(two)+`], "task": "detection"}`)
	if d := cmp.Diff([]string{social, "mine-detection-1"}, e.Problems); d != "" {
		t.Error(d)
	}
	for body, want := range map[string]string{
		`{"suite": "hotels"}`: "there are: all",
		`{"task": "x"}`:       "there is no task",
		`{"app": "hotel"}`:    "there is no application",
		`{"suite": "hotel", "app": "social-network"}`:               "no problem is of suite hotel, app social-network",
		`{"documents": [` + quoted(two) + `], "task": "analysis"}`:  "no problem is of task analysis",
		`{"documents": [` + quoted(two) + `, ` + quoted(two) + `]}`: "two problems mine-detection-1",
	} {
		l.refused("POST", "/envs", body, 422, want)
	}
}

func TestBatchSideBySide(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	made := get[OpenedEnvs](l, "POST", "/envs", `{"n": 4, "problem": "`+faulty+`"}`).Envs
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 3 { // Whoever comes first, each of them has an answer.
				for _, r := range get[BatchFirst](l, "POST", "/envs/batch/reset", resets(made, 1)).Results {
					if r.First == nil {
						t.Errorf("%+v", r.Error)
					}
				}
				for _, r := range get[BatchResult](l, "POST", "/envs/batch/step", steps(made, yes, no, yes, no)).Results {
					if r.Error != nil && r.Error.Status != 409 {
						t.Errorf("%+v", r.Error)
					}
				}
			}
		})
	}
	wg.Wait()
}

// FuzzEnvRequests gives requests to read that nobody has thought of: they are refused in one line, or can be meant.
func FuzzEnvRequests(f *testing.F) {
	for _, s := range []string{
		`{"n": 2, "problem": "` + faulty + `"}`, `{"suite": "hotel", "task": "detection", "app": "x"}`,
		`{"documents": [` + quoted(ownDocument) + `], "reward": {"solved": 2}}`, `{"reward": "shaped"}`,
		`{"resets": [{"env": "a", "seed": 3, "options": {"problem": "b"}}]}`, `{"resets": [{"env": "a"}, {"env": "a"}]}`,
		`{"steps": [{"env": "a", "action": "x"}, {"env": "b", "action": {"name": "y"}}]}`, `{"n": 1e99}`, `[`,
	} {
		f.Add(s)
	}
	front := NewFront(Options{Library: problemtest.Library(f), MaxSessions: 4})
	f.Fuzz(func(t *testing.T, body string) {
		read := func(v any) error {
			return decode(httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader(body)), v)
		}
		n := NewEnv{Reward: DefaultReward}
		if read(&n) == nil {
			if _, err := front.checkEnv(&n); err == nil && (len(n.Problems) == 0 || n.N < 0 || n.N > 4 || n.Seed == 0 || n.Reward.check() != nil) {
				t.Errorf("%s is taken as %+v", body, n)
			}
		}
		for path, v := range map[string]any{"/envs/batch/reset": &BatchReset{}, "/envs/batch/step": &BatchStep{}} {
			w := httptest.NewRecorder()
			front.ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader(body)))
			if read(v) != nil && w.Code != http.StatusUnprocessableEntity || w.Code >= 500 || !json.Valid(w.Body.Bytes()) {
				t.Errorf("%s %s: %d %s", path, body, w.Code, w.Body)
			}
		}
	})
}
