package session

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/guard/policy"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/record"
)

const (
	// sampleInterval is how often the severity of a system is taken, and sampleTimeout how long one sample may take.
	sampleInterval = time.Second
	sampleTimeout  = 2 * time.Second
	// alertInterval is how often alerts are read: Prometheus evaluates its rules that often.
	alertInterval = 5 * time.Second
	// courseLength is how many samples an event of the record has.
	courseLength = 10
)

// errUnseen is the error of who asks how bad a system is that nobody can look at.
var errUnseen = errors.New("the system's severity cannot be told: neither its users nor its workloads can be seen")

// Severity says how bad the system is now, from 0 to 1, see [grade.Weights.Severity]. What users got is that of the
// last five seconds. It may be asked from when the faults are injected until the run is over, by any number at a time.
func (l *Local) Severity(ctx context.Context) (float64, error) {
	s := l.sampler.current()
	if s == nil {
		return 0, errNoWay
	}
	mu, known := s.weights.Severity(s.measure(ctx))
	if !known {
		return 0, errUnseen
	}
	return mu, nil
}

// weights are those of the policy, if it has some.
func (l *Local) weights() grade.Weights {
	p, err := policy.Parse("the policy", l.setting.Policy)
	if l.setting.Policy == nil || err != nil || p.Severity == nil { // Who gives the agent its access tells of errors.
		return grade.DefaultWeights
	}
	return grade.Weights(*p.Severity)
}

// sampling is a sampler that comes and goes with runs.
type sampling struct {
	mu sync.Mutex
	*sampler
}

func (s *sampling) current() *sampler {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sampler
}

// begin takes samples of a stage from now on; the first is taken when it returns. Tell is told of them.
func (s *sampling) begin(ctx context.Context, stage *Stage, baseline grade.Look, weights grade.Weights, tell Tell) {
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	going, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.sampler = &sampler{
		look: stage.vitals, alerts: stage.alarms, baseline: baseline, tell: tell, cancel: cancel,
		done: make(chan struct{}), weights: weights, course: grade.Course{Weights: weights}, alarm: grade.Unseen,
	}
	s.sampler.sample(ctx)
	go s.sampler.run(going)
}

// end tells of the last samples. It may be called more than once.
func (s *sampling) end() {
	s.mu.Lock()
	was := s.sampler
	s.sampler = nil
	s.mu.Unlock()
	if was != nil {
		was.cancel()
		<-was.done
		was.flush()
	}
}

// sampler takes the severity of a system once a second, and tells of it now and then.
type sampler struct {
	look     func(context.Context) grade.Look // at users and workloads; what cannot be seen is empty
	alerts   func(context.Context) (float64, error)
	baseline grade.Look
	weights  grade.Weights
	tell     Tell
	cancel   context.CancelFunc
	done     chan struct{} // closed when no more samples are taken

	course grade.Course // of the goroutine that takes samples

	mu   sync.Mutex
	seen grade.Look // by somebody else

	reading sync.Mutex // of alerts
	alarm   float64    // what they came to when they were last read
	asked   time.Time
}

func (s *sampler) run(ctx context.Context) {
	defer close(s.done)
	tick := time.NewTicker(sampleInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.sample(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// sample takes one, unless ctx ends meanwhile.
func (s *sampler) sample(ctx context.Context) {
	at := time.Now()
	v := s.measure(ctx)
	if ctx.Err() != nil {
		return
	}
	if s.course.Add(at, v); len(s.course.At) >= courseLength {
		s.flush()
	}
}

// flush tells of the samples since it was last called.
func (s *sampler) flush() {
	if len(s.course.At) > 0 {
		s.tell(record.SeverityEvent, s.course)
		s.course = grade.Course{Weights: s.course.Weights}
	}
}

// saw takes a look that somebody else has taken, so that nobody looks twice.
func (s *sampler) saw(l grade.Look) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = l
}

// measure takes a sample.
func (s *sampler) measure(ctx context.Context) grade.Vitals {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	s.mu.Lock()
	l := s.seen
	s.mu.Unlock()
	if time.Since(l.Time) > lookInterval+lookInterval/2 {
		l = s.look(ctx)
	}
	v := grade.Vitals{
		Users:     grade.Unserved(s.baseline.Load, l.Load),
		Workloads: grade.Unseen, Alerts: s.alarmed(ctx),
	}
	if l.Workloads != nil {
		v.Workloads = grade.Unready(s.baseline.Workloads, l.Workloads)
	}
	return v
}

// alarmed is what the alerts come to. While they cannot be read, nobody knows.
func (s *sampler) alarmed(ctx context.Context) float64 {
	s.reading.Lock()
	defer s.reading.Unlock()
	if now := time.Now(); s.asked.IsZero() || now.Sub(s.asked) >= alertInterval {
		s.asked = now
		var err error
		if s.alarm, err = s.alerts(ctx); err != nil {
			s.alarm = grade.Unseen
		}
	}
	return s.alarm
}

// vitals looks at the users and the workloads alone.
func (s *Stage) vitals(ctx context.Context) grade.Look {
	l := grade.Look{Time: time.Now()}
	if load, err := s.load.Snapshot(ctx); err == nil {
		l.Load = load.Window(loadWindow)
	}
	if list, err := s.workloads(ctx); err == nil {
		l.Workloads = []grade.Workload{}
		for _, w := range list {
			l.Workloads = append(l.Workloads, w.Workload)
		}
	}
	return l
}

// alarms is what the alerts come to that fire and that the application does not have when it is well.
func (s *Stage) alarms(ctx context.Context) (float64, error) {
	alerts, err := s.observer.Alerts(ctx, "")
	if err != nil {
		return 0, err
	}
	return alarmOf(alerts, s.alerting), nil
}

func alarmOf(alerts []observe.Alert, own map[string]bool) float64 {
	var severities []string
	for _, a := range alerts {
		if a.State == "firing" && !own[a.Key()] {
			severities = append(severities, a.Severity)
		}
	}
	return grade.Alarm(severities)
}
