package box

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/aiopslab/aiopslab/aci/tool"

	"github.com/aiopslab/aiopslab/internal/socketpair"
)

// host is the process of the agent's shell, as the environment sees it. It serves what the shell
// asks for: connections and tools.
type host struct {
	box   *Box
	cmd   *exec.Cmd
	line  *line
	words *output // the last ones, of Go's runtime
	done  chan *report
	gone  chan struct{} // closed when the process has ended
	why   atomic.Pointer[string]

	ctx    context.Context // ends with the process
	cancel context.CancelFunc
	work   sync.WaitGroup // connections
	ends   sync.WaitGroup // of tools

	mu    sync.Mutex
	tools map[*exec.Cmd]*running
}

// newHost starts a shell's process.
func newHost(b *Box) (*host, error) {
	here, there, err := socketpair.New()
	if err != nil {
		return nil, err
	}
	defer there.Close()
	h := &host{
		box: b, words: &output{}, done: make(chan *report, 1), gone: make(chan struct{}),
		tools: map[*exec.Cmd]*running{},
	}
	if h.line, err = newLine(here); err != nil {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		h.line.close()
		return nil, err
	}
	defer null.Close()
	h.cmd = tool.Command(b.self, b.place(false), there, null, ShellName)
	h.cmd.Dir, h.cmd.Stderr = b.dir, h.words
	if err := tool.Start(h.cmd); err != nil {
		h.line.close()
		return nil, err
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	go h.serve()
	// A shell that cannot be spoken to is gone, which whoever runs a command learns.
	_ = h.line.send(&message{Set: &setting{DNS: b.dns, Search: b.search, Limits: b.limits}})
	return h, nil
}

// serve does what the shell asks for until its process ends.
func (h *host) serve() {
	for {
		var m message
		files, err := h.line.receive(&m)
		if err != nil {
			break
		}
		switch {
		case m.Done != nil:
			select {
			case h.done <- m.Done:
			default: // Nobody asked.
			}
		case m.Dial != nil && len(files) == 1:
			h.work.Go(func() { h.dial(m.Dial, files[0]) })
			continue
		case m.Tool != nil && len(files) == 4:
			h.ends.Go(func() { h.tool(m.Tool, files) })
			continue
		}
		closeAll(files)
	}
	tool.Kill(h.cmd)
	_ = h.cmd.Wait()
	h.cancel()
	h.line.close()
	h.work.Wait()
	h.ends.Wait()
	close(h.gone)
}

// end ends the process, and remembers why.
func (h *host) end(why string) {
	h.why.CompareAndSwap(nil, &why)
	tool.Kill(h.cmd)
}

// Why a process ended.
const (
	outOfMemory   = "out of memory"
	stackOverflow = "stack overflow"
	noSpace       = "no space left on device"
	internalError = "an internal error"
	stuck         = "it did not end when it was told to"
)

// cause says why the process ended.
func (h *host) cause() string {
	if why := h.why.Load(); why != nil {
		return *why
	}
	text, _ := h.words.close()
	return lastWords(text)
}

// lastWords says what Go's runtime meant.
func lastWords(text string) string {
	switch {
	case strings.Contains(text, "stack overflow"), strings.Contains(text, "stack exceeds"):
		return stackOverflow
	case strings.Contains(text, "out of memory"), strings.Contains(text, "cannot allocate memory"),
		strings.Contains(text, "failed to create new OS thread"):
		return outOfMemory
	}
	return internalError
}

// errGone says that the shell's process has ended.
var errGone = errors.New("the shell has ended")

// run has the shell run a command whose output goes to out.
func (h *host) run(ctx context.Context, o *order, out *os.File) (*report, error) {
	err := h.line.send(&message{Run: o}, out)
	out.Close() // The shell has it.
	if err != nil {
		h.end(internalError)
		<-h.gone
		return nil, errGone
	}
	select {
	case r := <-h.done:
		return r, nil
	case <-h.gone:
		return nil, errGone
	case <-ctx.Done():
		h.end(stuck)
		<-h.gone
		return nil, fmt.Errorf("%w: %w", errGone, ctx.Err())
	}
}
