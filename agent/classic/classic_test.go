package classic

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/internal/term"
	"github.com/aiopslab/aiopslab/problem"
)

// system is a made-up application of three services and a database, of which one may be ill.
type system struct {
	seed uint64
	ill  string // the service
	how  string // "cpu", "slow", "failing" or "gone"
}

var (
	healthyTime = agent.Interval{From: time.Unix(1_700_000_000, 0), To: time.Unix(1_700_000_060, 0)}
	nowTime     = agent.Interval{From: time.Unix(1_700_000_070, 0), To: time.Unix(1_700_000_100, 0)}
	chain       = []string{"frontend", "search", "geo", "mongodb-geo"} // each calls the next
)

// tables are the files of an export.
type tables map[string][][]string

// export makes the telemetry of an interval.
func (s system) export(i agent.Interval) tables {
	r := rand.New(rand.NewPCG(s.seed, uint64(i.From.Unix())))
	about := func(v float64) float64 { return v * (1 + 0.05*r.NormFloat64()) }
	t := tables{
		"trace/traces_1.csv": {{"trace_id", "span_id", "parent_span", "service_name", "operation_name", "start_time", "duration", "has_error", "response"}},
		"log/log_1.csv":      {{"log_id", "timestamp", "date", "pod_name", "container_name", "namespace", "node_name", "message"}},
	}
	for _, m := range []string{"container_cpu_usage_seconds_total", "container_memory_usage_bytes", "container_network_receive_bytes_total", "container_threads"} {
		file := "metric/container/kpi_" + m + ".csv"
		t[file] = [][]string{{"timestamp", "cmdb_id", "kpi_name", "value"}}
		for _, service := range chain {
			total := 100.0
			for at := i.From; !at.After(i.To); at = at.Add(15 * time.Second) {
				value := 0.0
				switch m {
				case "container_cpu_usage_seconds_total":
					total += 15 * about(s.pick(service, "cpu", 1.9, 0.1))
					value = total
				case "container_memory_usage_bytes":
					value = about(s.pick(service, "cpu", 400e6, 60e6))
				case "container_network_receive_bytes_total":
					total += 15 * about(s.pick(service, "failing", 100, 20e3))
					value = total
				default:
					value = s.pick(service, "cpu", 80, 12)
				}
				if s.is(service, "gone") {
					continue
				}
				t[file] = append(t[file], []string{fmt.Sprint(at.Unix()), "10.0.0.1:10250." + service + "-6c4f8bd9f-x2zbk", m, fmt.Sprint(value)})
			}
		}
	}
	for at := i.From; at.Before(i.To); at = at.Add(100 * time.Millisecond) {
		s.request(t, at, about)
	}
	return t
}

func (s system) is(service, how string) bool { return s.ill == service && s.how == how }

func (s system) pick(service, how string, ill, well float64) float64 {
	if s.is(service, how) {
		return ill
	}
	return well
}

// request goes down the chain of services, and leaves spans and lines.
func (s system) request(t tables, at time.Time, about func(float64) float64) {
	id, below, failed := fmt.Sprint(at.UnixNano()), 0.0, false
	log := func(service, text string) {
		t["log/log_1.csv"] = append(t["log/log_1.csv"], []string{"1", fmt.Sprint(at.Unix()), "", service + "-6c4f8bd9f-x2zbk", service, "ns", "node", text})
	}
	for n := len(chain) - 1; n >= 0; n-- {
		service, parent := chain[n], "ROOT"
		if n > 0 {
			parent = fmt.Sprint(n - 1)
		}
		if s.is(service, "gone") {
			failed = true // It has no spans and no logs; its caller notices.
			continue
		}
		failed = failed || s.is(service, "failing")
		below += about(s.pick(service, "slow", 0.8, 0.005)) + s.pick(service, "cpu", 0.2, 0)
		has := map[bool]string{true: "True", false: "False"}[failed]
		t["trace/traces_1.csv"] = append(t["trace/traces_1.csv"], []string{id, fmt.Sprint(n), parent, service, "call", fmt.Sprint(at.UnixMicro()), fmt.Sprint(int(below * 1e6)), has, "Unknown"})
		switch {
		case s.is(service, "failing"):
			log(service, fmt.Sprintf("request %s: error: not authorized", id))
		case s.is(service, "cpu"):
			log(service, "queue is long")
		default:
			log(service, fmt.Sprintf("request %s served in %d us", id, int(below*1e6)))
		}
	}
}

