// Package human is the agent that is a person at a terminal.
package human

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
)

const prompt = "> "

// Entry makes the agent: it shows what there is to see on out and reads lines from in. If in is a
// terminal, lines can be edited, completed and brought back.
func Entry(in io.Reader, out io.Writer) agent.Entry {
	return agent.Entry{
		Name: "human", Doc: "a person at a terminal",
		New: func(b agent.Briefing) (agent.Agent, error) { return newPerson(b, in, out), nil },
	}
}

type person struct {
	actions []*aci.Action
	out     io.Writer
	read    func() (string, error)
	began   bool
	intro   string
}

func newPerson(b agent.Briefing, in io.Reader, out io.Writer) *person {
	p := &person{actions: b.Actions, out: out, intro: introduction(b)}
	if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.read = terminalReader(f, out, p.complete)
		return p
	}
	lines := bufio.NewReader(in)
	p.read = func() (string, error) {
		line, err := lines.ReadString('\n')
		if line != "" && errors.Is(err, io.EOF) {
			err = nil
		}
		return line, err
	}
	return p
}

// introduction is what a person is told first.
func introduction(b agent.Briefing) string {
	var text strings.Builder
	fmt.Fprintf(&text, "\n%s\n\n", strings.TrimSpace(b.Description))
	fmt.Fprintln(&text, "Type a command for the shell, or one of these calls:")
	for _, a := range b.Actions {
		fmt.Fprintf(&text, "  %s\n", a.Signature())
	}
	return text.String()
}

// Act shows the observation and reads the next line.
func (p *person) Act(ctx context.Context, observation string) (string, error) {
	if !p.began {
		p.began = true
		fmt.Fprintln(p.out, p.intro)
	}
	_ = observation // The transcript has shown it.
	for {
		type input struct {
			line string
			err  error
		}
		got := make(chan input, 1)
		go func() {
			line, err := p.read()
			got <- input{line, err}
		}()
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case i := <-got:
			line := strings.TrimSpace(i.line)
			switch {
			case errors.Is(i.err, io.EOF):
				return "", errors.New("gave up: the input has ended")
			case i.err != nil:
				return "", i.err
			case line != "":
				return p.response(line), nil
			}
		}
	}
}

// response makes a call of a line: an action if it is written as one, else a command.
func (p *person) response(line string) string {
	name, _, isCall := strings.Cut(line, "(")
	if isCall {
		for _, a := range p.actions {
			if a.Name == strings.TrimSpace(name) {
				return "```\n" + line + "\n```"
			}
		}
	}
	return agent.Call("exec_shell", line)
}

// complete completes the first word of a line that names an action.
func (p *person) complete(line string) string {
	var found []string
	for _, a := range p.actions {
		if line != "" && strings.HasPrefix(a.Name+"(", line) {
			found = append(found, a.Name+"(")
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	return commonPrefix(found, line)
}

// commonPrefix is the longest text that all candidates begin with, or line if there is none.
func commonPrefix(candidates []string, line string) string {
	if len(candidates) == 0 {
		return line
	}
	prefix := candidates[0]
	for _, c := range candidates[1:] {
		for !strings.HasPrefix(c, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	return prefix
}

// terminalReader reads lines that can be edited. The terminal is in raw mode only while a line is
// read, so that Ctrl-C stops the run at any other time; while one is read it ends the input.
func terminalReader(f *os.File, out io.Writer, complete func(string) string) func() (string, error) {
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{f, out}, prompt)
	t.AutoCompleteCallback = func(line string, pos int, key rune) (string, int, bool) {
		if key != '\t' || pos != len(line) {
			return "", 0, false
		}
		line = complete(line)
		return line, len(line), true
	}
	return func() (string, error) {
		state, err := term.MakeRaw(int(f.Fd()))
		if err != nil {
			return "", err
		}
		defer term.Restore(int(f.Fd()), state) //nolint:errcheck // There is nothing to be done.
		if w, h, err := term.GetSize(int(f.Fd())); err == nil {
			_ = t.SetSize(w, h)
		}
		return t.ReadLine()
	}
}
