package index

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/aiopslab/aiopslab/record"
)

// entry is what the file of an index has of a record.
type entry struct {
	File  file
	Error string // why it is not a record
	Run   Run

	passing bool // it could not be read now, which says nothing of later
}

// read learns what a record tells.
func read(dir string, name file) entry {
	e := entry{File: name}
	f, err := os.Open(filepath.Join(dir, filepath.FromSlash(name.Name)))
	if err != nil {
		e.Error, e.passing = err.Error(), true
		return e
	}
	defer f.Close()
	rec, err := record.Decode(f)
	if err == nil {
		e.Run, err = Of(rec)
	}
	if err != nil {
		_, e.passing = errors.AsType[*fs.PathError](err)
		e.Error = err.Error()
	}
	return e
}

// verdict is what an index needs of one. The package that makes it is above this one.
type verdict struct {
	Class   string `json:"class"`
	Why     string `json:"why"`
	Results struct {
		TTD    float64  `json:"TTD"`
		TTL    float64  `json:"TTL"`
		TTA    float64  `json:"TTA"`
		TTM    float64  `json:"TTM"`
		TTO    float64  `json:"TTO"`
		In     float64  `json:"in_tokens"`
		Out    float64  `json:"out_tokens"`
		Writes float64  `json:"writes"`
		Model  string   `json:"model"`
		Cost   *float64 `json:"cost_usd"`
		Safety struct {
			NoHarm *bool `json:"no_harm"`
		} `json:"safety"`
		Shift *shift `json:"shift"`
	} `json:"results"`
}

// shift is what a verdict says of one. Counts may be written as any number.
type shift struct {
	Score           float64           `json:"score"`
	MinutesLost     float64           `json:"minutes_lost"`
	Incidents       float64           `json:"incidents"`
	IncidentsMended float64           `json:"incidents_mended"`
	Pages           float64           `json:"pages"`
	PagesRight      float64           `json:"pages_right"`
	Needless        []json.RawMessage `json:"needless"`
	WorseSeconds    float64           `json:"worse_seconds"`
}

// Of returns what a record tells of its run; whoever read it knows the file.
func Of(rec *record.Record) (Run, error) {
	r := Run{
		ID: rec.ID, Agent: rec.Agent, Problem: rec.Problem, Seed: rec.Seed, Class: Unfinished, Begun: rec.Time.UTC(),
		Ended: rec.Time.UTC(),
	}
	for _, event := range rec.Events {
		if event.Time.After(r.Ended) {
			r.Ended = event.Time.UTC()
		}
		switch event.Kind {
		case record.StepEvent:
			r.Steps++
		case record.ProblemEvent:
			var p struct {
				Task   string   `json:"task"`
				App    string   `json:"app"`
				Faults []string `json:"faults"`
			}
			if err := event.Decode(&p); err != nil {
				return Run{}, err
			}
			r.Task, r.App, r.Faults = p.Task, p.App, p.Faults
		case record.IsolationEvent:
			var i record.Isolation
			if err := event.Decode(&i); err != nil {
				return Run{}, err
			}
			r.Isolation = i.Mode
		case record.VerdictEvent:
			var v verdict
			if err := event.Decode(&v); err != nil {
				return Run{}, err
			}
			r.take(v)
		}
	}
	return r, nil
}

// take takes the results of a verdict.
func (r *Run) take(v verdict) {
	r.Class, r.Why = v.Class, v.Why
	res := v.Results
	r.Seconds = max(res.TTD, res.TTL, res.TTA, res.TTM, res.TTO) // One of them, or of an incident the last.
	r.In, r.Out, r.Writes = int(res.In), int(res.Out), int(res.Writes)
	r.Model, r.Cost, r.NoHarm = res.Model, res.Cost, res.Safety.NoHarm
	if s := res.Shift; s != nil {
		r.Shift = &Shift{
			Score: s.Score, MinutesLost: s.MinutesLost, Incidents: int(s.Incidents),
			IncidentsMended: int(s.IncidentsMended), Pages: int(s.Pages), PagesRight: int(s.PagesRight),
			Needless: len(s.Needless), WorseSeconds: s.WorseSeconds,
		}
	}
}
