package interp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/stream"
)

// capture collects what a command writes.
type capture struct {
	holder *kit.Holder

	mu  sync.Mutex
	buf bytes.Buffer
}

func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.buf.Cap()
	n, err := c.buf.Write(p)
	if grown := c.buf.Cap() - before; err == nil && grown > 0 {
		err = c.holder.Add(grown)
	}
	return n, err
}

func (c *capture) bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.buf.Bytes())
}

// newCapture returns a file that collects, and a channel that is closed when nobody can write to it
// any more.
func (s *Shell) newCapture() (*file, <-chan struct{}) {
	done := make(chan struct{})
	return newFile(nil, &capture{holder: kit.NewHolder(s.env)}, func() { close(done) }), done
}

// newPipe returns the ends of a pipe. The end of the context breaks it, so that programs which do
// not mind their context do not hang in it.
func newPipe(ctx context.Context) (r, w *file) {
	pr, pw := stream.NewPipe()
	stop := context.AfterFunc(ctx, func() {
		pr.Close()
		pw.Close()
	})
	return newFile(pr, nil, func() { stop(); pr.Close() }), newFile(nil, pw, func() { pw.Close() })
}

// commandSubstitution runs $(...).
func (s *Shell) commandSubstitution(ctx context.Context) func(w io.Writer, cs *syntax.CmdSubst) error {
	return func(w io.Writer, cs *syntax.CmdSubst) error {
		if word := onlyInput(cs.Stmts); word != nil {
			return s.catInto(ctx, w, word)
		}
		out, done := s.newCapture()
		defer out.w.(*capture).holder.Release()
		sub := s.fork()
		sub.setFD(1, out)
		if s.bash && !s.opts.posix && !s.opts.shopted("inherit_errexit") {
			sub.opts.errExit = false
		}
		sub.stmts(ctx, cs.Stmts)
		sub.finish(ctx)
		s.substStatus = sub.status
		select { // What it left in the background may still write.
		case <-done:
		case <-ctx.Done():
			return ctx.Err()
		}
		_, err := w.Write(out.w.(*capture).bytes())
		return err
	}
}

// onlyInput returns the file of $(<file), which stands for its content.
func onlyInput(stmts []*syntax.Stmt) *syntax.Word {
	if len(stmts) != 1 || stmts[0].Cmd != nil || len(stmts[0].Redirs) != 1 || stmts[0].Redirs[0].Op != syntax.RdrIn {
		return nil
	}
	return stmts[0].Redirs[0].Word
}

func (s *Shell) catInto(ctx context.Context, w io.Writer, word *syntax.Word) error {
	name, err := s.literal(ctx, word)
	if err != nil {
		return err
	}
	s.substStatus = 0
	data, err := s.here().ReadFile(name)
	if err != nil {
		s.cannotOpen(name, err)
		s.substStatus = 1
		return nil
	}
	_, err = w.Write(data)
	return err
}

// processSubstitution starts <(...) or >(...) and returns the name it can be opened by.
func (s *Shell) processSubstitution(ctx context.Context) func(ps *syntax.ProcSubst) (string, error) {
	return func(ps *syntax.ProcSubst) (string, error) {
		if ps.Op == syntax.CmdInTemp {
			return "", errors.New("syntax error: unexpected \"(\"")
		}
		n := 63
		for s.fds[n] != nil {
			n--
		}
		r, w := newPipe(ctx)
		sub := s.fork()
		if ps.Op == syntax.CmdIn {
			sub.setFD(1, w)
			s.setFD(n, r)
		} else {
			sub.setFD(0, r)
			s.setFD(n, w)
		}
		s.substituted = append(s.substituted, n)
		go sub.alone(func() {
			sub.stmts(ctx, ps.Stmts)
			sub.finish(ctx)
		})
		return "/dev/fd/" + strconv.Itoa(n), nil
	}
}

// closeSubstituted closes the pipes of process substitutions once their command is done.
func (s *Shell) closeSubstituted() {
	for _, n := range s.substituted {
		s.setFD(n, nil)
	}
	s.substituted = nil
}
