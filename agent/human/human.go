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

// Entry makes the agent. It writes what there is to see to show, a page at a time if in is a terminal, and reads
// lines from in with a prompt on out. On a terminal, lines can be edited, completed and brought back.
func Entry(in io.Reader, show, out io.Writer) agent.Entry {
	return agent.Entry{
		Name: "human", Doc: "a person at a terminal",
		New: func(b agent.Briefing) (agent.Agent, error) { return newPerson(b, in, show, out), nil },
	}
}

type person struct {
	Lines
	show  io.Writer // what there is to see
	out   io.Writer // prompts and hints
	read  func() (string, error)
	page  func(text string) // shows a text on a terminal; nil elsewhere
	began bool
	intro string
}

func newPerson(b agent.Briefing, in io.Reader, show, out io.Writer) *person {
	p := &person{Lines: b.Actions, show: show, out: out, intro: introduction(b)}
	if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.read = terminalReader(f, out, p.Complete)
		p.page = func(text string) { newPager(f, show).print(text) }
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
	text.WriteString(Lines(b.Actions).Help())
	return text.String()
}

// Act shows the observation and reads the next line.
func (p *person) Act(ctx context.Context, observation string) (string, error) {
	if !p.began {
		p.began = true
		fmt.Fprintln(p.out, p.intro)
	} else {
		p.display(strings.TrimSuffix(observation, aci.NextAction))
	}
	for {
		line, err := p.line(ctx)
		if err != nil {
			return "", err
		}
		if answer := p.Explain(line); answer != "" {
			fmt.Fprintln(p.out, answer)
			continue
		}
		if line != "" {
			return p.Response(line), nil
		}
	}
}

// display shows all of a text.
func (p *person) display(text string) {
	text = strings.TrimRight(text, "\n") + "\n"
	if p.page != nil {
		p.page(text)
		return
	}
	fmt.Fprint(p.show, text)
}

// line waits for one, until the run is over.
func (p *person) line(ctx context.Context) (string, error) {
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
		if errors.Is(i.err, io.EOF) {
			return "", errors.New("gave up: the input has ended")
		}
		return strings.TrimSpace(i.line), i.err
	}
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
