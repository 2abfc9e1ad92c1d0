package index

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/record"
)

// later is a clock at which all that was just written is settled.
func later() time.Time { return time.Now().Add(time.Hour) }

// write writes a record, with a verdict of a class if there is one.
func write(t testing.TB, file, id, class string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	log, err := record.Create(file, record.Run{ID: id, Agent: "react"})
	if err != nil {
		t.Fatal(err)
	}
	err = log.Append(record.StepEvent, record.Step{Number: 1, Response: "submit()"})
	if class != "" {
		err = errors.Join(err, log.Append(record.ProblemEvent, json.RawMessage(
			`{"id":"p-1","task":"mitigation","app":"shop","faults":["pod_kill geo"],"seed":7}`)),
			log.Append(record.VerdictEvent, json.RawMessage(`{"class":"`+class+`","why":"so it is","results":`+
				`{"TTO":12.5,"in_tokens":3,"out_tokens":4,"writes":2,"model":"m","cost_usd":0.25}}`)))
	}
	if err := errors.Join(err, log.Close()); err != nil {
		t.Fatal(err)
	}
}

// open opens an index, and fails if it does not read as many records as it should.
func open(t *testing.T, dir, cache string, read int) *Index {
	t.Helper()
	x, err := Open(dir, Options{Cache: cache, now: later})
	if err != nil {
		t.Fatal(err)
	}
	if x.Read != read {
		t.Errorf("%d records were read, want %d", x.Read, read)
	}
	return x
}

func classes(x *Index) (list []string) {
	for _, r := range x.Runs {
		list = append(list, r.ID+" "+r.Class)
	}
	return list
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "deep", "a.jsonl"), "a", "solved")
	got := open(t, dir, "", 1).Runs
	if len(got) != 1 || got[0].Begun.IsZero() || got[0].Ended.Before(got[0].Begun) {
		t.Fatalf("%+v", got)
	}
	got[0].Begun, got[0].Ended = time.Time{}, time.Time{}
	cost := 0.25
	want := []Run{{
		ID: "a", Problem: "p-1", Task: "mitigation", App: "shop", Faults: []string{"pod_kill geo"}, Agent: "react",
		Model: "m", Seed: 7, Class: "solved", Why: "so it is", Seconds: 12.5, Steps: 1, Writes: 2, In: 3, Out: 4,
		Cost: &cost, File: filepath.Join(dir, "deep", "a.jsonl"),
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What a shift came to is known as well.
func TestShift(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	log, err := record.Create(filepath.Join(dir, "a.jsonl"), record.Run{ID: "a", Agent: "react"})
	if err != nil {
		t.Fatal(err)
	}
	err = log.Append(record.VerdictEvent, json.RawMessage(`{"class":"solved","results":{"shift":{"score":64.5,`+
		`"minutes_lost":0.83,"incidents":3,"incidents_mended":2,"pages":4,"pages_right":1,"needless":["a","b"],`+
		`"worse_seconds":1.5}}}`))
	if err := errors.Join(err, log.Close()); err != nil {
		t.Fatal(err)
	}
	want := &Shift{
		Score: 64.5, MinutesLost: 0.83, Incidents: 3, IncidentsMended: 2, Pages: 4, PagesRight: 1, Needless: 2,
		WorseSeconds: 1.5,
	}
	for _, read := range []int{1, 0} {
		if diff := cmp.Diff(want, open(t, dir, cache, read).Runs[0].Shift); diff != "" {
			t.Error(diff)
		}
	}
}

// What kept a run apart from others is known, from the record as from the file of the index; nothing if it does not say.
func TestIsolation(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "a.jsonl"), "a", "solved")
	for id, mode := range map[string]string{"b": record.IsolatedFresh, "c": record.IsolatedReset} {
		log, err := record.Create(filepath.Join(dir, id+".jsonl"), record.Run{ID: id, Agent: "react"})
		if err != nil {
			t.Fatal(err)
		}
		err = log.Append(record.IsolationEvent, record.Isolation{Mode: mode, Compared: true})
		if err := errors.Join(err, log.Close()); err != nil {
			t.Fatal(err)
		}
	}
	for _, read := range []int{3, 0} {
		got := map[string]string{}
		for _, r := range open(t, dir, cache, read).Runs {
			got[r.ID] = r.Isolation
		}
		if diff := cmp.Diff(map[string]string{"a": "", "b": "fresh", "c": "reset"}, got); diff != "" {
			t.Error(diff)
		}
	}
}

