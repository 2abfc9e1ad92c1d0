package record

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestRoundTrip(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.jsonl")
	l, err := Create(file, Run{ID: "1", Problem: "p", Agent: "a", Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if err := l.Append("step", map[string]any{"n": i, "text": strings.Repeat("x\n", i*100)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if r.Run != (Run{ID: "1", Agent: "a"}) || len(r.Events) != 50 || r.Torn {
		t.Errorf("%+v, %d events, torn %v", r.Run, len(r.Events), r.Torn)
	}
	seen := map[int]bool{}
	for _, e := range r.Events {
		var d struct{ N int }
		if err := e.Decode(&d); err != nil {
			t.Fatal(err)
		}
		seen[d.N] = true
	}
	if len(seen) != 50 {
		t.Errorf("%d different events", len(seen))
	}
	if _, err := Create(file, Run{}); !errors.Is(err, os.ErrExist) {
		t.Errorf("a second log in the same file: %v", err)
	}
}

// TestTorn cuts a log off at every byte: all events before the cut are there.
func TestTorn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.jsonl")
	l, err := Create(file, Run{ID: "1"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := l.Append("step", i); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head := bytes.IndexByte(b, '\n') + 1
	for n := head; n <= len(b); n++ {
		r, err := Decode(bytes.NewReader(b[:n]))
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		whole := bytes.Count(b[head:n], []byte("\n"))
		if got := len(r.Events); got != whole && got != whole+1 {
			t.Errorf("cut at %d: %d events of %d", n, got, whole)
		}
		if atEnd := b[n-1] == '\n' || len(r.Events) > whole; r.Torn == atEnd {
			t.Errorf("cut at %d: torn is %v", n, r.Torn)
		}
	}
}

func TestBadFiles(t *testing.T) {
	for content, want := range map[string]string{
		"":        ErrNotARecord.Error(),
		"hello\n": ErrNotARecord.Error(),
		`{"a":1}`: ErrNotARecord.Error(),
		`{"format":"aiopslab-run","version":99}` + "\n":                              "use a newer one",
		`{"format":"aiopslab-run","version":1}` + "\nbroken\n":                       "line 2",
		`{"format":"aiopslab-run","version":1}` + "\n" + `{"seq":2}` + "\n":          "event 2 where 1 is expected",
		`{"format":"aiopslab-run","version":1}` + "\n" + `{"seq":1,"kind":3}` + "\n": "line 2",
	} {
		if _, err := Decode(strings.NewReader(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", content, err)
		}
	}
}

// Who reads the file while the agent works does not learn the problem or the seed. Who reads the record does,
// once they are told, and those of an older version.
func TestProblemIsNotInTheFirstLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.jsonl")
	log, err := Create(file, Run{ID: "1", Problem: "the-secret", Seed: 7654321})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(file); err != nil || bytes.Contains(b, []byte("secret")) || bytes.Contains(b, []byte("7654321")) {
		t.Errorf("%s, %v", b, err)
	}
	begun := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) // The event is of then, though it is written now.
	told := log.AppendAt(begun, ProblemEvent, map[string]any{"id": "the-secret", "seed": 7654321})
	if err := errors.Join(told, log.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := Read(file)
	if err != nil || r.Problem != "the-secret" || r.Seed != 7654321 || !r.Events[0].Time.Equal(begun) {
		t.Errorf("%+v, %v", r, err)
	}
	old := `{"format":"aiopslab-run","version":1,"id":"1","problem":"old","seed":5}` + "\n"
	if r, err := Decode(strings.NewReader(old)); err != nil || r.Problem != "old" || r.Seed != 5 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A log that was closed goes on where it ended.
func TestOpen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.jsonl")
	log, err := Create(file, Run{ID: "1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(log.Append(PhaseEvent, Phase{"one"}), log.Close()); err != nil {
		t.Fatal(err)
	}
	if log, err = Open(file); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(log.Append(VerdictEvent, nil), log.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := Read(file)
	if err != nil || len(r.Events) != 2 || r.Events[1].Kind != VerdictEvent {
		t.Errorf("got %+v, %v", r, err)
	}
	if err := os.WriteFile(file, []byte(`{"format":"aiopslab-run","version":1}`+"\n"+`{"seq":1,"ki`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("a torn log: %v", err)
	}
}

// What could not be written is not forgotten.
func TestCloseTellsOfFailedWrites(t *testing.T) {
	log, err := Create(filepath.Join(t.TempDir(), "run.jsonl"), Run{ID: "1"})
	if err != nil {
		t.Fatal(err)
	}
	defer log.f.Close()
	if log.f, err = os.OpenFile("/dev/full", os.O_WRONLY, 0); err != nil {
		t.Skip("there is no /dev/full")
	}
	if err := log.Append(PhaseEvent, Phase{"one"}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("append: %v", err)
	}
	if err := log.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("close: %v", err)
	}
}

// Who watches a log is told of its events in their order.
func TestWatch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.jsonl")
	l, err := Create(file, Run{ID: "1"})
	if err != nil {
		t.Fatal(err)
	}
	var seen []int
	l.Watch(func(e Event) { seen = append(seen, e.Seq) })
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { _ = l.Append("step", nil) })
	}
	wg.Wait()
	for i, seq := range seen {
		if seq != i+1 {
			t.Fatalf("event %d is told of as number %d", seq, i+1)
		}
	}
	if err := l.Close(); err != nil || len(seen) != 20 {
		t.Errorf("%d events, %v", len(seen), err)
	}
}
