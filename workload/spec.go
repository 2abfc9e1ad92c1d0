package workload

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/internal/strict"
)

// Defaults of a Spec.
const (
	DefaultTimeout     = 5 * time.Second
	DefaultMaxInFlight = 1000
)

// Spec is a load as a document.
type Spec struct {
	// Mix is what is requested.
	Mix MixRef `yaml:"mix"`
	// Arrivals makes the load open-loop, Users closed-loop. Exactly one is given.
	Arrivals *Arrivals `yaml:"arrivals,omitempty"`
	Users    *Users    `yaml:"users,omitempty"`
	// Seed is what requests and times are drawn from, but for the texts that users write.
	Seed uint64 `yaml:"seed,omitempty"`
	// Duration is when the last request may be wanted. 0 is until it is stopped.
	Duration time.Duration `yaml:"duration,omitempty"`
	// Timeout is how long a request may take, from when it is sent.
	Timeout time.Duration `yaml:"timeout,omitempty"`
	// Connections limits the connections; further requests wait for one. 0 is no limit.
	Connections int `yaml:"connections,omitempty"`
	// MaxInFlight limits the requests under way; further ones are dropped.
	MaxInFlight int `yaml:"max_in_flight,omitempty"`
}

// Users are sessions: each sends a request, waits for the response, thinks, and goes on.
type Users struct {
	Count     int     `yaml:"count"`
	SpawnRate float64 `yaml:"spawn_rate,omitempty"` // users/s; 0 starts all at once
	Think     Think   `yaml:"think,omitempty"`
}

// Think is the time between a response and the next request, drawn evenly between the two.
type Think struct {
	Min time.Duration `yaml:"min"`
	Max time.Duration `yaml:"max"`
}

// ParseSpec reads a load. The name is for errors.
func ParseSpec(name string, data []byte) (*Spec, error) {
	s := new(Spec)
	places, err := strict.DecodePlaces(name, data, s)
	if err != nil {
		return nil, err
	}
	if err := s.Validate(); err != nil {
		return nil, located(name, places, s.Mix.Mix, strings.Split(err.Error(), "\n"), "mix")
	}
	return s, nil
}

// Validate returns everything that is wrong with the load, a line each.
func (s *Spec) Validate() error {
	var list []string
	if s.Mix.Mix == nil {
		list = append(list, "a mix is needed, such as \"mix: "+Mixes()[0]+"\"")
	} else {
		list = append(list, s.Mix.problems()...)
	}
	switch {
	case (s.Arrivals == nil) == (s.Users == nil):
		list = append(list, "give either arrivals (open-loop) or users (closed-loop)")
	case s.Arrivals != nil:
		list = append(list, s.Arrivals.problems()...)
		if s.Arrivals.Replay != nil && s.Mix.Mix != nil {
			list = append(list, s.checkTrace()...)
		}
	default:
		list = append(list, s.Users.problems()...)
	}
	if s.Duration < 0 || s.Timeout < 0 || s.Connections < 0 || s.MaxInFlight < 0 {
		list = append(list, "duration, timeout, connections and max_in_flight must not be negative")
	}
	if len(list) > 0 {
		return errors.New(strings.Join(list, "\n"))
	}
	return nil
}

func (s *Spec) checkTrace() (list []string) {
	var names []string
	for _, o := range s.Mix.Operations {
		names = append(names, o.Name)
	}
	seen := map[string]bool{"": true}
	for _, n := range names {
		seen[n] = true
	}
	for i, a := range s.Arrivals.Replay.arrivals {
		if !seen[a.Operation] {
			seen[a.Operation] = true
			list = append(list, fmt.Sprintf("replay: request %d: the mix has no operation %q; it has %s",
				i+1, a.Operation, strings.Join(names, ", ")))
		}
	}
	return list
}

func (u *Users) problems() (list []string) {
	if u.Count <= 0 {
		list = append(list, "users: count must be positive")
	}
	if u.Count > MaxRate {
		list = append(list, fmt.Sprintf("users: count is %d; the most is %d", u.Count, MaxRate))
	}
	if u.SpawnRate < 0 {
		list = append(list, "users: spawn_rate must not be negative")
	}
	if u.Think.Min < 0 || u.Think.Max < u.Think.Min {
		list = append(list, "users: think needs a min and a max that is not less")
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

// Plan returns the first requests of an open-loop load without sending them, at most n. What follows a
// request in its operation depends on the answer, and is not among them. Its texts are those of no load
// that runs: each draws them from a secret of its own.
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
		a, ok := src.next(1)
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
