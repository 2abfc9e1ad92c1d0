// Package record is a run's event log: one file of JSON lines, appended to and never rewritten.
// Session files, reports, replay and grading are functions of it.
//
//	log, err := record.Create("runs/42.jsonl", record.Run{ID: "42", Agent: "runbook"})
//	err = log.Append("step", step)
//	...
//	r, err := record.Read("runs/42.jsonl")
//	for _, e := range r.Events { ... }
//
// The first line names the format and its version. It names neither the problem nor the seed, which
// tells what of a world is made up: an agent that is a program could read it. An event has both, when
// the agent is done. A process that is killed loses at most the line it was writing, and [Read] says so
// instead of failing. What it had withheld until then is lost with it: to keep that on the disk, with a
// key or without, would be to keep it for the agent.
package record

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

const (
	// Format is what the first line of a log says it is.
	Format = "aiopslab-run"
	// Version is the version of the events. Readers refuse newer ones. Version 1 had the problem in its first
	// line, version 2 the seed.
	Version = 3
	// maxLine is the longest line a reader accepts.
	maxLine = 64 << 20
)

// ErrNotARecord is the error for a file that is not an event log.
var ErrNotARecord = errors.New("not a run record")

// Run is what is known when a run begins. The problem and the seed are not in the first line of the log: a reader
// takes them from the [ProblemEvent], and they are empty until there is one.
type Run struct {
	ID      string `json:"id"`
	Problem string `json:"problem,omitempty"`
	Agent   string `json:"agent"`
	Seed    uint64 `json:"seed,omitempty"`
}

// header is the first line.
type header struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Run
	Time time.Time `json:"time"`
}

// Event is a line of the log.
type Event struct {
	Seq  int             `json:"seq"` // from 1
	Time time.Time       `json:"time"`
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data,omitempty"`
}

// Decode reads the event's data into v.
func (e Event) Decode(v any) error {
	if err := json.Unmarshal(e.Data, v); err != nil {
		return fmt.Errorf("event %d (%s): %w", e.Seq, e.Kind, err)
	}
	return nil
}

// Log is an event log that is being written. It is safe for concurrent use.
type Log struct {
	mu  sync.Mutex
	f   *os.File
	seq int
	now func() time.Time
	err error // of the first write that failed; later ones fail with it
	// watch is told of every event, one at a time and in order.
	watch func(Event)
}

// Create begins a log in a new file.
func Create(file string, run Run) (*Log, error) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	l := &Log{f: f, now: time.Now}
	run.Problem, run.Seed = "", 0
	if err := l.write(header{Format, Version, run, l.now()}); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return l, nil
}

// Open continues a log that was closed.
func Open(file string) (*Log, error) {
	r, err := Read(file)
	if err != nil {
		return nil, err
	}
	if r.Torn {
		return nil, fmt.Errorf("%s: the last line is cut off; it can be read, but not continued", file)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	return &Log{f: f, now: time.Now, seq: len(r.Events)}, nil
}

// Watch calls f for every event from now on when it is written: one at a time, in order. F must not append.
func (l *Log) Watch(f func(Event)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watch = f
}

// Append writes an event. When it returns, the event outlives the process.
func (l *Log) Append(kind string, data any) error { return l.AppendAt(l.now(), kind, data) }

// AppendAt writes an event of an earlier time that was withheld until now.
func (l *Log) AppendAt(at time.Time, kind string, data any) error {
	b, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("record %s: %w", kind, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	l.seq++
	e := Event{l.seq, at, kind, b}
	if err := l.write(e); err != nil {
		return err
	}
	if l.watch != nil {
		l.watch(e)
	}
	return nil
}

// write appends one line with one system call.
func (l *Log) write(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if _, err := l.f.Write(append(b, '\n')); err != nil {
		l.err = fmt.Errorf("record: %w", err)
	}
	return l.err
}

// Close ends the log. Its error also tells of events that could not be written.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.err, l.f.Sync(), l.f.Close())
}

// Record is an event log that was read.
type Record struct {
	Run
	Time   time.Time
	Events []Event
	Torn   bool // the last line was cut off: the writer was killed
}

// Read reads a log.
func Read(file string) (*Record, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := Decode(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

// Decode reads a log that is not in a file.
func Decode(from io.Reader) (*Record, error) {
	lines := bufio.NewReader(from)
	first, _, err := readLine(lines)
	if err != nil {
		return nil, err
	}
	var h header
	if json.Unmarshal(first, &h) != nil || h.Format != Format {
		return nil, ErrNotARecord
	}
	if h.Version > Version {
		return nil, fmt.Errorf("it has version %d; this program reads up to %d, use a newer one", h.Version, Version)
	}
	r := &Record{Run: h.Run, Time: h.Time}
	for n := 2; ; n++ {
		line, whole, err := readLine(lines)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if len(line) == 0 && !whole {
			return r, nil
		}
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			if !whole {
				r.Torn = true
				return r, nil
			}
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if e.Seq != len(r.Events)+1 {
			return nil, fmt.Errorf("line %d: event %d where %d is expected", n, e.Seq, len(r.Events)+1)
		}
		r.Events = append(r.Events, e)
		if err := r.learn(e); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
}

// Steps are what the agent did, in order.
func (r *Record) Steps() ([]Step, error) {
	var steps []Step
	for _, e := range r.Events {
		if e.Kind != StepEvent {
			continue
		}
		var s Step
		if err := e.Decode(&s); err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// learn takes the problem's id and the seed from the event that has them.
func (r *Record) learn(e Event) error {
	if e.Kind != ProblemEvent {
		return nil
	}
	var p struct {
		ID   string `json:"id"`
		Seed uint64 `json:"seed"`
	}
	err := e.Decode(&p)
	r.Problem, r.Seed = cmp.Or(p.ID, r.Problem), cmp.Or(p.Seed, r.Seed)
	return err
}

// readLine returns the next line without its end, and whether it had one.
func readLine(r *bufio.Reader) (line []byte, whole bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, false, fmt.Errorf("longer than %d bytes", maxLine)
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return line, false, nil
		case err != nil:
			return nil, false, err
		default:
			return bytes.TrimRight(line, "\r\n"), true, nil
		}
	}
}
