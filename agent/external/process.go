package external

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/cage"
	"github.com/aiopslab/aiopslab/agent/internal/proc"
)

// maxStderr is how much of the end of the standard error is kept.
const maxStderr = 64 << 10

// process is a program with pipes to it, in a process group of its own.
type process struct {
	*proc.Process
	stdin  *os.File
	stdout *os.File
	stderr *os.File
	tail   tail
	quiet  chan struct{} // closed when the standard error is read to the end
}

func run(argv []string, c *cage.Cage, scratch string) (*process, error) {
	var pipes [6]*os.File
	defer func() {
		for _, f := range pipes { // Those that are handed on are nil by then.
			if f != nil {
				f.Close()
			}
		}
	}()
	for i := 0; i < len(pipes); i += 2 {
		var err error
		if pipes[i], pipes[i+1], err = os.Pipe(); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = pipes[0], pipes[3], pipes[5]
	cmd.Env = variables()
	started, err := proc.Start(cmd, true, func() error { return c.Start(cmd, scratch) })
	if err != nil {
		return nil, err
	}
	p := &process{Process: started, stdin: pipes[1], stdout: pipes[2], stderr: pipes[4], quiet: make(chan struct{})}
	pipes[1], pipes[2], pipes[4] = nil, nil, nil
	go func() {
		defer close(p.quiet)
		_, _ = io.Copy(&p.tail, p.stderr)
	}()
	return p, nil
}

// variables are those of a program: the lab's own, such as the keys of its models, but for the secrets of a group.
func variables() []string {
	return slices.DeleteFunc(os.Environ(), agent.OfGroup)
}

// drain lets a pipe be read up to what is in it now, though another process may hold it open.
func drain(f *os.File, within time.Duration) { _ = f.SetReadDeadline(time.Now().Add(within)) }

func (p *process) close() error {
	return errors.Join(p.stdin.Close(), p.stdout.Close(), p.stderr.Close())
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	b    []byte
	gone int64 // bytes that were dropped
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if more := len(t.b) - maxStderr; more > 0 {
		t.b = append(t.b[:0], t.b[more:]...)
		t.gone += int64(more)
	}
	return len(p), nil
}

// text returns what is kept, and how many bytes are not.
func (t *tail) text() (text string, gone int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.b), "\uFFFD"), t.gone
}

// lastWords are the last lines, on one line, for a verdict.
func (t *tail) lastWords() string {
	const lines, most = 3, 400
	text, _ := t.text()
	var list []string
	for _, l := range strings.Split(text, "\n") {
		if l = strings.TrimSpace(l); l != "" {
			list = append(list, l)
		}
	}
	r := []rune(strings.Join(list[max(0, len(list)-lines):], "; "))
	return string(r[max(0, len(r)-most):])
}
