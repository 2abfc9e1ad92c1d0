package server

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

func restoring(id string) string { return fmt.Sprintf(`{"snapshot": %q}`, id) }

// Two environments: one goes three steps, the other one where it was, and on from there.
func TestFork(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	problems := `{"problems": ["` + faulty + `", "` + healthy + `"], "max_steps": 5, "reward": {"step": -1}, "seed": `
	one, two := l.env(problems+"1}"), l.env(problems+"2}")
	get[First](l, "POST", one+"/reset", "")
	for range 3 {
		get[Result](l, "POST", one+"/step", look)
	}
	status, answer := l.do("POST", one+"/snapshot", "")
	s := get[Snapshot](l, "POST", one+"/snapshot", "")
	if status != 200 || s.Step != 3 || s.ID == "" || strings.Count(answer, `":`) != 2 {
		t.Errorf("%d %s: a snapshot is more than an id and a step", status, answer)
	}
	again := get[Restored](l, "POST", two+"/restore", restoring(s.ID))
	if again.Steps != 3 || again.Same != 3 || again.Differs != nil || again.Reward != -3 || again.Terminated || again.Truncated {
		t.Errorf("%+v", again)
	}
	if !strings.HasPrefix(again.Observation, "did get_alerts") || again.Info["step"] != 3. || again.Info["tools"] == nil || again.Info["kubeconfig"] == nil {
		t.Errorf("%+v", again.Result)
	}
	if again.Info["seed"] != nil || again.Info["problem"] != nil {
		t.Errorf("a restored episode begins with its answer: %v", again.Info)
	}
	there, here := get[Result](l, "POST", two+"/step", submitYes), get[Result](l, "POST", one+"/step", submitYes)
	if there.Info["problem"] != here.Info["problem"] || there.Info["seed"] != here.Info["seed"] || there.Info["step"] != 4. || there.Reward != here.Reward {
		t.Errorf("%+v is not where %+v was", there, here)
	}
	if there.Info["episode"] == here.Info["episode"] || there.Info["record"] == here.Info["record"] {
		t.Error("two episodes have one record")
	}
	// The limit of steps holds in all.
	get[Restored](l, "POST", one+"/restore", restoring(s.ID))
	get[Result](l, "POST", one+"/step", look)
	if r := get[Result](l, "POST", one+"/step", look); !r.Truncated || r.Info["step"] != 5. {
		t.Errorf("%+v", r)
	}
	// What comes next is what would have come.
	drawn := func(path string) any {
		get[First](l, "POST", path+"/reset", "")
		return get[Result](l, "POST", path+"/step", submitYes).Info["seed"]
	}
	third := l.env(problems + "2}")
	if a, b := drawn(two), drawn(third); a != b {
		t.Errorf("a restore drew: %v, not %v", a, b)
	}
}

// A snapshot can be taken before the first step, and its problem may need another stage.
func TestForkAtTheBeginning(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	own := l.env(`{"documents": ["` + "id: mine-{task}-1\\ntitle: all is well\\napp: social-network\\nload: {rate: 10}\\ntasks: [detection]\\n" + `"], "max_steps": 7}`)
	other := l.env(detection(faulty))
	first := get[First](l, "POST", own+"/reset", "")
	s := get[Snapshot](l, "POST", own+"/snapshot", "")
	again := get[Restored](l, "POST", other+"/restore", restoring(s.ID))
	if s.Step != 0 || again.Steps != 0 || again.Observation != first.Observation || again.Info["namespace"] != "test-social-network" {
		t.Errorf("%+v, %+v", s, again)
	}
	id := strings.TrimPrefix(other, "/envs/")
	if state := get[OpenState](l, "GET", "/openenv/"+id+"/state", ""); state.MaxSteps != 7 || state.Done {
		t.Errorf("%+v", state)
	}
	if r := get[Result](l, "POST", other+"/step", submitNo); r.Info["problem"] != "mine-detection-1" || r.Reward != 1 {
		t.Errorf("%+v", r)
	}
	get[First](l, "POST", other+"/reset", "")
	if state := get[OpenState](l, "GET", "/openenv/"+id+"/state", ""); state.MaxSteps != session.DefaultSteps {
		t.Errorf("%+v", state)
	}
}

