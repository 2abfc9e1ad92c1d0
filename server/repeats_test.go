package server

import (
	"fmt"
	"testing"

	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

// ends takes the last step of an episode, and returns its class and the class that it would have had in no search.
func (l *lab) ends(path, move string, reward float64) string {
	l.t.Helper()
	r := get[Result](l, "POST", path+"/step", move)
	if r.Reward != reward || r.Info["valid"] != true {
		l.t.Errorf("%+v", r)
	}
	results, _ := r.Info["results"].(map[string]any)
	return fmt.Sprint(r.Info["class"], " ", results["search"])
}

// Who begins an episode again by its seed has seen how it goes on. It is rewarded as ever, and does not count.
func TestRepeats(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	path := l.env(`{"problems": ["` + faulty + `", "` + healthy + `"], "seed": 7}`)
	problem := `"options": {"problem": "` + faulty + `"}`
	begin := func(body string) { get[First](l, "POST", path+"/reset", "{"+body+"}") }
	for _, tt := range []struct {
		name, reset, move string
		reward            float64
		want              string
	}{
		{"the first", problem, submitNo, 0, "agent <nil>"},
		{"the next one of the sequence", problem, submitYes, 1, "solved <nil>"},
		{"the seed that the environment was made with", problem + `, "seed": 7`, submitYes, 1, "search solved"},
		{"the same, wrong", problem + `, "seed": 7`, submitNo, 0, "search agent"},
		{"another seed", problem + `, "seed": 8`, submitYes, 1, "solved <nil>"},
		{"the next one after that", problem, submitYes, 1, "solved <nil>"},
		{"another problem with the seed", `"seed": 8, "options": {"problem": "` + healthy + `"}`, submitNo, 1, "solved <nil>"},
	} {
		begin(tt.reset)
		if got := l.ends(path, tt.move, tt.reward); got != tt.want {
			t.Errorf("%s: %s, not %s", tt.name, got, tt.want)
		}
	}
	// In one that ended without a step nobody has seen anything. In one that was not finished they have.
	begin(problem + `, "seed": 9`)
	begin(problem + `, "seed": 9`)
	if got := l.ends(path, submitYes, 1); got != "solved <nil>" {
		t.Errorf("%s", got)
	}
	begin(problem + `, "seed": 10`)
	get[Result](l, "POST", path+"/step", look)
	begin(problem + `, "seed": 10`)
	get[Result](l, "POST", path+"/step", look)
	get[Result](l, "POST", path+"/step", look)
	r := get[Result](l, "POST", path+"/step", submitYes)
	marks := restores(t, r)
	if r.Info["class"] != string(session.Searched) || len(marks) != 1 || marks[0].From == "" || marks[0].From == r.Info["episode"] || marks[0].Steps != 0 {
		t.Errorf("%v, %+v", r.Info, marks)
	}
}

// restores are the marks in the record of an episode that has ended.
func restores(t *testing.T, r Result) (marks []record.Restore) {
	t.Helper()
	rec, err := record.Read(r.Info["record"].(string))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range rec.Events {
		if e.Kind == record.RestoreEvent {
			var m record.Restore
			if err := e.Decode(&m); err != nil {
				t.Fatal(err)
			}
			marks = append(marks, m)
		}
	}
	return marks
}

// Environments that were made together tell each other; those of others do not.
func TestRepeatsOfOthers(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	made := get[OpenedEnvs](l, "POST", "/envs", `{"n": 2, "problem": "`+faulty+`"}`)
	one, two := "/envs/"+made.Envs[0].ID, "/envs/"+made.Envs[1].ID
	other := l.env(detection(faulty))
	for _, path := range []string{one, two, other} {
		get[First](l, "POST", path+"/reset", `{"seed": 7}`)
	}
	get[Result](l, "POST", two+"/step", look)
	for path, want := range map[string]string{one: "search solved", other: "solved <nil>"} {
		if got := l.ends(path, submitYes, 1); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
	if got := l.ends(two, submitYes, 1); got != "search solved" { // It began before, and goes on when one knows.
		t.Errorf("%s", got)
	}
	// A restore looks at an episode, too, and is marked once.
	get[First](l, "POST", one+"/reset", `{"seed": 8}`)
	s := get[Snapshot](l, "POST", one+"/snapshot", "")
	get[Restored](l, "POST", two+"/restore", restoring(s.ID))
	get[Result](l, "POST", one+"/step", look)
	if r := get[Result](l, "POST", two+"/step", submitYes); len(restores(t, r)) != 1 {
		t.Errorf("%+v", restores(t, r))
	}
	// A process that has died is forgotten no more than the others.
	get[First](l, "POST", other+"/reset", `{"seed": 9}`)
	get[Result](l, "POST", other+"/step", look)
	l.workers.list()[2].Kill()
	get[First](l, "POST", other+"/reset", `{"seed": 9}`)
	if got := l.ends(other, submitYes, 1); got != "search solved" {
		t.Errorf("%s", got)
	}
}

// A step that is cut off before its worker hears of it does not use the mark up.
func TestRepeatsAreTold(t *testing.T) {
	p := &played{}
	one, two := &env{played: p}, &env{played: p}
	n := NewSession{Problem: faulty, Seed: 7}
	one.begins(First{Info: map[string]any{"episode": "a"}}, n, "")
	two.begins(First{Info: map[string]any{"episode": "b"}}, n, "")
	for i, got := range []string{one.repeats(), one.repeats(), two.repeats(), two.repeats(), one.repeats()} {
		if want := []string{"", "", "a", "a", "b"}[i]; got != want {
			t.Errorf("step %d: %q, not %q", i, got, want)
		}
	}
	if two.begins(First{}, NewSession{Problem: faulty, Seed: 8}, ""); two.repeats() != "" {
		t.Error("another one is told the same")
	}
}

// What is remembered is bounded, and the oldest is forgotten first.
func TestRepeatsAreForgotten(t *testing.T) {
	var p played
	step := func(seed uint64, id string) string { return p.step(beginning{faulty, seed}, id) }
	for seed := range uint64(3 * maxPlayed) {
		step(seed, "a")
	}
	if step(0, "b") != "" {
		t.Error("the oldest is there")
	}
	if got := step(2*maxPlayed, "b"); got != "a" {
		t.Errorf("%q", got)
	}
	if n := len(p.now) + len(p.before); n > 2*maxPlayed {
		t.Errorf("%d are remembered", n)
	}
}
