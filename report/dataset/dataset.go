package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/aiopslab/aiopslab/report/export"
	"github.com/aiopslab/aiopslab/session"
)

// ErrNone is the error of a run that has kept no telemetry.
var ErrNone = errors.New("the run has kept no telemetry; 'aiopslab run --keep-telemetry' does")

// The parts of a data set.
const (
	casesDir   = "cases"
	truthDir   = "truth"
	rcaevalDir = "rcaeval"
)

// Set is a data set that cases are added to.
type Set struct {
	Dir string
}

// Add makes a case of a run.
func (s *Set) Add(r *export.Run) error {
	if err := s.add(r); err != nil {
		return fmt.Errorf("%s: %w", r.File, err)
	}
	return nil
}

func (s *Set) add(r *export.Run) error {
	id := r.Record.ID
	if !filepath.IsLocal(id) || filepath.Base(id) != id {
		return fmt.Errorf("the run's id %q is no name for a directory", id)
	}
	src, err := open(session.TelemetryDir(r.File))
	if err != nil {
		return err
	}
	t, err := truthOf(r)
	if err != nil {
		return err
	}
	if err := s.put(filepath.Join(casesDir, id), func(dir string) error { return src.write(dir) }); err != nil {
		return err
	}
	if err := s.put(filepath.Join(truthDir, id), t.write); err != nil {
		return err
	}
	return s.link(id, t)
}

// put makes a directory of the set, whole or not at all.
func (s *Set) put(name string, fill func(dir string) error) error {
	target := filepath.Join(s.Dir, name)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(target), ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // It is gone if all went well.
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	if err := fill(dir); err != nil {
		return err
	}
	if err := os.RemoveAll(target); err != nil {
		return err
	}
	return os.Rename(dir, target)
}

// source is the telemetry that a run has kept.
type source struct {
	session.Telemetry
	dir string
}

func open(dir string) (*source, error) {
	b, err := os.ReadFile(filepath.Join(dir, session.TelemetryFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	} else if err != nil {
		return nil, err
	}
	src := &source{dir: dir}
	if err := json.Unmarshal(b, &src.Telemetry); err != nil {
		return nil, fmt.Errorf("%s: %w", session.TelemetryFile, err)
	}
	if src.Step <= 0 || !src.To.After(src.From) || src.rows() > maxRows {
		return nil, fmt.Errorf("%s: it has no time that makes sense", session.TelemetryFile)
	}
	return src, nil
}

// maxRows is more than any run is long.
const maxRows = 1 << 16

// rows are how many moments the metrics have.
func (src *source) rows() int { return int(src.To.Sub(src.From).Seconds()/src.Step) + 1 }

// write makes the files of a case.
func (src *source) write(dir string) error {
	m := newMetrics(src)
	if err := src.writeTraces(filepath.Join(dir, "traces.csv")); err != nil {
		return err
	}
	if err := src.readSamples(m); err != nil {
		return err
	}
	if err := src.readServices(m); err != nil {
		return err
	}
	m.noErrors()
	if err := m.write(filepath.Join(dir, "metrics.csv"), false); err != nil {
		return err
	}
	if err := m.write(filepath.Join(dir, "simple_metrics.csv"), true); err != nil {
		return err
	}
	if err := src.writeLogs(filepath.Join(dir, "logs.csv")); err != nil {
		return err
	}
	return writeJSON(filepath.Join(dir, "topology.json"), struct {
		App      string                     `json:"app"`
		Services []session.TelemetryService `json:"services"`
	}{src.App, src.Services})
}

func writeJSON(file string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o644)
}
