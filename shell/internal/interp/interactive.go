package interp

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"syscall"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
	"github.com/aiopslab/aiopslab/shell/internal/tty"
)

// converse reads commands from a terminal and runs them, until the user leaves.
func (s *Shell) converse(ctx context.Context, t *tty.Terminal, inv *invocation) {
	s.params = inv.operands
	s.startup(ctx, inv)
	var history tty.History
	pending := "" // lines of a command that is not complete
	for {
		s.reportJobs()
		prompt := s.prompt("PS1")
		if pending != "" {
			prompt = s.prompt("PS2")
		}
		line, err := t.ReadLine(ctx, prompt, history)
		switch {
		case errors.Is(err, tty.ErrInterrupted):
			pending, s.status = "", kit.ExitSignal+int(syscall.SIGINT)
			continue
		case errors.Is(err, io.EOF) && pending != "":
			s.complain("syntax error: unexpected end of file")
			pending, s.status = "", 2
			continue
		case err != nil:
			if s.bash && errors.Is(err, io.EOF) {
				s.note("exit\n")
			}
			return
		}
		history.Add(line)
		pending += line + "\n"
		file, err := newParser().Parse(guarded(strings.NewReader(pending)), "")
		if syntax.IsIncomplete(err) {
			continue
		}
		for i := 0; err == nil && i < len(file.Stmts); i++ {
			_, err = survey(file.Stmts[i])
		}
		pending = ""
		if err != nil {
			s.syntaxError(err)
			continue
		}
		if !s.runLine(ctx, t, file.Stmts) {
			return
		}
	}
}

// runLine runs one line of commands. Ctrl-C ends what runs in the foreground and gives up the rest.
// It reports false if the shell is to end.
func (s *Shell) runLine(ctx context.Context, t *tty.Terminal, stmts []*syntax.Stmt) bool {
	line, cancel := context.WithCancelCause(ctx)
	defer cancel(context.Canceled)
	s.fg.mu.Lock()
	s.fg.hit = false
	s.fg.mu.Unlock()
	restore := t.OnInterrupt(func() {
		if !s.fg.interrupt(s.env.Procs) {
			cancel(kit.Killed{Signal: syscall.SIGINT})
		}
	})
	defer restore()
	fl := s.stmts(line, stmts)
	s.fg.mu.Lock()
	hit := s.fg.hit
	s.fg.mu.Unlock()
	if hit && ctx.Err() == nil {
		s.loops, s.calls, s.trapping = 0, nil, false
		return true
	}
	return fl != flowExit
}

// reportJobs tells about jobs that have ended.
func (s *Shell) reportJobs() {
	for _, j := range append([]*job(nil), s.jobs.list...) {
		if j.ended() {
			state := "Done"
			if j.status != 0 {
				state = "Done(" + strconv.Itoa(j.status) + ")"
			}
			s.note("[%d]+  %-22s %s\n", j.number, state, j.text)
			s.jobs.remove(j)
		}
	}
}

// prompt is the value of PS1 or PS2 with its escapes replaced.
func (s *Shell) prompt(name string) string {
	text, ok := s.vars[name]
	if !ok {
		text.Str = s.pick(`\w \$ `, `bash-5.2\$ `)
	}
	value := text.Str
	if strings.ContainsAny(value, "$`") && ok {
		w, err := syntax.NewParser().Document(guarded(strings.NewReader(strings.ReplaceAll(value, `\$`, `\\$`))))
		if err == nil {
			_, err = survey(w)
		}
		if err == nil {
			if expanded, err := s.document(s.life, w); err == nil {
				value = expanded
			}
		}
	}
	var b strings.Builder
	for i := 0; i < len(value); i++ {
		if value[i] != '\\' || i+1 == len(value) {
			b.WriteByte(value[i])
			continue
		}
		i++
		b.WriteString(s.promptEscape(value[i]))
	}
	return b.String()
}

func (s *Shell) promptEscape(c byte) string {
	switch c {
	case 'u':
		return tool.ReadAccounts(s.env).UserName(s.env.User.UID)
	case 'h':
		host, _, _ := strings.Cut(s.env.Hostname, ".")
		return host
	case 'H':
		return s.env.Hostname
	case 'w':
		return s.tilde(s.dir)
	case 'W':
		return tool.Base(s.tilde(s.dir))
	case '$':
		if s.env.User.UID == 0 {
			return "#"
		}
		return "$"
	case 't':
		return time.Now().Format("15:04:05")
	case 's':
		return tool.Base(s.env.Args[0])
	case 'n':
		return "\r\n"
	case 'e':
		return "\x1b"
	case '[', ']':
		return ""
	}
	return `\` + string(c)
}
