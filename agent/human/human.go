// Package human is the agent that is a person at a terminal.
package human

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"golang.org/x/term"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/internal/strict"
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
	actions []*aci.Action
	show    io.Writer // what there is to see
	out     io.Writer // prompts and hints
	read    func() (string, error)
	page    func(text string) // shows a text on a terminal; nil elsewhere
	began   bool
	intro   string
}

func newPerson(b agent.Briefing, in io.Reader, show, out io.Writer) *person {
	p := &person{actions: b.Actions, show: show, out: out, intro: introduction(b)}
	if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.read = terminalReader(f, out, p.complete)
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
	fmt.Fprintln(&text, "Type a command for the shell, or one of these calls ('help NAME' tells more of one):")
	text.WriteString(signatures(b.Actions))
	return text.String()
}

func signatures(actions []*aci.Action) string {
	var text strings.Builder
	for _, a := range actions {
		fmt.Fprintf(&text, "  %s\n", a.Signature())
	}
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
		if answer := p.explain(line); answer != "" {
			fmt.Fprintln(p.out, answer)
			continue
		}
		if line != "" {
			return p.response(line), nil
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

// callForm is a line that is written as a call. No command of a shell looks like it.
var callForm = regexp.MustCompile(`^([A-Za-z_]\w*)\s*\(\s*\S.*\)\s*$|^([A-Za-z_]\w*)\s*\(\s*\)\s*$`)

// explain answers a line that is a question, or a call that is mistyped; it costs no step. It is empty
// for a line that can be taken as a step.
func (p *person) explain(line string) string {
	words := strings.Fields(line)
	if len(words) == 0 {
		return ""
	}
	if words[0] == "help" && len(words) == 1 {
		return "A line is a command for the shell, or one of these calls ('help NAME' tells more of one):\n" +
			signatures(p.actions)
	}
	if words[0] == "help" && len(words) == 2 {
		if a := p.action(words[1]); a != nil {
			return a.Text()
		}
		return ""
	}
	if a := p.action(words[0]); a != nil && !strings.Contains(line, "(") {
		return fmt.Sprintf("%s is a call; write it as %s", a.Name, a.Signature())
	}
	m := callForm.FindStringSubmatch(line)
	if m == nil {
		return ""
	}
	name := m[1] + m[2]
	if p.action(name) != nil {
		return ""
	}
	var names []string
	for _, a := range p.actions {
		names = append(names, a.Name)
	}
	if near := strict.Nearest(name, names); near != "" {
		return fmt.Sprintf("There is no call %s; did you mean %s?", name, p.action(near).Signature())
	}
	return fmt.Sprintf("There is no call %s; 'help' lists those there are.", name)
}

func (p *person) action(name string) *aci.Action {
	for _, a := range p.actions {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// response makes a call of a line: an action if it is written as one, else a command.
func (p *person) response(line string) string {
	name, _, isCall := strings.Cut(line, "(")
	if isCall && p.action(strings.TrimSpace(name)) != nil {
		return "```\n" + line + "\n```"
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
