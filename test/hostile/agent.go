package hostile

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// plan is what the hostile agent does in one run.
type plan struct {
	Tricks []planned `json:"tricks"`
	// Submit ends the run, unless the last trick did.
	Submit string `json:"submit,omitempty"`
}

type planned struct {
	Steps []string `json:"steps"` // lines of the protocol
}

// note is a line of the agent's log: what it saw, or that the lab was well after a trick.
type note struct {
	Trick       int    `json:"trick"`
	Begun       bool   `json:"begun,omitempty"`
	Observation string `json:"observation,omitempty"`
	Alive       bool   `json:"alive,omitempty"`
}

// alive is a step by which the agent sees that the lab still works for it, and what that shows.
const (
	alive       = "echo still; kubectl get namespace default -o name"
	aliveAnswer = "still\nnamespace/default"
	aliveTries  = 5
)

// Agent is the hostile agent: a program that speaks the lab's protocol for agents in lines of JSON. It does what
// a plan says, and writes what it sees to a log.
func Agent(planFile, logFile string, in io.Reader, out io.Writer) error {
	data, err := os.ReadFile(planFile)
	if err != nil {
		return err
	}
	var p plan
	if err := json.Unmarshal(data, &p); err != nil {
		return err
	}
	log, err := os.OpenFile(logFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	lines := bufio.NewReaderSize(in, 1<<20)
	a := &agent{lines: lines, out: out, log: json.NewEncoder(log)}
	for range 2 { // The greeting, and the first question.
		if _, err := a.read(); err != nil {
			return err
		}
	}
	for i, t := range p.Tricks {
		if err := a.try(i, t.Steps); err != nil {
			return err
		}
	}
	if p.Submit != "" {
		_, err = a.send(p.Submit)
	}
	return err
}

type agent struct {
	lines *bufio.Reader
	out   io.Writer
	log   *json.Encoder
}

func (a *agent) try(i int, steps []string) error {
	if err := a.log.Encode(note{Trick: i, Begun: true}); err != nil {
		return err
	}
	for _, s := range steps {
		seen, err := a.send(s)
		if err != nil {
			return err
		}
		if err := a.log.Encode(note{Trick: i, Observation: seen}); err != nil {
			return err
		}
	}
	for range aliveTries {
		seen, err := a.send(shellCall(alive, 30))
		if err != nil {
			return err
		}
		if strings.Contains(seen, aliveAnswer) {
			return a.log.Encode(note{Trick: i, Alive: true})
		}
	}
	return nil
}

// send writes a line and returns the observation that follows.
func (a *agent) send(line string) (string, error) {
	if _, err := fmt.Fprintln(a.out, line); err != nil {
		return "", err
	}
	return a.read()
}

func (a *agent) read() (string, error) {
	line, err := a.lines.ReadBytes('\n')
	if err != nil {
		return "", err
	}
	var m struct{ Type, Text string }
	err = json.Unmarshal(line, &m)
	if err == nil && m.Type == "end" {
		err = io.EOF
	}
	return m.Text, err
}

// shellCall is the line that has a command run.
func shellCall(command string, seconds int) string {
	return encode(map[string]any{
		"type": "call", "name": "exec_shell", "arguments": map[string]any{"command": command, "timeout": seconds},
	})
}

// textCall is the line that sends a response as it is.
func textCall(text string) string { return encode(map[string]any{"type": "action", "text": text}) }

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // Texts and numbers can always be written.
	}
	return string(b)
}
