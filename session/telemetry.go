package session

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/app"
)

const (
	// beforeInjection is the shortest time before an injection that is kept, and beforeSpread by how much it may be
	// longer: that is drawn, so that the first sample does not tell when the fault came.
	beforeInjection = 8 * time.Minute
	beforeSpread    = 4 * time.Minute
	telemetryStep   = 5 * time.Second // that of the lab's Prometheus
	// telemetryTimeout is how long it may take, and maxTelemetry how many bytes it may be before it is compressed.
	telemetryTimeout = 2 * time.Minute
	maxTelemetry     = 512 << 20
)

// Telemetry is what a run has kept of what its system told until the agent's turn, in the file telemetry.json of
// [TelemetryDir]. Beside it are the tables of [observe.Observer.Export], each compressed by gzip.
type Telemetry struct {
	From      time.Time          `json:"from"`
	To        time.Time          `json:"to"`
	Step      float64            `json:"step_seconds"` // between samples of metrics
	App       string             `json:"app"`
	Namespace string             `json:"namespace"`
	Services  []TelemetryService `json:"services"`
}

// TelemetryService is a part of the application, and whom it calls by design.
type TelemetryService struct {
	Name  string   `json:"name"`
	Kind  string   `json:"kind,omitempty"`
	Calls []string `json:"calls,omitempty"`
}

// TelemetryFile is the name of the file that has a [Telemetry].
const TelemetryFile = "telemetry.json"

// TelemetryDir is the directory of the telemetry that belongs to a record.
func TelemetryDir(record string) string { return strings.TrimSuffix(record, ".jsonl") + ".telemetry" }

// keepTelemetry keeps what the system told until now. The agent is not there yet, so that none of it is its doing. That
// it fails is no reason to lose the run: nothing of it is left then, and the record says why.
func (r *run) keepTelemetry(ctx context.Context) {
	r.phase("keeping the telemetry")
	dir := TelemetryDir(r.file)
	err := r.writeTelemetry(ctx, dir)
	if err == nil {
		return
	}
	_ = os.RemoveAll(dir) // At once: if the disk is full, the record needs the space.
	if ctx.Err() == nil {
		r.phase("the telemetry is not kept: " + err.Error())
	}
}

func (r *run) writeTelemetry(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, telemetryTimeout,
		fmt.Errorf("it took more than %v", telemetryTimeout))
	defer cancel()
	t := r.telemetry(time.Now())
	made, err := r.Environment.Export(ctx, agent.Interval{From: t.From, To: t.To, Step: telemetryStep, Services: true})
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return err
	}
	defer os.RemoveAll(made)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := pack(ctx, made, dir, maxTelemetry); err != nil {
		return err
	}
	b, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, TelemetryFile), append(b, '\n'), 0o644) // Last: with it, it is whole.
}

// telemetry is what is to be kept at a moment.
func (r *run) telemetry(now time.Time) Telemetry {
	r.mu.Lock()
	injecting := r.injecting
	r.mu.Unlock()
	if injecting.IsZero() {
		injecting = now
	}
	draw := rand.New(rand.NewPCG(r.Seed, 0x74656c65))
	before := beforeInjection + time.Duration(draw.Int64N(int64(beforeSpread)))
	a := r.Problem.App
	t := Telemetry{
		From: injecting.Add(-before).UTC().Truncate(telemetryStep), To: now.UTC(), Step: telemetryStep.Seconds(),
		App: a.Name, Namespace: a.Namespace, Services: servicesOf(a),
	}
	return t
}

func servicesOf(a *app.App) (list []TelemetryService) {
	for _, s := range a.Services {
		list = append(list, TelemetryService{s.Name, s.Kind, s.Calls})
	}
	return list
}

// pack copies the tables below a directory into another one, compressed.
func pack(ctx context.Context, from, to string, most int64) error {
	return filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		relative, err := filepath.Rel(from, name)
		if err != nil || relative == "." {
			return err
		}
		target := filepath.Join(to, relative)
		if d.IsDir() {
			return os.Mkdir(target, 0o755)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		n, err := packFile(name, target+".gz", most)
		if most -= n; err == nil && most <= 0 {
			err = fmt.Errorf("it is more than %d MiB", maxTelemetry>>20)
		}
		return err
	})
}

// packFile compresses a file, and returns how long it was. It reads no more than a byte over the limit.
func packFile(from, to string, most int64) (n int64, err error) {
	in, err := os.Open(from)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return 0, err
	}
	z := gzip.NewWriter(out)
	n, err = io.Copy(z, io.LimitReader(in, most+1))
	return n, errors.Join(err, z.Close(), out.Close())
}