// What was read once is not read again, and what changes is.
func TestOpenAgain(t *testing.T) {
	dir, cache := t.TempDir(), filepath.Join(t.TempDir(), "new")
	a, b := filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "b.jsonl")
	write(t, a, "a", "solved")
	write(t, b, "b", "")
	if err := os.WriteFile(filepath.Join(dir, "c.jsonl"), []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	first := open(t, dir, cache, 3)
	again := open(t, dir, cache, 0)
	again.Read = first.Read
	if diff := cmp.Diff(first, again); diff != "" {
		t.Error(diff)
	}
	if u := again.Unreadable; len(u) != 1 || u[0].Why != record.ErrNotARecord.Error() || u[0].File != filepath.Join(dir, "c.jsonl") {
		t.Errorf("%+v", u)
	}

	log, err := record.Open(b)
	if err == nil {
		err = errors.Join(log.Append(record.VerdictEvent, json.RawMessage(`{"class":"infra"}`)), log.Close())
	}
	if err = errors.Join(err, os.Remove(filepath.Join(dir, "c.jsonl"))); err != nil {
		t.Fatal(err)
	}
	x := open(t, dir, cache, 1)
	if diff := cmp.Diff([]string{"a solved", "b infra"}, classes(x)); diff != "" || len(x.Unreadable) > 0 {
		t.Error(diff, x.Unreadable)
	}
	if err := os.Remove(a); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b infra"}, classes(open(t, dir, cache, 0))); diff != "" {
		t.Error(diff)
	}
}

// A record that was rewritten with the same size, and given its old time, is read again.
func TestTimeThatWasSet(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	file := filepath.Join(dir, "a.jsonl")
	write(t, file, "a", "agent")
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if changed(info) == 0 {
		t.Skip("the system does not tell when an inode was changed")
	}
	open(t, dir, cache, 1)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b = []byte(strings.Replace(string(b), `"class":"agent"`, `"class":"infra"`, 1))
	for was := changed(info); changed(info) == was; { // Its clock may be coarse.
		if err := os.WriteFile(file, b, 0); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
		if info, err = os.Stat(file); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"a infra"}, classes(open(t, dir, cache, 1))); diff != "" {
		t.Error(diff)
	}
}

// A record that has just been written may change again at what the file system takes for the same time.
func TestNotSettled(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "a.jsonl"), "a", "agent")
	for range 2 {
		x, err := Open(dir, Options{Cache: cache, now: func() time.Time { return time.Now().Add(-time.Hour) }})
		if err != nil || x.Read != 1 {
			t.Errorf("%d read, %v", x.Read, err)
		}
	}
}

