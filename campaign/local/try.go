package local

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/record"
)

const (
	// stopTime is how long a run may take to end when it is told to.
	stopTime = 2 * time.Minute
	// maxTail is how much of what a process writes to its standard error is kept.
	maxTail = 8 << 10
)

// Try is a run under way.
type Try struct {
	Run
	Number int       // of the tries of the run, from 1
	Dir    string    // where it leaves its record and its session file
	Ahead  bool      // its process is started before its turn; see [Campaign.Command]
	Began  time.Time // its turn; zero until then

	replaces  string        // the record of a failure that is retried
	past      int           // tries that said nothing of the agent
	slot      *slot         // where it goes on; nil until it is its turn
	in, stdin *os.File      // both ends of what its process reads, which ends with this one
	dismissed chan struct{} // closed when its turn will not come; nil if it is not ahead

	mu      sync.Mutex // of what was read
	read    int64
	phase   string
	settled bool
	step    int
	record  string
}

// Settled reports whether its agent has had its turn, as far as the record tells: so its environment is set up.
func (t *Try) Settled() bool {
	t.State()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.settled
}

// State is what the run does, and how many steps its agent has taken, as far as the record tells.
func (t *Try) State() (phase string, step int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.record == "" {
		t.record = recordIn(t.Dir)
	}
	f, err := os.Open(t.record)
	if err != nil {
		return t.phase, t.step
	}
	defer f.Close()
	b, _ := io.ReadAll(io.NewSectionReader(f, t.read, maxVerdict))
	b = b[:bytes.LastIndexByte(b, '\n')+1]
	t.read += int64(len(b))
	for line := range bytes.Lines(b) {
		t.learn(line)
	}
	return t.phase, t.step
}

// learn takes what a line of the record tells. Most lines tell nothing.
func (t *Try) learn(line []byte) {
	var e record.Event
	if json.Unmarshal(line, &e) != nil {
		return
	}
	switch e.Kind {
	case record.PhaseEvent:
		var p record.Phase
		if e.Decode(&p) == nil {
			t.phase = p.Name
		}
	case record.BriefingEvent:
		t.phase, t.settled = "agent", true
	case record.StepEvent:
		t.step++
	}
}

// run runs the process of the try to its end. Why says what is the matter if it has not done its work.
func (t *Try) run(ctx context.Context, cmd *exec.Cmd, lock *os.File) (why string) {
	defer t.stdin.Close()
	tail := &tail{}
	cmd.Stdin, cmd.ExtraFiles = t.in, []*os.File{lock}
	if cmd.Stderr == nil {
		cmd.Stderr = tail
	} else {
		cmd.Stderr = io.MultiWriter(tail, cmd.Stderr)
	}
	// A terminal would send Ctrl-C to it as well, and it is to be told only when it is to stop.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err := cmd.Start()
	t.in.Close()
	if err != nil {
		return err.Error()
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return tail.last(err)
	case <-ctx.Done():
		_ = cmd.Process.Signal(syscall.SIGTERM)
	case <-t.dismissed:
		t.stdin.Close()
	}
	select {
	case err = <-ended:
	case <-time.After(stopTime):
		_ = cmd.Process.Kill()
		err = <-ended
	}
	return tail.last(err)
}

// tail is the end of what was written.
type tail struct{ b []byte }

func (t *tail) Write(b []byte) (int, error) {
	t.b = append(t.b, b...)
	if over := len(t.b) - maxTail; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(b), nil
}

// last is the last line, or the error that the process ended with, or both.
func (t *tail) last(err error) string {
	text := bytes.TrimSpace(t.b)
	line := string(text[bytes.LastIndexByte(text, '\n')+1:])
	switch exit, ok := err.(*exec.ExitError); { //nolint:errorlint // Wait returns it as it is.
	case err == nil:
		return line
	case line == "", ok && !exit.Exited(): // Killed, it has no last words of its own.
		return "the process of the run ended: " + err.Error()
	}
	return line
}