// The first step that differs is told, but not for its times.
func TestForkDiffers(t *testing.T) {
	var round atomic.Int32
	l := newLab(t, Options{}, &fakeBackend{tells: func(step int) string {
		if step == 1 || step == 3 {
			return fmt.Sprintf("\npods\nweb %d ready", round.Load())
		}
		return fmt.Sprintf("\nweb   1/1   Running   %dm%ds   2026-11-18T20:00:%02dZ", round.Load(), step, round.Load())
	}})
	path := l.env(detection(faulty))
	get[First](l, "POST", path+"/reset", "")
	for range 3 {
		get[Result](l, "POST", path+"/step", look)
	}
	s := get[Snapshot](l, "POST", path+"/snapshot", "")
	round.Store(1)
	again := get[Restored](l, "POST", path+"/restore", restoring(s.ID))
	want := Difference{1, "web 0 ready", "web 1 ready"}
	if again.Steps != 3 || again.Same != 1 || again.Differs == nil || *again.Differs != want {
		t.Errorf("%+v %+v", again, again.Differs)
	}
}

// An episode of a search is no run that counts, and neither is that of which others know how it goes on; its reward is
// what it would be. A verdict stays.
func TestForkIsNoRun(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	path, other := l.env(detection(faulty)), l.env(detection(faulty))
	submit := func(path, move string, reward float64, class session.Class, alone any) string {
		t.Helper()
		r := get[Result](l, "POST", path+"/step", move)
		results, _ := r.Info["results"].(map[string]any)
		if r.Reward != reward || r.Info["class"] != string(class) || r.Info["valid"] != true || results["search"] != alone {
			t.Errorf("%+v", r)
		}
		return r.Info["record"].(string)
	}
	get[First](l, "POST", path+"/reset", "")
	submit(path, submitNo, 0, session.AgentFailed, nil)
	get[First](l, "POST", path+"/reset", "")
	s := get[Snapshot](l, "POST", path+"/snapshot", "")
	get[Restored](l, "POST", other+"/restore", restoring(s.ID))
	wrong := submit(other, submitNo, 0, session.Searched, "agent") // Now it is known.
	submit(path, submitYes, 1, session.Searched, "solved")
	before, err := os.ReadFile(wrong)
	if err != nil {
		t.Fatal(err)
	}
	get[Restored](l, "POST", other+"/restore", restoring(s.ID)) // After a submission.
	right := submit(other, submitYes, 1, session.Searched, "solved")
	if after, err := os.ReadFile(wrong); err != nil || string(after) != string(before) {
		t.Errorf("the record has changed: %v", err)
	}
	rec, err := record.Read(right)
	if err != nil {
		t.Fatal(err)
	}
	var how record.Restore
	for _, e := range rec.Events {
		if e.Kind == record.RestoreEvent {
			err = e.Decode(&how)
		}
	}
	if err != nil || how.From == "" || how.Steps != 0 || how.From == rec.ID {
		t.Errorf("%+v, %v", how, err)
	}
}

// Another's snapshot is not there, and a token that reaches both environments reaches the snapshots of both.
func TestForkOfOthers(t *testing.T) {
	operator := newLab(t, Options{Token: "open sesame", MaxSessions: 4}, &fakeBackend{}).with("open sesame")
	mine := get[OpenedEnvs](operator, "POST", "/envs", `{"n": 2, "problem": "`+faulty+`"}`)
	theirs := get[OpenedEnv](operator, "POST", "/envs", detection(faulty))
	trainer, thief := operator.with(mine.Token), operator.with(theirs.Token)
	one, two, other := "/envs/"+mine.Envs[0].ID, "/envs/"+mine.Envs[1].ID, "/envs/"+theirs.ID
	get[First](trainer, "POST", one+"/reset", "")
	get[First](thief, "POST", other+"/reset", "")
	s := get[Snapshot](trainer, "POST", one+"/snapshot", "")
	thief.refused("POST", one+"/snapshot", "", 404, "no environment")
	thief.refused("POST", other+"/restore", restoring(s.ID), 404, "no snapshot")
	thief.refused("POST", two+"/restore", restoring(s.ID), 404, "no snapshot")
	thief.refused("DELETE", one+"/snapshots/"+s.ID, "", 404, "no snapshot")
	thief.refused("DELETE", other+"/snapshots/"+s.ID, "", 404, "no snapshot")
	operator.with(mine.Envs[1].Token).refused("POST", two+"/restore", restoring(s.ID), 404, "no snapshot")
	operator.with("").refused("POST", one+"/restore", restoring(s.ID), 401, "token")
	trainer.refused("POST", other+"/restore", restoring(s.ID), 404, "no environment")
	trainer.refused("POST", one+"/restore", "", 404, "no snapshot")
	trainer.refused("POST", one+"/restore", `{"seed": 7}`, 422, "unknown field")
	trainer.refused("DELETE", two+"/snapshots/"+s.ID, "", 404, "no snapshot") // It is of the other one.
	get[Restored](trainer, "POST", two+"/restore", restoring(s.ID))
	get[Restored](operator, "POST", other+"/restore", restoring(s.ID))
	// It ends with its environment.
	s2 := get[Snapshot](trainer, "POST", two+"/snapshot", "")
	if status, _ := trainer.do("DELETE", two+"/snapshots/"+s2.ID, ""); status != 204 {
		t.Errorf("%d", status)
	}
	trainer.refused("POST", two+"/restore", restoring(s2.ID), 404, "no snapshot")
	if status, _ := trainer.do("DELETE", one, ""); status != 204 {
		t.Errorf("%d", status)
	}
	trainer.refused("POST", two+"/restore", restoring(s.ID), 404, "no snapshot")
	if n := len(operator.front.snapshots); n != 0 {
		t.Errorf("%d snapshots are left", n)
	}
}

