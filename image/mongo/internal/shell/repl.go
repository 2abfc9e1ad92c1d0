package shell

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/dop251/goja"
)

// command is a line that is not JavaScript: use x, show x, it, exit, ...
var command = regexp.MustCompile(`^\s*(use|show)\s+([A-Za-z0-9_\-]+)\s*;?\s*$|^\s*(it|exit|quit|help)\s*;?\s*$`)

// rewrite turns the lines of a script that are not JavaScript into calls.
func rewrite(code string) string {
	lines := strings.Split(code, "\n")
	for i, line := range lines {
		m := command.FindStringSubmatch(line)
		switch {
		case m == nil:
		case m[1] != "":
			lines[i] = fmt.Sprintf("%s(%q);", m[1], m[2])
		default:
			lines[i] = m[3] + "();"
		}
	}
	return strings.Join(lines, "\n")
}

// incomplete reports whether more lines could make the code whole.
func incomplete(code string) bool {
	if !bearable(code) {
		return false // More makes it no better.
	}
	_, err := goja.Compile("", rewrite(code), false)
	var syntax *goja.CompilerSyntaxError
	return errors.As(err, &syntax) && (strings.Contains(syntax.Message, "Unexpected end of input") ||
		strings.Contains(syntax.Message, "Unterminated template"))
}

// repl reads statements and shows what each gives, until the input ends. An error is shown, and the
// next statement is read.
func (s *session) repl(in io.Reader, prompt bool) error {
	r := bufio.NewReader(in)
	code := ""
	for {
		if prompt {
			fmt.Fprint(s.env.Stdout, s.prompt(code != ""))
		}
		line, err := r.ReadString('\n')
		if err != nil && line == "" {
			if code != "" {
				s.statement(code)
			}
			if s.ctx.Err() != nil {
				return s.ctx.Err()
			}
			return nil
		}
		code += line
		if strings.TrimSpace(code) == "" {
			code = ""
			continue
		}
		if incomplete(code) && err == nil {
			continue
		}
		if err := s.statement(code); err != nil {
			return err
		}
		code = ""
	}
}

func (s *session) prompt(more bool) string {
	switch {
	case more:
		return "... "
	case s.options.legacy:
		return "> "
	}
	name := s.options.target.db
	if v, err := s.vm.RunString("db.getName()"); err == nil {
		name = v.String()
	}
	return name + "> "
}

// statement runs one statement of an interactive session. The error is one that ends the session.
func (s *session) statement(code string) error {
	v, err := s.eval("(shell)", code)
	if err == nil {
		err = s.show(v)
	}
	var quit errQuit
	switch {
	case err == nil:
		return nil
	case errors.As(err, &quit), s.ctx.Err() != nil:
		return err
	case s.options.legacy:
		fmt.Fprintf(s.env.Stdout, "uncaught exception: %s :\n@(shell):1:1\n", s.message(err))
	default:
		fmt.Fprintln(s.env.Stderr, s.message(err))
	}
	return nil
}