func (t tables) write(tb testing.TB, dir string) string {
	tb.Helper()
	for name, rows := range t {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			tb.Fatal(err)
		}
		f, err := os.Create(file)
		if err != nil {
			tb.Fatal(err)
		}
		if err := errors.Join(csv.NewWriter(f).WriteAll(rows), f.Close()); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

// telemetry is both exports of a system that fell ill between them.
func (s system) telemetry(tb testing.TB) (healthy, now *telemetry) {
	tb.Helper()
	healthy, err := load(system{seed: s.seed}.export(healthyTime).write(tb, tb.TempDir()), healthyTime)
	if err != nil {
		tb.Fatal(err)
	}
	if now, err = load(s.export(nowTime).write(tb, tb.TempDir()), nowTime); err != nil {
		tb.Fatal(err)
	}
	return healthy, now
}

var methods = map[string]method{"mksmc": mksmc, "pdiagnose": pdiagnose, "rmlad": rmlad}

func TestFinds(t *testing.T) {
	for _, s := range []struct {
		system
		localizers string // who is to find the place
	}{
		{system{1, "geo", "cpu"}, "mksmc pdiagnose rmlad"},
		{system{2, "search", "slow"}, "pdiagnose"}, // No log says so.
		{system{3, "geo", "failing"}, "pdiagnose rmlad"},
		{system{4, "mongodb-geo", "gone"}, "rmlad"}, // Most votes are for those who miss it.
	} {
		t.Run(s.ill+" "+s.how, func(t *testing.T) {
			healthy, now := s.telemetry(t)
			if got := mksmc(healthy, now); len(got) == 0 {
				t.Error("mksmc detects nothing")
			}
			for _, name := range strings.Fields(s.localizers) {
				if got := methods[name](healthy, now); len(got) == 0 || got[0] != s.ill {
					t.Errorf("%s: %v", name, got)
				}
			}
		})
	}
}

// A system that is well is found well, whatever its noise.
func TestNoAnomaly(t *testing.T) {
	for seed := range uint64(12) {
		healthy, now := system{seed: seed}.telemetry(t)
		for name, m := range methods {
			if got := m(healthy, now); len(got) > 0 {
				t.Errorf("%s, seed %d: %v", name, seed, got)
			}
		}
	}
}

// The same exports give the same answer.
func TestDeterministic(t *testing.T) {
	healthy, now := system{5, "geo", "failing"}.telemetry(t)
	for name, m := range methods {
		first := m(healthy, now)
		for range 8 {
			if got := m(healthy, now); !slices.Equal(got, first) {
				t.Fatalf("%s: %v, then %v", name, first, got)
			}
		}
	}
}

func TestBadExports(t *testing.T) {
	const metric = "metric/container/kpi_container_threads.csv"
	for _, tt := range []struct {
		name, file, content, want string
	}{
		{"no metrics", "", "", "has no metrics in it"},
		{"only a header", metric, "timestamp,cmdb_id,kpi_name,value\n", "has no metrics in it"},
		{"an empty file", metric, "", "the file is empty"},
		{"another table", metric, "a,b\n1,2\n", "no column timestamp"},
		{"a row too short", metric, "timestamp,cmdb_id,kpi_name,value\n1,a.b,c,2\n1,2\n", "wrong number of fields"},
		{"no number", metric, "timestamp,cmdb_id,kpi_name,value\n1,a.b,c,many\n", "line 2: "},
		{"no time", "log/log_1.csv", "timestamp,pod_name,message\nnow,p,hello\n", "log_1.csv: line 2: "},
		{"no duration", "trace/traces_1.csv", "trace_id,span_id,parent_span,service_name,operation_name,start_time,duration,has_error\na,b,ROOT,s,o,1,long,True\n", "traces_1.csv: line 2: "},
		{"a quote that does not end", metric, "timestamp,cmdb_id,kpi_name,value\n1,\"a.b,c,2\n", "kpi_container_threads.csv: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if tt.file != "" {
				file := filepath.Join(dir, tt.file)
				if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(tt.content), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := load(dir, healthyTime); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// Metrics alone, or a system that is no more, are telemetry as well.
func TestSparse(t *testing.T) {
	healthy, _ := system{seed: 1}.telemetry(t)
	one := &telemetry{from: nowTime.From, to: nowTime.To, samples: []sample{{nowTime.From.Unix(), "geo-0", "geo", "container_threads", 1}}}
	none := &telemetry{from: nowTime.From, to: nowTime.To}
	for name, m := range methods {
		for _, now := range []*telemetry{one, none} {
			if got := m(healthy, now); len(got) == 0 {
				t.Errorf("%s: a system that is gone is well", name)
			}
			m(now, healthy)
			if got := m(now, now); len(got) > 0 {
				t.Errorf("%s: nothing changed, but %v", name, got)
			}
		}
	}
}

func TestServiceOf(t *testing.T) {
	for pod, want := range map[string]string{
		"geo-6c4f8bd9f-x2zbk": "geo", "mongodb-geo-7d9c6bcf54-q8vlt": "mongodb-geo", "kafka-0": "kafka", "geo": "geo", "user-service-5f8bdf4c7-2xw4z": "user-service",
	} {
		if got := serviceOf(pod); got != want {
			t.Errorf("%s: %s, want %s", pod, got, want)
		}
	}
}

// brief is the briefing of a run on a made-up system, whose healthy time is over now. An export takes
// a while, and what it does to the system must not be taken for an anomaly.
func brief(t *testing.T, s system, task problem.Task) (b agent.Briefing, exported *time.Time) {
	healthy := agent.Interval{From: time.Now().Add(-time.Minute), To: time.Now()}
	var exporting time.Time
	exported = new(time.Time)
	return agent.Briefing{
		Task: task, Healthy: healthy,
		Export: func(_ context.Context, i agent.Interval) (string, error) {
			if exporting.IsZero() {
				exporting = time.Now()
			}
			time.Sleep(10 * time.Second)
			*exported = time.Now()
			if i.To.After(exporting) {
				t.Errorf("what is compared goes on for %v after the first export", i.To.Sub(exporting))
			}
			if i == healthy {
				return system{seed: s.seed}.export(i).write(t, t.TempDir()), nil
			}
			if i.From.Before(healthy.To) {
				t.Errorf("what is compared begins before the healthy time ends, by %v", healthy.To.Sub(i.From))
			}
			return s.export(i).write(t, t.TempDir()), nil
		},
	}, exported
}

func TestAct(t *testing.T) {
	ill, well := system{1, "geo", "cpu"}, system{seed: 1}
	for _, tt := range []struct {
		system
		task problem.Task
		want string
	}{
		{ill, problem.Detection, "[Yes]"},
		{well, problem.Detection, "[No]"},
		{ill, problem.Localization, "[[geo]]"},
		{well, problem.Localization, "[[]]"},
		{ill, problem.Analysis, "[map[]]"},
		{ill, problem.Mitigation, "[]"},
	} {
		for _, e := range Entries() {
			synctest.Test(t, func(t *testing.T) {
				b, exported := brief(t, tt.system, tt.task)
				a, err := e.New(b)
				if err != nil {
					t.Fatal(err)
				}
				response, err := a.Act(t.Context(), "")
				if err != nil {
					t.Fatal(err)
				}
				if idle := time.Since(*exported); !exported.IsZero() && idle < rest {
					t.Errorf("%s submits %v after an export", e.Name, idle)
				}
				call, err := aci.Parse(response)
				if err != nil || call.Name != "submit" || fmt.Sprint(call.Args) != tt.want {
					t.Errorf("%s, %s: %v, %v, want %s", e.Name, tt.task, call, err, tt.want)
				}
				for _, action := range aci.Actions(string(tt.task)) {
					if action.Name == call.Name && len(action.Params) != len(call.Args) {
						t.Errorf("%s, %s: %d arguments, want %d", e.Name, tt.task, len(call.Args), len(action.Params))
					}
				}
			})
		}
	}
}

// On call it waits for the pager, looks whenever that calls, however it is told, and names whom it suspects then. The
// healthy system is exported once.
func TestOnCall(t *testing.T) {
	for _, e := range Entries() {
		synctest.Test(t, func(t *testing.T) {
			b, _ := brief(t, system{}, problem.OnCall)
			now, healthy := system{}, 0
			b.Export = func(_ context.Context, i agent.Interval) (string, error) {
				if i == b.Healthy {
					healthy++
					return system{seed: 1}.export(i).write(t, t.TempDir()), nil
				}
				return now.export(i).write(t, t.TempDir()), nil
			}
			a, err := e.New(b)
			if err != nil {
				t.Fatal(err)
			}
			for i, tt := range []struct {
				system
				observation, want string
			}{
				{system{1, "geo", "cpu"}, "", "[]"},
				{system{1, "geo", "cpu"}, "SubmissionStatus.VALID_SUBMISSION\n\nPage 1:\n    it fails\n", "[[geo"},
				{system{seed: 1}, "\nPage 2:\n    a user complains\n", "[[]]"},
				{system{1, "geo", "cpu"}, "There is no page yet.", "[]"},
				{system{1, "search", "cpu"}, "\nPage 3:\n    it fails\n", "[[search"},
			} {
				now = tt.system
				response, err := a.Act(t.Context(), tt.observation+"\n"+aci.NextAction)
				if err != nil {
					t.Fatal(err)
				}
				call, err := aci.Parse(response)
				if err != nil || call.Name != "submit" || !strings.HasPrefix(fmt.Sprint(call.Args), tt.want) {
					t.Errorf("%s, %d: %v, %v, want %s", e.Name, i, call, err, tt.want)
				}
				time.Sleep(time.Minute)
			}
			if healthy != 1 {
				t.Errorf("%s exported the healthy system %d times", e.Name, healthy)
			}
		})
	}
}

// In an incident the system is looked at once, and what was seen answers the questions one after another.
func TestIncident(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, exported := brief(t, system{1, "geo", "cpu"}, problem.Incident)
		a, err := Entries()[0].New(b)
		if err != nil {
			t.Fatal(err)
		}
		var looked time.Time
		observation := aci.NextAction
		for i, want := range []string{"[Yes]", "[[geo]]", "[map[]]", "[]"} {
			response, err := a.Act(t.Context(), observation)
			if err != nil {
				t.Fatal(err)
			}
			if call, err := aci.Parse(response); err != nil || fmt.Sprint(call.Args) != want {
				t.Errorf("%v, %v, want %s", call, err, want)
			}
			if i == 0 {
				looked = *exported
			}
			observation = aci.Ask(term.Questions[min(i+1, 3)])
		}
		if looked != *exported {
			t.Error("it looked again")
		}
	})
}

// Waiting ends with the run.
func TestActCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := brief(t, system{}, problem.Detection)
		a, err := Entries()[0].New(b)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := a.Act(ctx, ""); !errors.Is(err, context.DeadlineExceeded) || time.Since(b.Healthy.To) != time.Second {
			t.Errorf("%v after %v", err, time.Since(b.Healthy.To))
		}
	})
}

// Telemetry that cannot be had is not the agent's fault.
func TestActWithoutTelemetry(t *testing.T) {
	for name, export := range map[string]func(context.Context, agent.Interval) (string, error){
		"fails": func(context.Context, agent.Interval) (string, error) { return "", errors.New("no Prometheus") },
		"empty": func(context.Context, agent.Interval) (string, error) { return t.TempDir(), nil },
	} {
		a, err := Entries()[0].New(agent.Briefing{Task: problem.Detection, Export: export})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Act(t.Context(), ""); !errors.Is(err, agent.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
