package process

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
	"github.com/aiopslab/aiopslab/world/decoy"
	"github.com/aiopslab/aiopslab/world/noise"
)

const (
	// maxMessage is the longest line that is read.
	maxMessage = 64 << 20
	// MaxWorld is how big a world may be that is handed over.
	MaxWorld = 16 << 20
)

// request is what the supervisor asks.
type request struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// message is what the environment says: the answer to a request, an event, that an action begins, a world to be kept,
// or a line of its log.
type message struct {
	ID    int             `json:"id,omitempty"`    // of the request that it answers
	Kind  string          `json:"kind,omitempty"`  // of the event
	Begun *string         `json:"begun,omitempty"` // the action
	Data  json.RawMessage `json:"data,omitempty"`  // of the answer, or the event
	Error *Failure        `json:"error,omitempty"`
	World []byte          `json:"world,omitempty"`
	Log   *logLine        `json:"log,omitempty"`
}

// Failure is an error of the environment, which lives on.
type Failure struct {
	Text   string `json:"text"`
	Hint   string `json:"hint,omitempty"` // what to do about it
	Misfit bool   `json:"misfit,omitempty"`
}

func (f *Failure) Error() string { return f.Text }

// Is makes errors.Is recognise a misfit.
func (f *Failure) Is(target error) bool { return f.Misfit && target == session.ErrMisfit }

// The parameters of the requests.
type (
	openParams struct {
		Dir string      `json:"dir"`
		Log *slog.Level `json:"log,omitempty"` // from which on it is to log; nil for nothing
		Run *runParams  `json:"run,omitempty"` // what it is opened for, if that may change how
		On  *Cluster    `json:"on,omitempty"`  // the cluster, if it is there already
	}
	runParams struct {
		App     string `json:"app"`
		Archive []byte `json:"archive,omitempty"` // of an application that is not built in
		Seed    uint64 `json:"seed"`
		Handed  bool   `json:"handed,omitempty"` // worlds are the supervisor's to keep
		World   []byte `json:"world,omitempty"`  // that it has
	}
	keepParams struct {
		Problem problemName `json:"problem"`
	}
	readyParams struct {
		Problem problemName `json:"problem"`
	}
	renewParams struct {
		Seed uint64 `json:"seed"`
	}
	prepareParams struct {
		Problem  problemName      `json:"problem"`
		Seed     uint64           `json:"seed"`
		Noise    noise.Level      `json:"noise,omitempty"`
		Decoys   decoy.Set        `json:"decoys,omitempty"`
		Lived    time.Duration    `json:"lived,omitempty"`
		Baseline time.Duration    `json:"baseline"`
		HandOver session.HandOver `json:"hand_over,omitempty"`
		Policy   []byte           `json:"policy,omitempty"`
		Approves bool             `json:"approves,omitempty"`
	}
	approveParams struct {
		Number int          `json:"number"`
		Answer guard.Answer `json:"answer"`
	}
	actParams struct {
		Response string `json:"response"`
	}
	exportParams struct {
		Interval agent.Interval `json:"interval"`
	}
	fetchParams struct {
		Dir string `json:"dir"`
	}
	watchParams struct {
		Interrupted bool `json:"interrupted"`
	}
	cancelParams struct {
		ID  int    `json:"id"`
		Why string `json:"why"`
	}
)

// problemName is a problem as both know it: by its id if it is built in, else with its document, and
// with the archive of its application if that is not built in either.
type problemName struct {
	ID       string `json:"id"`
	File     string `json:"file,omitempty"`
	Document []byte `json:"document,omitempty"`
	App      []byte `json:"app,omitempty"`
	// Length is that of a shift.
	Length time.Duration `json:"length,omitempty"`
	Day    bool          `json:"day,omitempty"`
}

func nameOf(p *problem.Problem) problemName {
	if p.BuiltIn() {
		return problemName{ID: p.ID, Length: p.Length(), Day: p.Day()}
	}
	return problemName{p.ID, p.Document.File, p.Document.Source, p.App.Archive, p.Length(), p.Day()}
}

func (n problemName) find(l *problem.Library) (*problem.Problem, error) {
	p, err := n.named(l)
	if err != nil {
		return nil, err
	}
	if n.Day {
		if p, err = p.OverADay(); err != nil {
			return nil, err
		}
	}
	return p.Lasting(n.Length), nil
}

func (n problemName) named(l *problem.Library) (*problem.Problem, error) {
	if n.Document == nil {
		return l.Find(n.ID)
	}
	if n.App != nil {
		a, err := findApp(l.Apps, "", n.App)
		if err != nil {
			return nil, err
		}
		l = &problem.Library{Apps: append(slices.Clone(l.Apps), a), Kinds: l.Kinds}
	}
	list, err := l.Parse(n.File, n.Document)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(p *problem.Problem) bool { return p.ID == n.ID })
	if i < 0 {
		return nil, fmt.Errorf("%s has no problem %s", n.File, n.ID)
	}
	return list[i], nil
}

// findApp returns the application of an archive, or else the one that has a name.
func findApp(known []*app.App, name string, archive []byte) (*app.App, error) {
	if archive != nil {
		return app.Unpack("the application", archive, known)
	}
	i := slices.IndexFunc(known, func(a *app.App) bool { return a.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no application %q", name)
	}
	return known[i], nil
}

// writer writes lines, each whole.
type writer struct {
	mu sync.Mutex
	w  io.Writer
}

func (w *writer) write(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err = w.w.Write(append(b, '\n'))
	return err
}

// readLines calls f with every line, which it must not keep.
func readLines(r io.Reader, f func(line []byte) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxMessage)
	for lines.Scan() {
		if err := f(lines.Bytes()); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil && !os.IsTimeout(err) {
		return err
	}
	return nil
}

// typed is the data of an event, as those who are told of it know it. What nobody looks into stays as
// it is.
func typed(kind string, data json.RawMessage) any {
	var v any
	switch kind {
	case record.PhaseEvent:
		v = new(record.Phase)
	case record.FaultEvent:
		v = new(record.Fault)
	case record.HandOverEvent:
		v = new(record.HandOver)
	case record.PageEvent:
		v = new(record.Page)
	case record.IncidentEvent:
		v = new(record.Incident)
	case record.ShiftEvent:
		v = new(record.Shift)
	case record.BaselineEvent, record.LookEvent:
		v = new(grade.Look)
	}
	if v == nil || json.Unmarshal(data, v) != nil {
		return data
	}
	switch v := v.(type) {
	case *record.Phase:
		return *v
	case *record.Fault:
		return *v
	case *record.HandOver:
		return *v
	case *record.Page:
		return *v
	case *record.Incident:
		return *v
	case *record.Shift:
		return *v
	case *grade.Look:
		return *v
	}
	return data
}

// ends keeps the beginning and the end of what is written to it.
type ends struct {
	mu         sync.Mutex
	head, tail []byte
}

// kept is how much of each end is kept.
const kept = 32 << 10

func (e *ends) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := min(len(b), kept-len(e.head))
	e.head = append(e.head, b[:n]...)
	e.tail = append(e.tail, b[n:]...)
	if over := len(e.tail) - kept; over > 0 {
		e.tail = bytes.Clone(e.tail[over:])
	}
	return len(b), nil
}

func (e *ends) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return string(e.head) + string(e.tail)
}
