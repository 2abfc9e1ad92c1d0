package external

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/cage"
	"github.com/aiopslab/aiopslab/record"
)

const (
	// maxLine is how long a line of the agent may be.
	maxLine = 1 << 20
	// maxLogs is how much of what the agent logs is kept in a record, and logCost what a line costs of
	// that beside its text: a thousand lines are the most.
	maxLogs = 256 << 10
	logCost = 256
)

// limits are how long the lab waits for a program.
type limits struct {
	exit time.Duration // for an exit, when the program has closed a pipe
	end  time.Duration // for an exit after the end of the run
	term time.Duration // for an exit after SIGTERM
}

var patience = limits{exit: time.Second, end: 5 * time.Second, term: 2 * time.Second}

// child is a program at work on a problem.
type child struct {
	*process
	hello  hello
	note   func(kind string, data any)
	wait   limits
	dir    string // of the kubeconfig, and the program's to write to
	cage   *cage.Cage
	step   int
	last   string // response
	ended  error  // why the lab stopped the agent, if it did
	broken bool   // the agent failed by itself
	reply  chan string
	logged chan struct{} // there is something in logs
	over   chan struct{} // closed when nothing more is read; failure says why

	mu      sync.Mutex
	asked   bool // an observation was sent and not replied to
	failure error
	logs    []string
	room    int   // what may still be logged
	lost    int64 // bytes of logs that are not kept
}

func start(b agent.Briefing, argv []string, in *cage.Cage, wait limits) (_ *child, err error) {
	c := &child{
		note: b.Note, wait: wait, room: maxLogs, cage: in,
		reply: make(chan string, 1), logged: make(chan struct{}, 1), over: make(chan struct{}),
	}
	if c.dir, err = os.MkdirTemp(b.Scratch, "aiopslab-exec-"); err != nil {
		return nil, fmt.Errorf("%w: %w", agent.ErrUnavailable, err)
	}
	defer func() {
		if err != nil {
			os.RemoveAll(c.dir)
		}
	}()
	kubeconfig := ""
	if len(b.Kubeconfig) > 0 {
		kubeconfig = filepath.Join(c.dir, "kubeconfig")
		if err := os.WriteFile(kubeconfig, b.Kubeconfig, 0o600); err != nil {
			return nil, fmt.Errorf("%w: %w", agent.ErrUnavailable, err)
		}
	}
	c.hello = newHello(b, kubeconfig)
	if c.process, err = run(argv, in, c.dir); err != nil {
		return nil, err
	}
	go c.listen()
	go func() { // A program that has exited says no more, even if what it started holds its pipes.
		<-c.Exited()
		drain(c.stdout, wait.exit)
	}()
	return c, nil
}

// Act sends what was observed and waits for the action.
func (c *child) Act(ctx context.Context, text string) (string, error) {
	c.step++
	if err := c.ask(ctx, text); err != nil {
		return "", c.stopped(ctx, err)
	}
	for {
		select {
		case <-c.logged:
			c.flush()
			continue
		case response := <-c.reply:
			return c.answered(response), nil
		case <-c.over:
			select { // A program may exit once it has submitted.
			case response := <-c.reply:
				return c.answered(response), nil
			default:
			}
			return "", c.stopped(ctx, c.failure)
		case <-ctx.Done():
			return "", c.stopped(ctx, context.Cause(ctx))
		}
	}
}

func (c *child) answered(response string) string {
	c.flush()
	c.last = response
	return response
}

// stopped keeps why the agent's turn is over. That its time is up counts more than what it did then.
func (c *child) stopped(ctx context.Context, err error) error {
	c.flush()
	if ctx.Err() != nil {
		c.ended = context.Cause(ctx)
		return c.ended
	}
	c.broken = true
	return err
}