// There is an end to snapshots, by number and by what they hold.
func TestForkFlood(t *testing.T) {
	long := strings.Repeat("x", 3<<20)
	l := newLab(t, Options{}, &fakeBackend{tells: func(int) string { return long }})
	path := l.env(detection(faulty))
	l.refused("POST", path+"/snapshot", "", 409, "reset")
	get[First](l, "POST", path+"/reset", "")
	ids := map[string]bool{}
	for range maxSnapshots {
		ids[get[Snapshot](l, "POST", path+"/snapshot", "").ID] = true
	}
	l.refused("POST", path+"/snapshot", "", 429, "delete one")
	if len(ids) != maxSnapshots {
		t.Errorf("%d ids", len(ids))
	}
	for id := range ids {
		l.do("DELETE", path+"/snapshots/"+id, "")
	}
	for range 2 {
		get[Result](l, "POST", path+"/step", look)
	}
	big := get[Snapshot](l, "POST", path+"/snapshot", "")
	get[Snapshot](l, "POST", path+"/snapshot", "")
	l.refused("POST", path+"/snapshot", "", 429, "delete some")
	// One that is larger than a body may be is restored all the same.
	if r := get[Restored](l, "POST", path+"/restore", restoring(big.ID)); r.Same != 2 {
		t.Errorf("%d %d", r.Steps, r.Same)
	}
	get[Result](l, "POST", path+"/step", submitYes)
	l.refused("POST", path+"/snapshot", "", 409, "reset")
}

// A snapshot that is refused does not make the episode one of a search.
func TestForkRefused(t *testing.T) {
	long := strings.Repeat("x", 3<<20)
	l := newLab(t, Options{}, &fakeBackend{tells: func(int) string { return long }})
	path := l.env(detection(faulty))
	begin := func() {
		get[First](l, "POST", path+"/reset", "")
		for range 2 {
			get[Result](l, "POST", path+"/step", look)
		}
	}
	begin()
	for range 2 {
		get[Snapshot](l, "POST", path+"/snapshot", "")
	}
	begin()
	l.refused("POST", path+"/snapshot", "", 429, "delete some")
	if r := get[Result](l, "POST", path+"/step", submitYes); r.Info["class"] != string(session.Solved) {
		t.Errorf("%v", r.Info)
	}
}

// What an approver has once approved of is not approved of again, and nobody is asked.
func TestForkAsksNobody(t *testing.T) {
	operator := askingLab(t)
	path := operator.env(detection(faulty))
	get[First](operator, "POST", path+"/reset", "")
	step := later[Result](operator, path+"/step", change)
	get[Verdict](operator, "POST", operator.asks(path), approve)
	says(t, <-step, "approved by Ada")
	s := get[Snapshot](operator, "POST", path+"/snapshot", "")
	again := get[Restored](operator, "POST", path+"/restore", restoring(s.ID))
	says(t, again.Result, "refused: nobody is asked")
	if again.Same != 0 || again.Differs == nil || !strings.HasPrefix(again.Differs.Was, "approved by Ada") {
		t.Errorf("%+v", again)
	}
	questions(operator, path, 0)
	// Later steps ask as ever, and a restore does not wait for them.
	step = later[Result](operator, path+"/step", change)
	get[Verdict](operator, "POST", operator.asks(path), approve)
	says(t, <-step, "approved by Ada")
	step = later[Result](operator, path+"/step", change)
	operator.asks(path)
	get[Restored](operator, "POST", path+"/restore", restoring(s.ID))
	says(t, <-step, "refused: the episode is to end")
}

