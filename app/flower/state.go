package flower

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"google.golang.org/protobuf/proto"

	"github.com/aiopslab/aiopslab/app/flower/flowerpb"
	"github.com/aiopslab/aiopslab/kit"
)

// state is a file in which a link keeps what it must not forget.
type state struct {
	env  *kit.Env
	file string
	was  *flowerpb.State // what was in it
}

// openState reads the file. There need not be one.
func openState(env *kit.Env, file string) (*state, error) {
	s := &state{env: env, file: file, was: &flowerpb.State{}}
	b, err := env.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = proto.Unmarshal(b, s.was)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

// write replaces the file, so that there is always a whole one.
func (s *state) write(now *flowerpb.State) error {
	b, err := proto.Marshal(now)
	if err != nil {
		return err
	}
	next := s.file + ".next"
	if err := s.env.WriteFile(next, b, 0o600); err != nil {
		return err
	}
	return s.env.FS.Rename(s.env.Path(next), s.env.Path(s.file))
}

// restore takes over what was kept. Runs that were not finished are lost.
func (l *superlink) restore() {
	l.runs, l.model, l.modelRun = l.state.was.Runs, l.state.was.Model, l.state.was.ModelRun
	l.state.was = nil
	l.log.Info("Read the database", slog.Int("runs", len(l.runs)), slog.Uint64("model of run", l.modelRun))
}

// keep writes down the runs that are finished, and the last model. The lock is held.
func (l *superlink) keep() {
	if l.state == nil {
		return
	}
	now := &flowerpb.State{ModelRun: l.modelRun, Model: l.model}
	for _, r := range l.runs {
		if finished(r) {
			now.Runs = append(now.Runs, r)
		}
	}
	if err := l.state.write(now); err != nil {
		l.log.Error("Cannot write the database", slog.Any("error", err))
	}
}
