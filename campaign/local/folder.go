package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

const (
	// runningName is the directory of what is under way.
	runningName = ".running"
	// whoName is the file that says who works in such a directory. It does not say on what.
	whoName = "who.json"
	// settingsName is the file that says how the runs of a folder are run.
	settingsName = "campaign.json"

	// lockPatience is for how long a folder may be somebody else's. Runs of a campaign that was killed end sooner.
	lockPatience = 2 * time.Minute
	lockInterval = 50 * time.Millisecond
)

// ErrSettings says that a folder has runs that were run in another way.
var ErrSettings = errors.New("other settings")

// Folder is the records of a campaign. It belongs to one process at a time.
type Folder struct {
	Dir  string
	lock *os.File
}

// Open takes a folder, which is made if there is none, and what earlier runs there have finished. If it is somebody
// else's it waits for a while, and waits is told so. Waits may be nil.
func Open(ctx context.Context, dir string, waits func()) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f := &Folder{Dir: dir}
	var err error
	if f.lock, err = os.Open(dir); err != nil {
		return nil, err
	}
	if err := f.take(ctx, waits); err != nil {
		f.lock.Close()
		return nil, err
	}
	if err := f.adopt(); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// take locks the folder.
func (f *Folder) take(ctx context.Context, waits func()) error {
	ctx, cancel := context.WithTimeoutCause(ctx, lockPatience,
		fmt.Errorf("another campaign uses %s: wait for it to end, or choose another folder", f.Dir))
	defer cancel()
	for first := true; ; first = false {
		err := syscall.Flock(int(f.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		if first && waits != nil {
			waits()
		}
		select {
		case <-time.After(lockInterval):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Close gives the folder back.
func (f *Folder) Close() {
	_ = os.Remove(filepath.Join(f.Dir, runningName)) // It stays if something is in it.
	f.lock.Close()
}

// hold refuses settings that are not those of the runs that are there.
func (f *Folder) hold(settings []string) error {
	var there struct {
		Settings []string `json:"settings"`
	}
	file := filepath.Join(f.Dir, settingsName)
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		there.Settings = settings
		if b, err = json.MarshalIndent(there, "", "  "); err != nil {
			return err
		}
		return writeWhole(file, append(b, '\n'))
	}
	if err == nil {
		err = json.Unmarshal(b, &there)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if !slices.Equal(there.Settings, settings) {
		return fmt.Errorf("%w: the runs in %s have %s, not %s", ErrSettings, f.Dir, strings.Join(there.Settings, " "),
			strings.Join(settings, " "))
	}
	return nil
}

// writeWhole writes a file that is there only when it is whole.
func writeWhole(file string, data []byte) error {
	draft := file + ".draft"
	if err := os.WriteFile(draft, data, 0o644); err != nil {
		return err
	}
	return os.Rename(draft, file)
}

// desk makes a directory for a try.
func (f *Folder) desk(who Contestant) (string, error) {
	dir, err := os.MkdirTemp(filepath.Join(f.Dir, runningName), "")
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(who)
	if err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, whoName), b, 0o644)
}

// adopt takes what runs of an earlier campaign have finished that nobody waited for. Of the rest only what it has cost
// is kept: a run that was interrupted, or cut off, tells nothing, and it was not its fault.
func (f *Folder) adopt() error {
	running := filepath.Join(f.Dir, runningName)
	if err := os.MkdirAll(running, 0o755); err != nil { // Who had the folder before may have removed it.
		return err
	}
	entries, err := os.ReadDir(running)
	if err != nil {
		return err
	}
	var past map[string][]*Result
	for _, e := range entries {
		dir := filepath.Join(running, e.Name())
		var who Contestant
		b, err := os.ReadFile(filepath.Join(dir, whoName))
		if err == nil && json.Unmarshal(b, &who) == nil {
			if past == nil {
				if past, err = f.past(); err != nil {
					return err
				}
			}
			if err := f.adoptOne(dir, who, past); err != nil {
				return err
			}
		}
		if _, err := f.drop(dir); err != nil {
			return err
		}
	}
	return nil
}

func (f *Folder) adoptOne(dir string, who Contestant, past map[string][]*Result) error {
	file := recordIn(dir)
	if file == "" {
		return nil
	}
	rec, err := record.Read(file)
	if err != nil || rec.Problem == "" {
		return nil // It was cut off.
	}
	run := Run{who.Agent, who.Model, rec.Problem, rec.Seed}
	r, err := readResult(file)
	if err != nil || !r.Counts() || !exists(sessionFile(file)) && !exists(sessionFile(f.name(file, run))) {
		return nil
	}
	replaces := ""
	for _, old := range past[run.key()] {
		if old.Counts() { // It was retried.
			replaces = old.Record
		}
	}
	_, err = f.commit(file, run, replaces)
	return err
}

// name is the name that a record gets in the folder.
func (f *Folder) name(file string, run Run) string {
	return filepath.Join(f.Dir, strings.TrimSuffix(filepath.Base(file), ".jsonl")+"-"+run.key()+".jsonl")
}

// commit takes a finished run into the folder, in place of one that it replaces, if any. It may be cut off at any point
// and be done again.
func (f *Folder) commit(file string, run Run, replaces string) (string, error) {
	name := f.name(file, run)
	err := os.Rename(session.TelemetryDir(file), session.TelemetryDir(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // Not every run keeps any.
		return "", err
	}
	err = os.Rename(sessionFile(file), sessionFile(name))
	if err != nil && !(errors.Is(err, fs.ErrNotExist) && exists(sessionFile(name))) {
		return "", err
	}
	if replaces != "" {
		if err := os.Rename(replaces, replaces+retriedSuffix); err != nil {
			return "", err
		}
	}
	return name, os.Rename(file, name)
}

// past are the finished tries that are in the folder, by the key of their run, the oldest first.
func (f *Folder) past() (map[string][]*Result, error) {
	entries, err := os.ReadDir(f.Dir)
	if err != nil {
		return nil, err
	}
	past := map[string][]*Result{}
	for _, e := range entries {
		file := filepath.Join(f.Dir, e.Name())
		key := keyOf(file)
		if key == "" {
			continue
		}
		r, err := readResult(file)
		if err != nil {
			return nil, fmt.Errorf("%w; remove it to have the run again", err)
		}
		r.partial = !exists(sessionFile(file))
		past[key] = append(past[key], r)
	}
	for _, tries := range past {
		slices.SortFunc(tries, func(a, b *Result) int { return a.ended.Compare(b.ended) })
	}
	return past, nil
}

// recordIn is the record in a directory, or "" if there is none yet.
func recordIn(dir string) string {
	files, _ := filepath.Glob(filepath.Join(escape(dir), "*.jsonl"))
	if len(files) != 1 {
		return ""
	}
	return files[0]
}

// escape has a pattern mean a name.
func escape(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}

func sessionFile(file string) string { return strings.TrimSuffix(file, ".jsonl") + ".json" }

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
