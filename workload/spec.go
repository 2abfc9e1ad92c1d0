package workload

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Defaults of a Spec.
const (
	DefaultTimeout     = 5 * time.Second
	DefaultMaxInFlight = 1000
)

// Spec is a load.
type Spec struct {
	// Mix is what is requested.
	Mix *Mix
	// Arrivals makes the load open-loop, Users closed-loop. Exactly one is given.
	Arrivals *Arrivals
	Users    *Users
	// Held keeps arrivals that change at their highest rate until [Generator.Begin] is called. Then they
	// begin.
	Held bool
	// Seed is what requests and times are drawn from, but for the texts that users write.
	Seed uint64
	// Duration is how long requests are sent. 0 means until the load is stopped.
	Duration time.Duration
	// Timeout is how long a request may take, from when it is sent.
	Timeout time.Duration
	// MaxInFlight limits the requests under way; further ones are dropped.
	MaxInFlight int
}

// Users are sessions: each sends a request, waits for the response, thinks, and goes on.
type Users struct {
	Count int   `yaml:"count"`
	Think Think `yaml:"think"`
	// Spawn is how many come in a second until there are Count; 0 has all come at once. From is how many there are
	// before: until the load begins, if it is held.
	Spawn float64 `yaml:"spawn,omitempty"`
	From  int     `yaml:"from,omitempty"`
}

// Rise is how long more and more users come; 0 for nobody, or if all come at once.
func (u *Users) Rise() time.Duration {
	if !u.rising() {
		return 0
	}
	return time.Duration(float64(u.Count-max(u.From, 1)) / u.Spawn * float64(time.Second))
}

// rising reports whether they become more.
func (u *Users) rising() bool { return u != nil && u.Spawn > 0 }

// Think is the time between a response and the next request, drawn evenly between the two.
type Think struct {
	Min time.Duration `yaml:"min"`
	Max time.Duration `yaml:"max"`
}

// Most is how many requests a second the users send if they are answered at once.
func (u *Users) Most() float64 { return float64(u.Count) / (u.Think.Min + u.Think.Max).Seconds() * 2 }

// Problem is something that is wrong with a load.
type Problem struct {
	Path []any  // where: names of fields and indices of lists
	Text string // what
}

func (p Problem) String() string {
	where := ""
	for _, e := range p.Path {
		if i, ok := e.(int); ok {
			where += fmt.Sprintf("[%d]", i)
		} else {
			where += fmt.Sprintf(".%v", e)
		}
	}
	return strings.TrimPrefix(where+": ", ".") + p.Text
}

// at is a path.
func at(path ...any) []any { return path }

// within puts problems below a place.
func within(list []Problem, place any) []Problem {
	for i := range list {
		list[i].Path = append([]any{place}, list[i].Path...)
	}
	return list
}

// Problems returns everything that is wrong with the times at which a load sends its requests. Mix is what it
// sends, or nil if that is not known.
func Problems(a *Arrivals, u *Users, m *Mix) []Problem {
	switch {
	case u != nil && a != nil:
		return []Problem{{
			at("users"), "they send as they are answered; leave out rate, noise, surges, process and replay",
		}}
	case u != nil:
		return within(u.problems(), "users")
	case a == nil:
		return []Problem{{at("rate"), "it is missing: requests a second, such as \"rate: 10\""}}
	}
	list := a.problems()
	if len(list) == 0 && a.Replay != nil && m != nil {
		list = within(a.Replay.checkOperations(m), "replay")
	}
	return list
}

// Validate returns everything that is wrong with the load, a line each.
func (s *Spec) Validate() error {
	var list []string
	if s.Mix == nil {
		list = append(list, "a mix is needed")
	} else {
		list = append(list, s.Mix.problems()...)
	}
	wrong := Problems(s.Arrivals, s.Users, s.Mix)
	for _, p := range wrong {
		list = append(list, p.String())
	}
	if s.Arrivals != nil && len(wrong) == 0 {
		if _, high := s.Arrivals.Bounds(); high > MaxRate {
			list = append(list, fmt.Sprintf("%g requests/s; the most is %d", high, MaxRate))
		}
	}
	if s.Duration < 0 || s.Timeout < 0 || s.MaxInFlight < 0 {
		list = append(list, "duration, timeout and the most in flight must not be negative")
	}
	if len(list) > 0 {
		return errors.New(strings.Join(list, "\n"))
	}
	return nil
}

func (u *Users) problems() (list []Problem) {
	if u.Count <= 0 {
		list = append(list, Problem{at("count"), "it must be positive"})
	}
	if u.Count > MaxRate {
		list = append(list, Problem{at("count"), fmt.Sprintf("%d users; the most is %d", u.Count, MaxRate)})
	}
	if u.Spawn < 0 || u.Spawn > MaxRate {
		list = append(list, Problem{at("spawn"), fmt.Sprintf("want users a second, at most %d", MaxRate)})
	}
	if u.From < 0 || u.From > u.Count || u.From > 0 && u.Spawn == 0 {
		list = append(list, Problem{at("from"), "want how many users there are at first, at most count, with spawn"})
	}
	if t := u.Think; t.Min < 0 || t.Max < t.Min {
		list = append(list, Problem{at("think"), "it needs a min and a max that is not less"})
	}
	return list
}

func (s *Spec) timeout() time.Duration {
	if s.Timeout == 0 {
		return DefaultTimeout
	}
	return s.Timeout
}

func (s *Spec) maxInFlight() int64 {
	if s.MaxInFlight == 0 {
		return DefaultMaxInFlight
	}
	return int64(s.MaxInFlight)
}

// Planned is a request and when it is wanted.
type Planned struct {
	At time.Duration
	Request
}

// Plan returns the first n requests of an open-loop load without sending them. Later steps of an operation depend
// on answers and are not among them. The texts that users write differ from those of any load that runs, which
// draws them from a secret of its own.
func (s *Spec) Plan(n int) ([]Planned, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if s.Arrivals == nil {
		return nil, errors.New("when users send their requests depends on the responses; only arrivals can be planned")
	}
	ops, err := s.Mix.chooser()
	if err != nil {
		return nil, err
	}
	src := s.Arrivals.source(s.Seed)
	var list []Planned
	for i := range uint64(n) {
		a, ok := src.next()
		if !ok || s.Duration > 0 && a.At >= s.Duration {
			break
		}
		v, err := ops.pick(s.Seed, i, a.Operation).visit(chance{seed: s.Seed}, i, 0, nil)
		if err != nil {
			return nil, err
		}
		list = append(list, Planned{a.At, *v.first})
	}
	return list, nil
}
