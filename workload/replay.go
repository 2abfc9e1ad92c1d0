package workload

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// Replay repeats recorded arrivals.
type Replay struct {
	// Trace is the recording, as [ReadTrace] reads it.
	Trace string `yaml:"trace"`
	// Speed makes the time between requests shorter: 2 is twice as fast. Default 1.
	Speed float64 `yaml:"speed,omitempty"`
	// Loop starts again at the end.
	Loop bool `yaml:"loop,omitempty"`

	arrivals []Arrival
}

func (r *Replay) problems() (list []string) {
	if r.Speed < 0 {
		list = append(list, "replay: speed must be positive")
	}
	arrivals, err := ReadTrace(strings.NewReader(r.Trace))
	if err != nil {
		return append(list, "replay: "+err.Error())
	}
	if len(arrivals) == 0 {
		list = append(list, "replay: the trace is empty")
	} else if r.Loop && arrivals[len(arrivals)-1].At <= 0 {
		list = append(list, "replay: a trace of no duration cannot be looped")
	}
	r.arrivals = arrivals
	return list
}

type replaySource struct {
	*Replay
	i    int
	from time.Duration // recorded time of the arrival before
	now  time.Duration // when that was repeated
}

func (s *replaySource) next(scale float64) (Arrival, bool) {
	if s.i == len(s.arrivals) {
		if !s.Loop {
			return Arrival{}, false
		}
		// The gap before the first request is that of an average one.
		s.i, s.from = 0, -s.arrivals[len(s.arrivals)-1].At/time.Duration(len(s.arrivals))
	}
	if s.Speed > 0 {
		scale *= s.Speed
	}
	a := s.arrivals[s.i]
	s.i++
	s.now += time.Duration(float64(a.At-s.from) / max(scale, minScale))
	s.from = a.At
	return Arrival{At: s.now, Operation: a.Operation}, true
}

// ReadTrace reads a recorded trace: JSON lines or CSV with a header. Each record has a time and may
// have an operation; other columns are ignored.
//
//	{"time": 0.25, "operation": "search"}
//
//	time,operation
//	2026-01-02T15:04:05.25Z,search
//
// A time is a number of seconds, a duration ("1m2.5s"), or a date and time. Times are taken from the
// first record's on, and may not go back.
func ReadTrace(r io.Reader) ([]Arrival, error) {
	in := bufio.NewReader(r)
	for {
		b, err := in.Peek(1)
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if !bytes.ContainsAny(b, " \t\r\n") {
			break
		}
		in.Discard(1)
	}
	t := trace{}
	read := t.csv
	if b, _ := in.Peek(1); b[0] == '{' {
		read = t.jsonl
	}
	if err := read(in); err != nil {
		return nil, err
	}
	return t.arrivals, nil
}

type trace struct {
	arrivals []Arrival
	epoch    time.Time // of times that are dates
	first    time.Duration
}

func (t *trace) jsonl(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		var record struct {
			Time      json.RawMessage `json:"time"`
			Operation string          `json:"operation"`
		}
		if err := json.Unmarshal(line, &record); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if record.Time == nil {
			return fmt.Errorf("line %d: \"time\" is missing", n)
		}
		if err := t.add(strings.Trim(string(record.Time), `"`), record.Operation); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return lines.Err()
}

func (t *trace) csv(r io.Reader) error {
	in := csv.NewReader(r)
	header, err := in.Read()
	if err != nil {
		return err
	}
	at, operation := -1, -1
	for i, name := range header {
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "time":
			at = i
		case "operation":
			operation = i
		}
	}
	if at < 0 {
		return fmt.Errorf("the header %q has no column \"time\"", strings.Join(header, ","))
	}
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		op := ""
		if operation >= 0 {
			op = strings.TrimSpace(row[operation])
		}
		if err := t.add(strings.TrimSpace(row[at]), op); err != nil {
			line, _ := in.FieldPos(at)
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}

func (t *trace) add(text, operation string) error {
	at, err := t.parse(text)
	if err != nil {
		return err
	}
	if len(t.arrivals) == 0 {
		t.first = at
	}
	at -= t.first
	if at < 0 || len(t.arrivals) > 0 && at < t.arrivals[len(t.arrivals)-1].At {
		return fmt.Errorf("time %s is before the one above; sort the trace", text)
	}
	t.arrivals = append(t.arrivals, Arrival{At: at, Operation: operation})
	return nil
}

func (t *trace) parse(text string) (time.Duration, error) {
	if s, err := strconv.ParseFloat(text, 64); err == nil {
		if math.Abs(s) > forever.Seconds() || math.IsNaN(s) {
			return 0, fmt.Errorf("time %s is out of range", text)
		}
		// Whole seconds and the rest apart, since a float cannot hold both exactly.
		whole, rest := math.Modf(s)
		return time.Duration(whole)*time.Second + time.Duration(math.Round(rest*1e9)), nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return d, nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999"} {
		if at, err := time.Parse(layout, text); err == nil {
			if t.epoch.IsZero() {
				t.epoch = at
			}
			return at.Sub(t.epoch), nil
		}
	}
	return 0, fmt.Errorf("time %q is neither seconds, nor a duration, nor a date", text)
}

// WriteTrace writes arrivals as JSON lines, for ReadTrace.
func WriteTrace(w io.Writer, arrivals []Arrival) error {
	out := bufio.NewWriter(w)
	for _, a := range arrivals {
		op, err := json.Marshal(a.Operation)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "{\"time\": %d.%09d, \"operation\": %s}\n", a.At/time.Second, a.At%time.Second, op)
	}
	return out.Flush()
}
