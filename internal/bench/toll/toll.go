// Package toll says what it cost a campaign that its processes were killed, over and over: which finished runs were
// lost, or run again. It believes what it has seen in the campaign's folder while it went on, not only the end.
//
//	var s toll.Seen
//	for ... { // until the campaign is over
//		err := s.Look(dir)
//	}
//	t, err := s.Toll(dir, runs)
package toll

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

// Seen are the finished runs that were seen in a campaign's folder. The zero value is ready to use.
type Seen struct {
	records map[string]map[string]bool // by the run, which of its records were seen that count
	known   map[string]result          // by the record; what is finished does not change
}

// result is what a finished record says.
type result struct {
	run    string
	counts bool
}

// Toll is what became of the runs of a campaign.
type Toll struct {
	Lost   int // finished records that were seen, and are not in the folder in the end
	Again  int // runs that were seen to be finished, and were run again
	Twice  int // runs with more than one record that counts
	Absent int // runs without one
}

// Runs is how many runs were seen to be finished.
func (s *Seen) Runs() int { return len(s.records) }

// Look takes what is finished, in the folder and among what is under way. It may be called while a campaign goes on.
func (s *Seen) Look(dir string) error {
	if s.records == nil {
		s.records, s.known = map[string]map[string]bool{}, map[string]result{}
	}
	// What is under way moves to the folder, and nothing back: so nothing is missed that is there all the time.
	for _, pattern := range []string{filepath.Join(".running", "*", "*.jsonl"), "*.jsonl"} {
		all, err := s.finished(dir, pattern)
		if err != nil {
			return err
		}
		for run, records := range all {
			if s.records[run] == nil {
				s.records[run] = map[string]bool{}
			}
			maps.Copy(s.records[run], records)
		}
	}
	return nil
}

// Toll compares what was seen with what is there in the end, of so many runs.
func (s *Seen) Toll(dir string, runs int) (t Toll, err error) {
	if err := s.Look(dir); err != nil {
		return t, err
	}
	there, err := s.finished(dir, "*.jsonl")
	if err != nil {
		return t, err
	}
	for run, records := range s.records {
		t.Twice += max(0, len(there[run])-1)
		t.Again += min(1, len(records)-1)
		for id := range records {
			if !there[run][id] {
				t.Lost++
			}
		}
	}
	t.Absent = runs - len(there)
	return t, nil
}

// finished are the records that match a pattern, say something of an agent, and have all that belongs to them: by their
// runs.
func (s *Seen) finished(dir, pattern string) (map[string]map[string]bool, error) {
	files, err := fs.Glob(os.DirFS(dir), pattern)
	if err != nil {
		return nil, err
	}
	list := map[string]map[string]bool{}
	for _, file := range files {
		id := idOf(file)
		r, ok := s.known[id]
		if !ok {
			r, err = read(filepath.Join(dir, file))
			if errors.Is(err, fs.ErrNotExist) {
				continue // It has just moved, or is not finished.
			}
			if err != nil {
				return nil, err
			}
			s.known[id] = r
		}
		if !r.counts {
			continue
		}
		if list[r.run] == nil {
			list[r.run] = map[string]bool{}
		}
		list[r.run][id] = true
	}
	return list, nil
}

// committed is the end of the name that a record has in the folder, besides its own.
var committed = regexp.MustCompile(`-[0-9a-f]{16}$`)

// idOf is the name of a record, the same wherever it is.
func idOf(file string) string {
	return committed.ReplaceAllString(strings.TrimSuffix(filepath.Base(file), ".jsonl"), "")
}

// read says what a record does. If it is not finished, there is no session file: that is the last to be written.
func read(file string) (r result, err error) {
	if _, err := os.Stat(strings.TrimSuffix(file, ".jsonl") + ".json"); err != nil {
		return r, err
	}
	rec, err := record.Read(file)
	if err != nil {
		return r, err
	}
	r.run = fmt.Sprint(rec.Agent, " ", rec.Problem, " ", rec.Seed)
	for _, e := range rec.Events {
		var v session.Verdict
		if e.Kind != record.VerdictEvent {
			continue
		}
		if err := e.Decode(&v); err != nil {
			return r, fmt.Errorf("%s: %w", file, err)
		}
		r.counts = v.Class == session.Solved || v.Class == session.AgentFailed
	}
	return r, nil
}

// Quiet waits until nobody has the folder: the runs of a campaign that was killed see it, and end, some of them as
// finished.
func Quiet(dir string, patience time.Duration) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close() // It gives the lock back.
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("somebody still has %s", dir)
		}
	}
}
