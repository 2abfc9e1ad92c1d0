// Package index knows the runs of a directory without reading all of their records again: who ran what, how it came
// out and what it took, one [Run] for each record.
//
//	x, err := index.Open("results", index.Options{Cache: dir})
//	for _, r := range x.Runs { ... }
//
// Everything in it comes from the records, and can be made of them anew. What was learned is kept in one file for each
// directory, below a cache directory of the user's own: nobody who hands over a directory of records can hand over an
// index that says something else. What the file says of a record counts only if size, time and, where the system
// tells, the time of the last change of its inode are still those it had when it was read. A file that is torn, of
// another version or of another directory counts as none. Where no file can be written, the index is in memory alone.
package index

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Run is what is known of a run.
type Run struct {
	ID      string   `json:"id"`
	Problem string   `json:"problem,omitempty"` // empty until the agent is done
	Task    string   `json:"task,omitempty"`
	App     string   `json:"app,omitempty"`
	Faults  []string `json:"faults,omitempty"` // kind and target
	Agent   string   `json:"agent"`
	Model   string   `json:"model,omitempty"`
	Seed    uint64   `json:"seed,omitempty"`
	// Isolation is what kept the run apart from others, as [record.Isolation] has it. A record that does not say is of
	// a run in an environment that was not to be kept, or from before records said so.
	Isolation string `json:"isolation,omitempty"`
	// Class says how it ended; it is [Unfinished] without a verdict. Why is in one line.
	Class   string    `json:"class"`
	Why     string    `json:"why,omitempty"`
	Begun   time.Time `json:"begun"`
	Ended   time.Time `json:"ended"`   // the time of the last event
	Seconds float64   `json:"seconds"` // from when the fault showed to the submission
	Steps   int       `json:"steps"`
	Writes  int       `json:"writes"` // of the agent
	// In and Out are tokens as AIOpsLab counts them, and Cost is nil if it is not known.
	In   int      `json:"in_tokens"`
	Out  int      `json:"out_tokens"`
	Cost *float64 `json:"cost_usd,omitempty"`
	// NoHarm says whether the run did no harm to the system, solved or not; nil if its verdict does not tell.
	NoHarm *bool  `json:"no_harm,omitempty"`
	Shift  *Shift `json:"shift,omitempty"` // nil if the run is none, or its verdict does not tell
	File   string `json:"file"`            // the record
}

// Shift is what a shift came to.
type Shift struct {
	Score           float64 `json:"score"` // from 0 to 100
	MinutesLost     float64 `json:"minutes_lost"`
	Incidents       int     `json:"incidents"`
	IncidentsMended int     `json:"incidents_mended"`
	Pages           int     `json:"pages"`
	PagesRight      int     `json:"pages_right"` // answered rightly
	Needless        int     `json:"needless"`    // writes to what no incident was about
	WorseSeconds    float64 `json:"worse_seconds"`
}

// Contestant is who ran: the agent, with its model if it has one.
func (r *Run) Contestant() string {
	if r.Model == "" {
		return r.Agent
	}
	return fmt.Sprintf("%s (%s)", r.Agent, r.Model)
}

// Unfinished is the class of a run without a verdict: it is under way, or its process was killed.
const Unfinished = "unfinished"

// Unreadable is a file that is named like a record and cannot be read as one.
type Unreadable struct {
	File string `json:"file"`
	Why  string `json:"why"`
}

// Index is what is known of the runs of a directory.
type Index struct {
	Dir        string
	Runs       []Run // the oldest first
	Unreadable []Unreadable
	// Read is how many records had to be read because the file of the index did not know them, or not as they are now.
	Read int
}

// Options say how an index is kept.
type Options struct {
	// Cache is the directory for the files of indexes, which is made if need be. Empty keeps nothing.
	Cache string

	now func() time.Time // for tests
}

// settled is how long a record must have been as it is before the index is believed to know it: a file system may give
// two changes that follow each other the same time.
const settled = 2 * time.Second

// Open returns the index of a directory and of all below it. It reads the records that it does not know yet.
func Open(dir string, o Options) (*Index, error) {
	if o.now == nil {
		o.now = time.Now
	}
	files, err := list(dir)
	if err != nil {
		return nil, err
	}
	x := &Index{Dir: dir}
	s := store{cache: o.Cache, dir: dir}
	known := s.load()
	entries := make([]entry, len(files))
	var fresh []int
	for i, f := range files {
		if e, ok := known[f.Name]; ok && e.File == f {
			entries[i] = e
			continue
		}
		fresh = append(fresh, i)
	}
	x.Read = len(fresh)
	now := o.now()
	each(fresh, func(i int) { entries[i] = read(dir, files[i]) })
	if len(fresh) > 0 || len(known) != len(files) {
		s.save(slices.DeleteFunc(slices.Clone(entries), func(e entry) bool {
			return e.passing || e.File.last().After(now.Add(-settled))
		}))
	}
	for _, e := range entries {
		path := filepath.Join(dir, filepath.FromSlash(e.File.Name))
		if e.Error != "" {
			x.Unreadable = append(x.Unreadable, Unreadable{path, e.Error})
			continue
		}
		e.Run.File = path
		x.Runs = append(x.Runs, e.Run)
	}
	slices.SortStableFunc(x.Runs, func(a, b Run) int {
		return cmp.Or(a.Begun.Compare(b.Begun), cmp.Compare(a.ID, b.ID), cmp.Compare(a.File, b.File))
	})
	return x, nil
}

// Find returns the run with an id, or all whose ids begin with it.
func (x *Index) Find(id string) (found []Run) {
	for _, r := range x.Runs {
		if r.ID == id {
			return []Run{r}
		}
		if strings.HasPrefix(r.ID, id) {
			found = append(found, r)
		}
	}
	return found
}

// file is a record as it was when it was read.
type file struct {
	Name     string // its path below the directory, with slashes
	Size     int64
	Modified int64 // in Unix nanoseconds
	Changed  int64 // the inode; 0 where the system does not tell
}

// last is when the file was changed last.
func (f file) last() time.Time { return time.Unix(0, max(f.Modified, f.Changed)) }

// list lists the records of a directory and of those below it. Links are followed to files, not to directories.
func list(dir string) (files []file, err error) {
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".jsonl") {
			return err
		}
		info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil || !info.Mode().IsRegular() {
			return nil // It has gone, leads nowhere, or would never end.
		}
		files = append(files, file{name, info.Size(), info.ModTime().UnixNano(), changed(info)})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return files, nil
}

// each does something for all numbers of a list, on all processors.
func each(list []int, do func(int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(runtime.GOMAXPROCS(0), len(list)) {
		wg.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for _, i := range list {
		next <- i
	}
	close(next)
	wg.Wait()
}