// ask sends an observation, and what comes before the first.
func (c *child) ask(ctx context.Context, text string) error {
	release := context.AfterFunc(ctx, func() { _ = c.stdin.SetWriteDeadline(time.Now()) })
	defer release()
	var err error
	if c.step == 1 {
		err = encode(c.stdin, c.hello)
	}
	c.mu.Lock()
	failure := c.failure
	c.asked = failure == nil
	c.mu.Unlock()
	if failure != nil {
		return failure
	}
	if err == nil {
		err = encode(c.stdin, observation{"observation", c.step, text})
	}
	if err == nil || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if c.Gone(c.wait.exit) { // It cannot read because it is no more, which says more.
		<-c.over
		return c.failure
	}
	return errors.New("the agent closed its standard input before the run was over")
}

// listen reads what the program writes, until it ends or is of no use.
func (c *child) listen() {
	err := c.read(c.stdout)
	if err == nil {
		err = c.silence()
	}
	c.mu.Lock()
	c.failure = err
	c.mu.Unlock()
	close(c.over)
}

// silence says why the program writes no more.
func (c *child) silence() error {
	if !c.Gone(c.wait.exit) {
		return errors.New("the agent closed its standard output before it submitted")
	}
	drain(c.stderr, c.wait.exit)
	<-c.quiet
	text := fmt.Sprintf("the agent's program %s before it submitted", c.Status())
	if words := c.tail.lastWords(); words != "" {
		text += ": " + words
	}
	if c.Failed() {
		text += c.cage.Advise()
	}
	return errors.New(text)
}

// read takes lines from the program. It returns nil when they are at their end.
func (c *child) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		m, err := parse(lines.Bytes())
		if err != nil {
			return err
		}
		if m.Type == "log" {
			c.log(*m.Text)
			continue
		}
		if !c.answer(m.response()) {
			return fmt.Errorf("the agent wrote %s before it was asked: write one action for each observation",
				excerpt(lines.Bytes()))
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("the agent wrote a line of more than %d bytes: %s", maxLine, rightForm)
	}
	return nil
}

// answer hands a response over, if there is a question.
func (c *child) answer(response string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.asked {
		return false
	}
	c.asked = false
	c.reply <- response // There is room: it is taken before the next question.
	return true
}

// log keeps what the agent says of its work, until flush records it.
func (c *child) log(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.room <= 0 {
		c.lost += int64(len(text))
		return
	}
	if c.room -= len(text) + logCost; c.room <= 0 {
		c.lost += int64(len(text))
		text = "[it logs too much: from here on, nothing is kept]"
	}
	c.logs = append(c.logs, text)
	select {
	case c.logged <- struct{}{}:
	default:
	}
}

// flush records the logs. It is called by who runs the agent, as events must be.
func (c *child) flush() {
	c.mu.Lock()
	logs := c.logs
	c.logs = nil
	c.mu.Unlock()
	for _, text := range logs {
		c.note(record.LogEvent, record.Output{Text: text})
	}
}

// Close tells the program that the run is over, and ends it if it does not go.
func (c *child) Close() error {
	if !c.broken {
		_ = c.stdin.SetWriteDeadline(time.Now().Add(c.wait.exit))
		_ = encode(c.stdin, end{"end", c.reason()})
		_ = c.stdin.Close()
		c.Gone(c.wait.end)
	}
	c.Stop(syscall.SIGTERM, c.wait.term)
	drain(c.stdout, c.wait.exit)
	drain(c.stderr, c.wait.exit)
	<-c.over
	<-c.quiet
	c.flush()
	if c.lost > 0 {
		c.note(record.LogEvent, record.Output{
			Text:    fmt.Sprintf("[%d bytes of logs were not kept]", c.lost),
			Dropped: c.lost,
		})
	}
	if text, gone := c.tail.text(); text != "" {
		c.note(record.StderrEvent, record.Output{Text: text, Dropped: gone})
	}
	_ = c.close() // The input may be closed by now.
	return os.RemoveAll(c.dir)
}

// reason is why the run is over, as far as an agent knows.
func (c *child) reason() string {
	if c.ended != nil {
		return c.ended.Error()
	}
	if call, err := aci.Parse(c.last); err == nil && call.Name == "submit" {
		return "submitted"
	}
	return "there are no more steps"
}