// Who goes away in the middle leaves no episode that is half the way.
func TestForkIsCutOff(t *testing.T) {
	var holds atomic.Bool
	taking, goOn := make(chan struct{}, 9), make(chan struct{})
	l := newLab(t, Options{}, &fakeBackend{during: func(context.Context) {
		if holds.Load() {
			taking <- struct{}{}
			<-goOn
		}
	}})
	path := l.env(detection(faulty))
	get[First](l, "POST", path+"/reset", "")
	for range 3 {
		get[Result](l, "POST", path+"/step", look)
	}
	s := get[Snapshot](l, "POST", path+"/snapshot", "")
	// A worker may hear that nobody waits any more when all steps are taken again. Then the episode goes on.
	for try := 1; ; try++ {
		holds.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		var gone sync.WaitGroup
		gone.Go(func() {
			if _, err := l.front.restore(ctx, &caller{}, strings.TrimPrefix(path, "/envs/"), s.ID); err == nil {
				t.Error("it was restored")
			}
		})
		<-taking
		cancel()
		gone.Wait()
		holds.Store(false)
		goOn <- struct{}{}
		status, body := l.do("POST", path+"/step", look)
		if status == 409 && strings.Contains(body, "reset") {
			break
		}
		if status != 200 || try == 100 {
			t.Fatalf("try %d: %d %s", try, status, body)
		}
	}
	if r := get[Restored](l, "POST", path+"/restore", restoring(s.ID)); r.Same != 3 {
		t.Errorf("%+v", r)
	}
}

// Nor does who goes away while the episode is prepared: it would have no mark, and the answer may be known.
func TestForkIsCutOffInPreparation(t *testing.T) {
	gate := make(chan struct{})
	l := newLab(t, Options{}, &fakeBackend{gate: gate})
	path := l.env(detection(faulty))
	id := strings.TrimPrefix(path, "/envs/")
	go func() { gate <- struct{}{} }() // Lets one episode through.
	get[First](l, "POST", path+"/reset", `{"seed": 7}`)
	s := get[Snapshot](l, "POST", path+"/snapshot", "")
	get[Result](l, "POST", path+"/step", submitYes)
	l.cutOff("restore", func(ctx context.Context) error {
		_, err := l.front.restore(ctx, &caller{}, id, s.ID)
		return err
	})
	l.cutOff("reset", func(ctx context.Context) error {
		seed := uint64(7)
		_, err := l.front.beginEpisode(ctx, &caller{}, id, Reset{Seed: &seed})
		return err
	})
	close(gate)
	l.refused("POST", path+"/step", submitYes, 409, "reset")
	if r := get[Restored](l, "POST", path+"/restore", restoring(s.ID)); r.Steps != 0 {
		t.Errorf("%+v", r)
	}
}

// cutOff begins an episode by a request, in the environment of the first worker, and breaks the request off while the
// episode is prepared. It returns when the worker has seen that.
func (l *lab) cutOff(what string, ask func(context.Context) error) {
	l.t.Helper()
	g := l.workers.list()[0].worker.gym
	last := g.latest.Load()
	ctx, cancel := context.WithCancel(l.t.Context())
	var gone sync.WaitGroup
	gone.Go(func() {
		if err := ask(ctx); err == nil {
			l.t.Errorf("%s: it has begun", what)
		}
	})
	for g.latest.Load() == last {
		time.Sleep(time.Millisecond)
	}
	cancel()
	gone.Wait()
	g.busy <- struct{}{}
	defer func() { <-g.busy }()
	if g.episode != nil {
		l.t.Errorf("%s: its episode lives", what)
	}
}

// Restores, snapshots, steps and resets at the same time come one after another.
func TestForkAmongSteps(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	path := l.env(`{"problem": "` + faulty + `", "max_steps": 100000}`)
	get[First](l, "POST", path+"/reset", "")
	get[Result](l, "POST", path+"/step", look)
	s := get[Snapshot](l, "POST", path+"/snapshot", "")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 5 {
				switch i % 4 {
				case 0:
					get[Restored](l, "POST", path+"/restore", restoring(s.ID))
				case 1:
					get[Result](l, "POST", path+"/step", look)
				case 2:
					got := get[Snapshot](l, "POST", path+"/snapshot", "")
					l.do("DELETE", path+"/snapshots/"+got.ID, "")
				default:
					get[First](l, "POST", path+"/reset", "")
				}
			}
		})
	}
	wg.Wait()
	if r := get[Restored](l, "POST", path+"/restore", restoring(s.ID)); r.Steps != 1 || r.Same != 1 || r.Info["step"] != 1. {
		t.Errorf("%+v", r)
	}
}

