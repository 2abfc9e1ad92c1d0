package tty

import (
	"bytes"
	"context"
	"io"
	"sync"

	"github.com/aiopslab/aiopslab/shell/internal/stream"
)

// input is a program's standard input from a terminal: whole lines.
type input struct{ t *Terminal }

var _ stream.ContextReader = (*input)(nil)

func (in *input) Read(p []byte) (int, error) { return in.t.read(context.Background(), p) }

func (in *input) ReadContext(ctx context.Context, p []byte) (int, error) { return in.t.read(ctx, p) }

// Terminal lets Of find the terminal.
func (in *input) Terminal() *Terminal { return in.t }

// output is a program's output to a terminal: a newline also returns the carriage.
type output struct {
	t  *Terminal
	mu sync.Mutex
	w  io.Writer
}

// Terminal lets IsTerminal find the terminal.
func (o *output) Terminal() *Terminal { return o.t }

// IsTerminal reports whether a stream is a terminal's.
func IsTerminal(stream any) bool {
	s, ok := stream.(interface{ Terminal() *Terminal })
	return ok && s.Terminal() != nil
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := o.w.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n"))); err != nil {
		return 0, err
	}
	return len(p), nil
}
