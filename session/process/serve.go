package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/session"
)

// Host is what the process of an environment consists of.
type Host struct {
	// Library is the problems that can be named, and what those of documents can be about. It may be called more than
	// once at a time.
	Library func() (*problem.Library, error)
	// Apps are the applications of the library.
	Apps []*app.App
	// Open starts the cluster.
	Open func(ctx context.Context, o Opening) (*session.Local, error)
	// Hint is what to do about an error. It may be nil.
	Hint func(error) string
}

// Opening is how a cluster is to be started.
type Opening struct {
	Dir string       // for its files
	Log *slog.Logger // the supervisor's
	// App and Seed are of the run that it is started for. App is nil if the cluster is to be bare.
	App  *app.App
	Seed uint64
	// Hand gives a world to the supervisor, who keeps it, and World is the one that it has of the application; nil for
	// none. If Hand is nil, worlds are the process' own to keep.
	Hand  func(world []byte)
	World []byte
	// On is a cluster that is there already, to be used instead.
	On *Cluster
}

// Answers is where the process of an environment writes what its supervisor reads. What the process
// starts has no part in that.
func Answers() *os.File {
	syscall.CloseOnExec(answerFD)
	return os.NewFile(answerFD, "answers")
}

// Stdout is what Answers is, for a process at a place which has no more than the standard streams: its standard output.
// Whatever else is written there goes to the standard error from now on.
func Stdout() (*os.File, error) {
	fd, err := unix.FcntlInt(uintptr(syscall.Stdout), unix.F_DUPFD_CLOEXEC, answerFD)
	if err != nil {
		return nil, err
	}
	if err := redirect(syscall.Stderr, syscall.Stdout); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "answers"), nil
}

// Serve does what the supervisor asks for, until it asks no more.
func Serve(ctx context.Context, in io.Reader, out io.Writer, h Host) error {
	ctx, cancel := context.WithCancel(ctx)
	s := &server{host: h, out: &writer{w: out}, cancels: map[int]context.CancelCauseFunc{}}
	var running sync.WaitGroup
	err := readLines(in, func(line []byte) error {
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("a request: %w", err)
		}
		if r.Method == "cancel" {
			var p cancelParams
			if err := json.Unmarshal(r.Params, &p); err != nil {
				return err
			}
			s.cancel(p.ID, errors.New(p.Why))
			return nil
		}
		ctx, done := context.WithCancelCause(ctx)
		s.mu.Lock()
		s.cancels[r.ID] = done
		s.mu.Unlock()
		running.Go(func() {
			s.answer(ctx, r)
			s.cancel(r.ID, nil)
		})
		return nil
	})
	cancel()
	running.Wait()
	if s.env != nil {
		s.env.Close()
	}
	return err
}

// server is the environment's end of the line.
type server struct {
	host Host
	out  *writer
	env  *session.Local // there from the first request on, which is to open it
	log  *slog.Logger

	mu      sync.Mutex
	cancels map[int]context.CancelCauseFunc
}

// cancel ends a request that the supervisor has given up, or that is done.
func (s *server) cancel(id int, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stop := s.cancels[id]; stop != nil {
		stop(why)
		delete(s.cancels, id)
	}
}

// answer does what a request asks for, and says what came of it. Nobody is left to be told if that
// cannot be said.
func (s *server) answer(ctx context.Context, r request) {
	result, err := s.do(ctx, r)
	m := message{ID: r.ID}
	if err == nil {
		m.Data, err = json.Marshal(result)
	}
	if err != nil {
		m.Error = &Failure{Text: err.Error(), Misfit: errors.Is(err, session.ErrMisfit)}
		if s.host.Hint != nil {
			m.Error.Hint = s.host.Hint(err)
		}
	}
	_ = s.out.write(m)
}

func (s *server) do(ctx context.Context, r request) (result any, err error) {
	if r.Method == "open" {
		var p openParams
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, err
		}
		s.log = newRemote(s.out, p.Log)
		o := Opening{Dir: p.Dir, Log: s.log, On: p.On}
		if p.Run != nil {
			go s.host.Library() //nolint:errcheck // Who asks for it next gets the error; it takes a while to read.
			if o.App, err = findApp(s.host.Apps, p.Run.App, p.Run.Archive); err != nil {
				return nil, err
			}
			o.Seed, o.World = p.Run.Seed, p.Run.World
			if p.Run.Handed {
				o.Hand = func(world []byte) { _ = s.out.write(message{World: world}) }
			}
		}
		s.env, err = s.host.Open(ctx, o)
		return nil, err
	}
	if s.env == nil {
		return nil, errors.New("the environment is not open")
	}
	switch r.Method {
	case "keep":
		var p keepParams
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, err
		}
		found, err := s.find(p.Problem)
		if err != nil {
			return nil, err
		}
		return nil, s.env.Keep(ctx, found.App)
	case "ready":
		var p readyParams
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, err
		}
		found, err := s.find(p.Problem)
		if err != nil {
			return nil, err
		}
		return nil, s.env.Ready(ctx, found.App)
	case "renew":
		var p renewParams
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, err
		}
		return nil, s.env.Renew(ctx, p.Seed, s.log)
	case "prepare":
		return s.prepare(ctx, r.Params)
	case "act":
		var p actParams
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, err
		}
		return s.env.Act(ctx, p.Response, func(action string) { _ = s.out.write(message{ID: r.ID, Begun: &action}) })
	case "approve":
		var p approveParams
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, err
		}
		return nil, s.env.Approve(ctx, p.Number, p.Answer)
	case "export":
		var p exportParams
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, err
		}
		return s.env.Export(ctx, p.Interval)
	case "fetch":
		var p fetchParams
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, err
		}
		defer os.RemoveAll(p.Dir) // Nobody else has use for it.
		return pack(p.Dir)
	case "users":
		return s.env.Users(ctx)
	case "dismiss":
		return nil, s.env.Dismiss(ctx)
	case "watch":
		var p watchParams
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, err
		}
		return nil, s.env.Watch(ctx, p.Interrupted)
	}
	return nil, fmt.Errorf("there is no request %q", r.Method)
}

// find returns the problem that the supervisor means.
func (s *server) find(n problemName) (*problem.Problem, error) {
	l, err := s.host.Library()
	if err != nil {
		return nil, err
	}
	return n.find(l)
}

func (s *server) prepare(ctx context.Context, params json.RawMessage) (any, error) {
	var p prepareParams
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	found, err := s.find(p.Problem)
	if err != nil {
		return nil, err
	}
	setting := session.Setting{
		Problem: found, Seed: p.Seed, Noise: p.Noise, Decoys: p.Decoys, Lived: p.Lived,
		Baseline: p.Baseline, HandOver: p.HandOver, Log: s.log, Policy: p.Policy, Approves: p.Approves,
	}
	return s.env.Prepare(ctx, setting,
		func(kind string, data any) {
			b, err := json.Marshal(data)
			if err == nil {
				_ = s.out.write(message{Kind: kind, Data: b})
			}
		})
}
