package session

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// teller is an environment with telemetry.
type teller struct {
	*mortal
	export func(i agent.Interval) (string, error)
	asked  agent.Interval
}

func (e *teller) Export(_ context.Context, i agent.Interval) (string, error) {
	e.asked = i
	return e.export(i)
}

func (e *teller) Prepare(ctx context.Context, s Setting, tell Tell) (Admission, error) {
	tell(record.PhaseEvent, record.Phase{Name: injectingPhase})
	return e.mortal.Prepare(ctx, s, tell)
}

// keep runs a session that keeps telemetry, and returns its outcome.
func keep(t *testing.T, seed uint64, export func(agent.Interval) (string, error)) (*Outcome, *teller) {
	t.Helper()
	env := &teller{mortal: &mortal{done: make(chan struct{})}, export: export}
	s := Session{
		Problem: shopProblem(problem.Detection), Environment: env, Results: t.TempDir(), Telemetry: true, Seed: seed,
		Agent: agent.Entry{Name: "sure", New: func(agent.Briefing) (agent.Agent, error) {
			return agent.Func(func(context.Context, string) (string, error) { return agent.Call("submit", "Yes"), nil }), nil
		}},
	}
	o, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return o, env
}

func phases(t *testing.T, o *Outcome) string {
	t.Helper()
	rec, err := record.Read(o.Record)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range rec.Events {
		if e.Kind == record.PhaseEvent {
			var p record.Phase
			if err := e.Decode(&p); err != nil {
				t.Fatal(err)
			}
			list = append(list, p.Name)
		}
	}
	return strings.Join(list, ", ")
}

func TestTelemetryIsKept(t *testing.T) {
	var made string
	o, env := keep(t, 1, func(agent.Interval) (string, error) {
		made = filepath.Join(t.TempDir(), "telemetry_data_1")
		if err := os.MkdirAll(filepath.Join(made, "log"), 0o755); err != nil {
			return "", err
		}
		return made, os.WriteFile(filepath.Join(made, "log", "log_1.csv"), []byte("a,b\n"), 0o644)
	})
	if !strings.Contains(phases(t, o), "keeping the telemetry, agent") {
		t.Errorf("phases: %s", phases(t, o))
	}
	dir := TelemetryDir(o.Record)
	f, err := os.Open(filepath.Join(dir, "log", "log_1.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(z); string(b) != "a,b\n" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	b, err := os.ReadFile(filepath.Join(dir, TelemetryFile))
	if err != nil {
		t.Fatal(err)
	}
	var got Telemetry
	if err := json.Unmarshal(b, &got); err != nil || got.App != "shop" || len(got.Services) != 2 || got.Services[0].Calls[0] != "cart" {
		t.Errorf("%+v, %v", got, err)
	}
	before := got.To.Sub(got.From)
	if before < beforeInjection || before > beforeInjection+beforeSpread+time.Minute || env.asked.Step != telemetryStep {
		t.Errorf("%v before, asked for %+v", before, env.asked)
	}
	if _, err := os.Stat(made); err == nil {
		t.Error("what was made for it is still there")
	}
	_, other := keep(t, 2, func(agent.Interval) (string, error) { return "", errors.New("no") })
	if other.asked.To.Sub(other.asked.From).Round(time.Second) == before.Round(time.Second) {
		t.Error("it begins as long before the injection with another seed")
	}
}

// Telemetry that cannot be kept costs no verdict, and leaves nothing behind.
func TestTelemetryFails(t *testing.T) {
	for name, export := range map[string]func(agent.Interval) (string, error){
		"disk full": func(agent.Interval) (string, error) { return "", errors.New("no space left on device") },
		"gone":      func(agent.Interval) (string, error) { return filepath.Join(t.TempDir(), "absent"), nil },
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := keep(t, 1, export)
			if o.Verdict.Class == Infra || !strings.Contains(phases(t, o), "the telemetry is not kept: ") {
				t.Errorf("%+v, %s", o.Verdict, phases(t, o))
			}
			if _, err := os.Stat(TelemetryDir(o.Record)); err == nil {
				t.Error("something is left")
			}
		})
	}
}

// What is too much is not kept.
func TestPackIsBounded(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(from, name), []byte("1234"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := pack(t.Context(), from, to, 6); err == nil || !strings.Contains(err.Error(), "it is more than") {
		t.Errorf("it says %v", err)
	}
	if err := pack(t.Context(), from, t.TempDir(), 9); err != nil {
		t.Error(err)
	}
}