// A file of the index that is torn, changed, or of another version or directory counts as none.
func TestBadFile(t *testing.T) {
	dir, other, cache := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "a.jsonl"), "a", "agent")
	write(t, filepath.Join(other, "a.jsonl"), "a", "solved")
	open(t, dir, cache, 1)
	_, path, err := store{cache, dir}.head()
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	open(t, other, cache, 1)
	_, foreign, err := store{cache, other}.head()
	if err != nil {
		t.Fatal(err)
	}
	others, err := os.ReadFile(foreign)
	if err != nil {
		t.Fatal(err)
	}
	bad := map[string][]byte{
		"empty": {}, "of another directory": others,
		"of another version": []byte(strings.Replace(string(good), "index 4 ", "index 3 ", 1)),
		"with another class": []byte(strings.Replace(string(good), "agent", "aGENT", 1)),
		"with more behind":   append([]byte(string(good)), 'x'),
	}
	for n := range good {
		if n%7 == 0 || n > len(good)-3 {
			bad[fmt.Sprintf("cut at %d", n)] = good[:n]
		}
	}
	for name, b := range bad {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		x, err := Open(dir, Options{Cache: cache, now: later})
		if err != nil || x.Read != 1 {
			t.Errorf("%s: %d read, %v", name, x.Read, err)
		} else if diff := cmp.Diff([]string{"a agent"}, classes(x)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	open(t, dir, cache, 0) // The last of them was made good.
}

// Where no file can be written, there is an index all the same, and no word of it.
func TestNoFile(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.jsonl"), "a", "agent")
	taken := filepath.Join(dir, "taken")
	if err := os.WriteFile(taken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		open(t, dir, taken, 1)
		open(t, dir, "", 1)
	}
}

// What is named like a record and is none is not waited for.
func TestOddFiles(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.jsonl"), 0o600); err != nil {
		t.Skip("no named pipe can be made here:", err)
	}
	if err := errors.Join(os.Symlink("nowhere", filepath.Join(dir, "link.jsonl")),
		os.Mkdir(filepath.Join(dir, "dir.jsonl"), 0o700)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "a", "b.jsonl"), "a", "agent")
	if err := os.Symlink("a/b.jsonl", filepath.Join(dir, "copy.jsonl")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a agent", "a agent"}, classes(open(t, dir, "", 2))); diff != "" {
		t.Error(diff)
	}
	if _, err := Open(filepath.Join(dir, "absent"), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
}

// The files of directories that are no more go with the next that is written.
func TestForget(t *testing.T) {
	dir, gone, cache := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, filepath.Join(gone, "a.jsonl"), "a", "agent")
	open(t, gone, cache, 1)
	if err := os.RemoveAll(gone); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "a.jsonl"), "a", "agent")
	open(t, dir, cache, 1)
	if files, err := os.ReadDir(cache); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
	open(t, dir, cache, 0)
}

func TestFind(t *testing.T) {
	x := &Index{Runs: []Run{{ID: "12"}, {ID: "1"}, {ID: "13"}}}
	for id, want := range map[string]int{"1": 1, "12": 1, "": 3, "2": 0} {
		if got := x.Find(id); len(got) != want {
			t.Errorf("%q: %v", id, got)
		}
	}
	if got := (&Index{Runs: []Run{{ID: "12"}, {ID: "13"}}}).Find("1"); len(got) != 2 {
		t.Errorf("%v", got)
	}
}

// A record that cannot be opened now may be one later.
func TestPassing(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("nothing is closed to root")
	}
	dir, cache := t.TempDir(), t.TempDir()
	file := filepath.Join(dir, "a.jsonl")
	write(t, file, "a", "agent")
	if err := os.Chmod(file, 0); err != nil {
		t.Fatal(err)
	}
	open(t, dir, cache, 1)
	if x := open(t, dir, cache, 1); len(x.Unreadable) != 1 {
		t.Errorf("%+v", x)
	}
}

// What is known to be nothing is not the same as what is not known, also of what was read before.
func TestKnownToBeNothing(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	log, err := record.Create(filepath.Join(dir, "a.jsonl"), record.Run{ID: "a", Agent: "react"})
	if err != nil {
		t.Fatal(err)
	}
	err = log.Append(record.VerdictEvent, json.RawMessage(`{"class":"agent","results":{"cost_usd":0,"safety":{"no_harm":false},`+
		`"shift":{"score":0}}}`))
	if err := errors.Join(err, log.Close()); err != nil {
		t.Fatal(err)
	}
	open(t, dir, cache, 1)
	r := open(t, dir, cache, 0).Runs[0]
	if r.Cost == nil || r.NoHarm == nil || *r.NoHarm || r.Shift == nil {
		t.Errorf("cost %v, no harm %v, shift %v", r.Cost, r.NoHarm, r.Shift)
	}
}
