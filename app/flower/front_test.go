package flower_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/app/apptest"
	"github.com/aiopslab/aiopslab/app/flower"
	"github.com/aiopslab/aiopslab/image/jaeger"
	"github.com/aiopslab/aiopslab/kit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long the federation may take to do something.
const patience = 2 * time.Minute

// front is the federation's front door.
type front struct {
	t testing.TB
	d *apptest.Deployment
	c *http.Client
}

func deploy(t testing.TB) *front {
	d := apptest.Deploy(t, flower.App(), kit.NewRegistry(append(flower.Images(nil), jaeger.Image())...))
	f := &front{t, d, d.User().Client()}
	f.await("both nodes", func() bool { return strings.Count(f.ask("GET", "/nodes", ""), `"online":true`) == 2 })
	return f
}

// ask asks once, and returns the body of an answer that is no error.
func (f *front) ask(method, path, body string) string {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), method, "http://serverapp:8080"+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	resp, err := f.c.Do(req)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= http.StatusMultipleChoices {
		return ""
	}
	return string(b)
}

func (f *front) await(what string, done func() bool) {
	f.t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// run is a run as users see it.
type run struct {
	Status, Details string
	Rounds          []struct {
		Accuracy          float64
		Results, Failures int
	}
}

// train starts a run and waits for its end.
func (f *front) train() run {
	f.t.Helper()
	return f.end(f.start(3))
}

// start starts a run of so many rounds.
func (f *front) start(rounds int) (id string) {
	f.t.Helper()
	var started struct {
		ID string `json:"run_id"`
	}
	if err := json.Unmarshal([]byte(f.ask("POST", "/runs", fmt.Sprintf(`{"rounds": %d}`, rounds))), &started); err != nil {
		f.t.Fatal(err)
	}
	return started.ID
}

// end waits for the end of a run.
func (f *front) end(id string) (r run) {
	f.t.Helper()
	f.await("the end of a run", func() bool {
		r = run{}
		return json.Unmarshal([]byte(f.ask("GET", "/runs/"+id, "")), &r) == nil && strings.HasPrefix(r.Status, "finished")
	})
	return r
}

// seven is how a 7 looks.
const seven = `{"image": "09999990 00000990 00009900 00009900 00099000 00099000 00990000 00990000"}`

func TestTrain(t *testing.T) {
	f := deploy(t)
	f.await("a first model", func() bool { return strings.Contains(f.ask("POST", "/predict", seven), `"digit":7`) })
	if answer := f.ask("GET", "/runs?status=finished:completed", ""); !strings.Contains(answer, `"round":3`) {
		t.Errorf("got %s", answer)
	}
	if answer := f.ask("GET", "/runs?status=lost", ""); answer != "" {
		t.Errorf("got %s", answer)
	}
	r := f.train()
	if r.Status != "finished:completed" || len(r.Rounds) != 3 {
		t.Fatalf("got %+v", r)
	}
	for _, round := range r.Rounds {
		if round.Results != 2 || round.Failures != 0 {
			t.Errorf("got %+v", round)
		}
	}
	if last := r.Rounds[2]; last.Accuracy < 0.85 {
		t.Errorf("the accuracy is %v", last.Accuracy)
	}
	if answer := f.ask("POST", "/predict", seven); !strings.Contains(answer, `"digit":7`) {
		t.Errorf("got %s", answer)
	}
	for _, wrong := range [][2]string{
		{"/runs", `{"rounds": 0}`},
		{"/runs", `{"rounds": 99}`},
		{"/runs", "nonsense"},
		{"/predict", `{"image": "1"}`},
		{"/predict", strings.Repeat("x", 1<<20)},
	} {
		if answer := f.ask("POST", wrong[0], wrong[1]); answer != "" {
			t.Errorf("%s is answered with %s", wrong, answer)
		}
	}
}

// TestPartyGone checks what comes of a run when a party's node, or its app, is gone, and comes back.
func TestPartyGone(t *testing.T) {
	for _, gone := range []string{"supernode-1", "clientapp-2"} {
		t.Run(gone, func(t *testing.T) {
			f := deploy(t)
			f.d.Pod(gone).Signal(syscall.SIGKILL)
			f.d.Pod(gone).Wait()
			r := f.train()
			if r.Status != "finished:failed" || !strings.Contains(r.Details, "online") && !strings.Contains(r.Details, "reply") {
				t.Errorf("got %+v", r)
			}
			f.d.Restart(gone)
			f.await("both nodes", func() bool { return strings.Count(f.ask("GET", "/nodes", ""), `"online":true`) == 2 })
			if r := f.train(); r.Status != "finished:completed" {
				t.Errorf("afterwards: %+v", r)
			}
		})
	}
}

// TestRestarts checks that the federation finds together again when its parts are restarted.
func TestRestarts(t *testing.T) {
	f := deploy(t)
	f.train()
	for _, name := range []string{"superlink", "serverapp", "supernode-2", "clientapp-1"} {
		f.d.Restart(name)
		f.await("a model that is not forgotten", func() bool {
			return strings.Contains(f.ask("POST", "/predict", seven), `"digit":7`)
		})
		f.await("a run after a restart of "+name, func() bool {
			if strings.Count(f.ask("GET", "/nodes", ""), `"online":true`) != 2 {
				return false
			}
			return f.train().Status == "finished:completed"
		})
	}
}

// TestStop checks that a server app that is told to stop finishes the run that it has begun. On a machine that is too
// busy a round may take longer than anybody waits for it, with a stop or without: then it is tried again.
func TestStop(t *testing.T) {
	f := deploy(t)
	f.train()
	f.await("a run that a stop does not end", func() bool {
		id := f.start(10)
		f.await("the first round", func() bool {
			answer := f.ask("GET", "/runs/"+id, "")
			return strings.Contains(answer, `"round":1`) || strings.Contains(answer, "finished")
		})
		f.d.Restart("serverapp")
		r := f.end(id)
		if r.Status != "finished:completed" {
			t.Logf("the run ended as %s: %s", r.Status, r.Details)
		}
		return r.Status == "finished:completed"
	})
}

// TestMisfit checks how a model of another shape shows: the party fails, the run goes on without it and the model is bad.
func TestMisfit(t *testing.T) {
	f := deploy(t)
	pod := f.d.Pod("clientapp-1")
	task := pod.Read("/app/task.json")
	pod.Write("/app/task.json", strings.Replace(task, `"in": 84`, `"in": 80`, 1))
	r := f.train()
	if r.Status != "finished:completed" || len(r.Rounds) != 3 || r.Rounds[2].Failures != 1 || r.Rounds[2].Results != 1 || r.Rounds[2].Accuracy > 0.8 {
		t.Errorf("got %+v", r)
	}
	for name, want := range map[string]string{
		"clientapp-1": "size mismatch for fc3.weight: [10 84] was sent, and the model has [10 80]",
		"serverapp":   "A node could not train",
	} {
		f.d.Pod(name).Await(want)
	}
	pod.Write("/app/task.json", task)
	if r := f.train(); r.Rounds[2].Failures != 0 {
		t.Errorf("afterwards: %+v", r)
	}
}
