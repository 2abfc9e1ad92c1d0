package terminal

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/internal/term"
)

const (
	// Program is the name of the command that hands an answer in.
	Program = "submit"
	// CounterVariable is the environment variable that tells it where: a token, an @ and an address. The
	// address is one of the network, since a program in a cage has no sockets of the machine.
	CounterVariable = "AIOPSLAB_SUBMIT"

	// maxRequest is how long an answer may be.
	maxRequest = 1 << 20
	// talkTimeout is how long one exchange may take.
	talkTimeout = 10 * time.Second
)

var (
	// ErrNoRun is the error of submit where there is nothing to submit to.
	ErrNoRun = errors.New("there is no run to submit to: submit works in what 'aiopslab shell' starts, until " +
		"the run is over")
	// ErrMalformed is the error for an answer that cannot be understood. The run goes on.
	ErrMalformed = errors.New("nothing was submitted")
)

// request and reply are what is said over the socket, each as one JSON value.
type (
	request struct {
		Token string   `json:"token"`
		Args  []string `json:"args"`
	}
	reply struct {
		Text      string `json:"text"`
		Malformed bool   `json:"malformed,omitempty"`
	}
)

// Submit is the program: it hands in what its arguments say, and tells what came of it on out.
func Submit(counter string, args []string, out io.Writer) error {
	token, address, ok := strings.Cut(counter, "@")
	if !ok {
		return ErrNoRun
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return ErrNoRun
	}
	defer conn.Close()
	if err := json.NewEncoder(conn).Encode(request{token, args}); err != nil {
		return ErrNoRun
	}
	var r reply
	if err := json.NewDecoder(conn).Decode(&r); err != nil {
		return ErrNoRun
	}
	if _, err := io.WriteString(out, r.Text+"\n"); err != nil {
		return err
	}
	if r.Malformed {
		return ErrMalformed
	}
	return nil
}

// counter takes answers from whoever has its token. To each question it takes the first answer that it
// understands.
type counter struct {
	token    string
	incident bool // a question may follow, or a page
	listener net.Listener
	answers  chan string // the call that submits, once for each question
	asked    chan string // the question that follows, for who has submitted
	over     chan struct{}
	busy     sync.WaitGroup
	waiting  sync.WaitGroup // of those who have submitted, and are to be told what follows

	mu     sync.Mutex
	task   string // or the question at hand
	taken  bool   // an answer is, or will soon be, in answers
	closed bool
	conns  map[net.Conn]bool
}

func openCounter(task string) (*counter, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &counter{
		task: first(task), token: rand.Text(), incident: task == term.Incident || task == term.OnCall, listener: l,
		answers: make(chan string, 1), asked: make(chan string, 1), over: make(chan struct{}),
		conns: map[net.Conn]bool{},
	}
	c.busy.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.busy.Go(func() { c.serve(conn) })
		}
	})
	return c, nil
}

func (c *counter) address() string { return c.token + "@" + c.listener.Addr().String() }

// last returns the answer, if there is one. It is for when there will be no other.
func (c *counter) last() (response string, ok bool) {
	c.mu.Lock()
	taken := c.taken
	c.mu.Unlock()
	if !taken {
		return "", false
	}
	return <-c.answers, true
}

// next asks the question that an observation ends with. Whoever has answered the one before is told.
func (c *counter) next(observation string) {
	c.mu.Lock()
	onCall := c.task == term.OnCall
	c.taken = c.taken && !onCall
	c.mu.Unlock()
	if onCall {
		c.asked <- strings.TrimSpace(strings.TrimSuffix(observation, aci.NextAction))
		return
	}
	q := aci.Asked(observation)
	if q == "" {
		return
	}
	c.mu.Lock()
	c.task, c.taken = q, false
	c.mu.Unlock()
	c.asked <- fmt.Sprintf("Submitted.\n\n%s\n%s", aci.Ask(q), usage(q))
}

// enter counts an exchange in, unless all are ended.
func (c *counter) enter(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.conns[conn] = true
	}
	return !c.closed
}

// runOver is what is said of an answer after which there is no question.
const runOver = "Submitted. The run is over, and is being graded."

// end tells whoever has answered the last question that it was the last.
func (c *counter) end() {
	_ = c.listener.Close()
	close(c.over)
	c.waiting.Wait() // The program has its say before its shell is ended.
}

// close ends all exchanges.
func (c *counter) close() {
	c.mu.Lock()
	c.closed = true
	for conn := range c.conns {
		_ = conn.Close()
	}
	c.mu.Unlock()
	c.busy.Wait()
}

func (c *counter) serve(conn net.Conn) {
	defer func() {
		c.mu.Lock()
		delete(c.conns, conn)
		c.mu.Unlock()
		conn.Close()
	}()
	if !c.enter(conn) {
		return
	}
	_ = conn.SetDeadline(time.Now().Add(talkTimeout))
	var r request
	if err := json.NewDecoder(io.LimitReader(conn, maxRequest)).Decode(&r); err != nil ||
		subtle.ConstantTimeCompare([]byte(r.Token), []byte(c.token)) != 1 {
		return
	}
	res, response := c.judge(r.Args)
	if response != "" && res.Text == "" { // What comes after it is not known yet.
		c.waiting.Add(1)
		defer c.waiting.Done()
		c.answers <- response
		_ = conn.SetDeadline(time.Time{})
		select {
		case res.Text = <-c.asked:
		case <-c.over:
			res.Text = runOver
		}
		_ = conn.SetDeadline(time.Now().Add(talkTimeout))
		response = ""
	}
	_ = json.NewEncoder(conn).Encode(res)
	_, _ = conn.Read(make([]byte, 1)) // The program has its say before its shell is ended.
	if response != "" {
		c.answers <- response
	}
}

// judge decides about an answer. A response is what is submitted; with it, an empty reply means that a question may
// follow.
func (c *counter) judge(args []string) (res reply, response string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
		return reply{Text: usage(c.task)}, ""
	}
	response, err := answer(c.task, args)
	if err != nil {
		return reply{Text: err.Error() + "\n" + usage(c.task), Malformed: true}, ""
	}
	if c.taken {
		return reply{Text: "There is a submission already.", Malformed: true}, ""
	}
	c.taken = true
	if c.incident && c.task != term.Mitigation {
		return reply{}, response
	}
	return reply{Text: runOver}, response
}
