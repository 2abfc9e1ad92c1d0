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
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/internal/strict"
)

// Replay repeats recorded arrivals, again and again.
type Replay struct {
	// Trace is the recording, as [ReadTrace] reads it.
	Trace string `yaml:"trace"`
	// Speed makes the time between requests shorter: 2 is twice as fast. Default 1.
	Speed float64 `yaml:"speed,omitempty"`

	arrivals []Arrival // read by problems
}

// maxSpeed is as fast as a trace of a day in a minute and a half.
const maxSpeed = 1000

func (r *Replay) problems() (list []Problem) {
	if !(r.Speed >= 0 && r.Speed <= maxSpeed) {
		list = append(list, Problem{at("speed"), fmt.Sprintf("%g: want more than 0, at most %d", r.Speed, maxSpeed)})
	}
	arrivals, err := ReadTrace(strings.NewReader(r.Trace))
	switch {
	case err != nil:
		return append(list, Problem{at("trace"), err.Error()})
	case len(arrivals) < 2 || r.Speed >= 0 && r.scaled(arrivals[len(arrivals)-1].At) < time.Millisecond:
		return append(list, Problem{
			at("trace"),
			"it needs requests at two different times at least, a millisecond apart",
		})
	}
	r.arrivals = arrivals
	return list
}

// checkOperations returns the operations that a mix does not have.
func (r *Replay) checkOperations(m *Mix) (list []Problem) {
	var names []string
	for _, o := range m.Operations {
		names = append(names, o.Name)
	}
	seen := map[string]bool{"": true}
	for i, a := range r.arrivals {
		if !seen[a.Operation] && !slices.Contains(names, a.Operation) {
			list = append(list, Problem{at("trace"), fmt.Sprintf("request %d: in mix %s %s", i+1, m.Name,
				strict.Unknown("operation", a.Operation, names))})
		}
		seen[a.Operation] = true
	}
	return list
}

// scaled is how long something of the trace takes.
func (r *Replay) scaled(d time.Duration) time.Duration {
	if r.Speed > 0 {
		return time.Duration(float64(d) / r.Speed)
	}
	return d
}

// gap is the time between the last request and the first of the next round: that of an average one.
func (r *Replay) gap() time.Duration {
	return r.arrivals[len(r.arrivals)-1].At / time.Duration(len(r.arrivals)-1)
}

// boundWindow is the time over which the bounds of a trace are taken: that of a look at the load.
const boundWindow = 5 * time.Second

// bounds are the least and the most requests a second in any time of boundWindow.
func (r *Replay) bounds() (low, high float64) {
	round := r.scaled(r.arrivals[len(r.arrivals)-1].At + r.gap())
	whole := float64(boundWindow / round * time.Duration(len(r.arrivals))) // in whole rounds
	rest := boundWindow % round
	low = math.Inf(1)
	// A window has least when it begins just after a request, most when it begins with one.
	for i, j, k := 0, 0, 0; i < len(r.arrivals); i++ {
		end := r.scaled(r.arrivals[i].At) + rest
		for j = max(i, j); r.nth(j, round) < end; j++ {
		}
		for k = max(j, k); r.nth(k, round) <= end; k++ {
		}
		low, high = min(low, whole+float64(k-i-1)), max(high, whole+float64(j-i))
	}
	return low / boundWindow.Seconds(), high / boundWindow.Seconds()
}

// nth is when a request is repeated, counted over the rounds.
func (r *Replay) nth(i int, round time.Duration) time.Duration {
	return time.Duration(i/len(r.arrivals))*round + r.scaled(r.arrivals[i%len(r.arrivals)].At)
}

type replaySource struct {
	*Replay
	i    int
	from time.Duration // recorded time of the arrival before
	now  time.Duration // when that was repeated
}

func (s *replaySource) next() (Arrival, bool) {
	if s.i == len(s.arrivals) {
		s.i, s.from = 0, -s.gap()
	}
	a := s.arrivals[s.i]
	s.i++
	s.now += s.scaled(a.At - s.from)
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
