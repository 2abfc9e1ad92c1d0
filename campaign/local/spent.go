package local

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/aiopslab/aiopslab/record"
)

const (
	// retriedSuffix is of records that another try has replaced.
	retriedSuffix = ".retried"
	// cutSuffix is of the records of tries that say nothing, but had spent something before they were cut off.
	cutSuffix = ".cut"
)

// spent is what all tries in the folder have cost: those that are known, and those whose records count no more.
func (f *Folder) spent(past map[string][]*Result) (sum float64, err error) {
	for _, tries := range past {
		for _, r := range tries {
			sum += r.Cost
		}
	}
	entries, err := os.ReadDir(f.Dir)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		file, cost := filepath.Join(f.Dir, e.Name()), 0.
		switch filepath.Ext(file) {
		case retriedSuffix:
			var r *Result
			if r, err = readResult(file); err == nil {
				cost = r.Cost
			}
		case cutSuffix:
			cost, err = spentIn(file)
		}
		if err != nil {
			return 0, fmt.Errorf("%w; remove it to forget what it has cost", err)
		}
		sum += cost
	}
	return sum, nil
}

// spentIn is what the models of a record have cost, as far as it goes: its writer may have been killed at any point.
func spentIn(file string) (sum float64, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(b) {
		var e record.Event
		if json.Unmarshal(line, &e) != nil || e.Kind != record.ModelEvent {
			continue
		}
		var exchange struct {
			Cost float64 `json:"cost_usd"`
		}
		if e.Decode(&exchange) == nil {
			sum += exchange.Cost
		}
	}
	return sum, nil
}

// drop takes away what is left of a try that says nothing, and returns what it had spent. If that is anything its
// record stays in the folder, under a name by which it is no record of a run.
func (f *Folder) drop(dir string) (cost float64, err error) {
	if file := recordIn(dir); file != "" {
		if cost, err = spentIn(file); err == nil && cost > 0 {
			err = os.Rename(file, filepath.Join(f.Dir, filepath.Base(file)+cutSuffix))
		}
		if err != nil {
			return 0, err
		}
	}
	return cost, os.RemoveAll(dir)
}