// A process that dies is replaced, and a snapshot outlives it.
func TestForkBreakdown(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	path := l.env(detection(faulty))
	get[First](l, "POST", path+"/reset", "")
	get[Result](l, "POST", path+"/step", look)
	s := get[Snapshot](l, "POST", path+"/snapshot", "")
	l.workers.list()[0].Kill()
	if r := get[Restored](l, "POST", path+"/restore", restoring(s.ID)); r.Same != 1 {
		t.Errorf("%+v", r)
	}
}

// Snapshots are taken of all, and any of them restored in each.
func TestForkBatch(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	made := get[OpenedEnvs](l, "POST", "/envs", `{"n": 2, "problems": ["`+faulty+`", "`+healthy+`"], "seed": 5}`)
	one, two := made.Envs[0].ID, made.Envs[1].ID
	get[First](l, "POST", "/envs/"+one+"/reset", "")
	taken := get[BatchSnapshots](l, "POST", "/envs/batch/snapshot", fmt.Sprintf(`{"snapshots": [{"env": %q}, {"env": %q}]}`, one, two)).Results
	if len(taken) != 2 || taken[0].Snapshot == nil || taken[0].Env != one || taken[1].Error == nil || taken[1].Error.Status != 409 {
		t.Fatalf("%+v", taken)
	}
	id := taken[0].Snapshot.ID
	body := fmt.Sprintf(`{"restores": [{"env": %q, "snapshot": %q}, {"env": %q, "snapshot": %q}]}`, two, id, one, id)
	again := get[BatchRestored](l, "POST", "/envs/batch/restore", body).Results
	if len(again) != 2 || again[0].Env != two || again[0].Restored == nil || again[1].Restored == nil {
		t.Fatalf("%+v", again)
	}
	a, b := get[Result](l, "POST", "/envs/"+one+"/step", submitYes), get[Result](l, "POST", "/envs/"+two+"/step", submitYes)
	if a.Info["problem"] != b.Info["problem"] || a.Info["seed"] != b.Info["seed"] {
		t.Errorf("%v, %v", a.Info, b.Info)
	}
	wrong := fmt.Sprintf(`{"restores": [{"env": %q, "snapshot": "nope"}]}`, one)
	if r := get[BatchRestored](l, "POST", "/envs/batch/restore", wrong).Results; r[0].Error == nil || r[0].Error.Status != 404 {
		t.Errorf("%+v", r)
	}
}

func TestDiffers(t *testing.T) {
	for _, tt := range []struct {
		was, now string
		differ   bool
	}{
		{"", "", false},
		{"geo-1  1/1  Running  0  5m12s", "geo-1  1/1  Running  0  47s", false},
		{"2026-11-18T20:00:14.123456789Z ready", "2026-11-19T01:02:03Z ready", false},
		{"2026-11-18 20:00:14 +0000 UTC", "2026-11-18 21:10:00 +0000 UTC", false},
		{"Wed, 18 Nov 2026 20:00:14 +0000", "Thu, 19 Nov 2026 01:02:03 +0000", false},
		{"I1118 20:00:14.123456 started", "I1119 01:00:14.654321 started", false},
		{"at 1794945614.25", "at 1794945999", false},
		{"took 3.2ms", "took 1m2.5s", false},
		{"geo-1  1/1", "geo-1  0/1", true},
		{"replicas 3", "replicas 4", true},
		{"a\nb", "a", true},
		{"a", "a\nb", true},
		{"web-5d8f", "web-7c9a", true},
		{"Wednesday", "Thursday", true}, // A word is no time.
	} {
		if _, _, got := differs(tt.was, tt.now); got != tt.differ {
			t.Errorf("%q, %q: %v", tt.was, tt.now, got)
		}
	}
	if was, _, _ := differs(strings.Repeat("é", 1000), ""); len([]rune(was)) != maxLine+1 {
		t.Errorf("%d runes are shown", len([]rune(was)))
	}
}
