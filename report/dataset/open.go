package dataset

import (
	"strconv"
	"time"

	"github.com/aiopslab/aiopslab/session"
)

// Telemetry is what a run has kept, to be read table by table.
type Telemetry struct {
	session.Telemetry
	src *source
}

// Open opens the telemetry that belongs to a record. The error is [ErrNone] if the run has kept none.
func Open(record string) (*Telemetry, error) {
	src, err := open(session.TelemetryDir(record))
	if err != nil {
		return nil, err
	}
	return &Telemetry{src.Telemetry, src}, nil
}

// Log is a line of a log.
type Log struct {
	Time                    time.Time
	Pod, Container, Message string
}

// Logs hands over the lines of all logs, each container's in their order.
func (t *Telemetry) Logs(take func(Log)) error {
	return t.src.each("log/*.csv.gz", logColumns, func(r []string) error {
		at, err := time.Parse(time.RFC3339, r[2])
		if err == nil {
			take(Log{at, r[3], r[4], r[7]})
		}
		return err
	})
}

// Span is a span of a trace. Parent is empty for the first of one.
type Span struct {
	Trace, ID, Parent  string
	Service, Operation string
	Start              time.Time
	Duration           time.Duration
	Failed             bool
}

// Spans hands over the spans of all traces.
func (t *Telemetry) Spans(take func(Span)) error {
	return t.src.each("trace/*.csv.gz", traceColumns, func(r []string) error {
		start, err := strconv.ParseInt(r[5], 10, 64)
		if err != nil {
			return err
		}
		took, err := strconv.ParseInt(r[6], 10, 64)
		if err != nil {
			return err
		}
		s := Span{
			r[0], r[1], r[2], r[3], r[4], time.UnixMicro(start).UTC(), time.Duration(took) * time.Microsecond,
			r[7] == "True",
		}
		if s.Parent == "ROOT" {
			s.Parent = ""
		}
		take(s)
		return nil
	})
}

// Samples hands over the samples of metrics, those of a series after one another. Of is a service, or node and pod.
func (t *Telemetry) Samples(take func(at time.Time, of, metric string, v float64)) error {
	for _, pattern := range []string{"metric/container/*.csv.gz", "metric/service/*.csv.gz"} {
		err := t.src.eachSample(pattern, func(at int64, of, kpi string, v float64) {
			take(time.Unix(at, 0).UTC(), of, kpi, v)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
