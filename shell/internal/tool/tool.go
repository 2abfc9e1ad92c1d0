package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/cell"
	"github.com/aiopslab/aiopslab/shell/internal/stream"
	"github.com/aiopslab/aiopslab/shell/internal/tty"
)

// Version is what the tools say they are.
const Version = "BusyBox v1.37.0"

// Tool declares a command.
type Tool struct {
	Name    string
	Options string // see parseGrammar
	Args    string // what follows the name in the usage line
	Help    string // what the usage says below that line

	// InOrder ends the options at the first operand, for tools whose operands are a command.
	InOrder bool
	// Digits is the option that -5 is short for.
	Digits string
	// Raw tools get all arguments in Call.Args and read their options themselves.
	Raw bool
	// UsageCode is the exit code when an option is wrong; 1 by default.
	UsageCode int
	// Holds marks a tool that keeps all it reads.
	Holds bool
	// Cell is the name of the cell that the tool runs in where it must not run at home; see package cell.
	Cell string

	Run func(ctx context.Context, c *Call) error
}

// Set is tools by name.
type Set map[string]kit.Program

// NewSet returns the programs of tools. The same name twice is a programming error and panics.
func NewSet(tools ...Tool) Set {
	s := Set{}
	for _, t := range tools {
		if s[t.Name] != nil {
			panic(fmt.Sprintf("tool: %s is declared twice", t.Name))
		}
		s[t.Name] = t.Program()
	}
	return s
}

// As returns the tool under another name.
func (t Tool) As(name string) Tool {
	t.Name = name
	return t
}

// Program returns the tool as a program.
func (t Tool) Program() kit.Program {
	g := parseGrammar(t.Options)
	g.inOrder, g.digits = t.InOrder, t.Digits
	return func(ctx context.Context, env *kit.Env) error {
		ctx, env, detach := tty.Attach(ctx, env)
		defer detach()
		if t.Cell != "" && cell.Needed(env) {
			return cell.Run(ctx, env, t.Cell)
		}
		c := newCall(ctx, &t, env)
		defer c.holder.Release()
		return c.run(ctx, func() error {
			if t.Raw {
				c.Args = env.Args[1:]
				return t.Run(ctx, c)
			}
			opts, operands, err := g.parse(env.Args[1:])
			if err != nil {
				if len(env.Args) == 2 && env.Args[1] == "--help" {
					c.help(c.Out)
					return nil
				}
				c.Warn("%v", err)
				return c.Usage()
			}
			c.Opts, c.Args = opts, operands
			return t.Run(ctx, c)
		})
	}
}

// stopped is the panic with which output ends a tool.
type stopped struct{ err error }

// run calls f and turns what stopped it into an exit code.
func (c *Call) run(ctx context.Context, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			s, ok := r.(stopped)
			if !ok {
				panic(r)
			}
			err = c.outcome(ctx, s.err)
		}
	}()
	err = f()
	c.Out.Flush()
	if err == nil && c.status != 0 {
		return kit.Exit(c.status)
	}
	if _, ok := errors.AsType[kit.ExitError](err); err != nil && !ok {
		return c.outcome(ctx, err)
	}
	return err
}

// outcome is the result of a tool that an error ended.
func (c *Call) outcome(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return Killed(ctx)
	case kit.IsOutOfMemory(err):
		return killedByMemory(ctx)
	case errors.Is(err, syscall.EPIPE):
		return kit.Exit(kit.ExitSignal + int(syscall.SIGPIPE))
	}
	text := Reason(err)
	if _, ok := errors.AsType[writeError](err); ok {
		text = "write error: " + text
	}
	fmt.Fprintf(c.Env.Stderr, "%s: %s\n", c.Name, text)
	return kit.Exit(1)
}

// Killed is the result of a program whose context has ended: the code of the signal that did it.
func Killed(ctx context.Context) error {
	if k, ok := errors.AsType[kit.Killed](context.Cause(ctx)); ok {
		return kit.Exit(kit.ExitSignal + int(k.Signal))
	}
	return kit.Exit(kit.ExitSignal + int(syscall.SIGKILL))
}

// source is an input of a call, which shows what was written so far before it waits. It keeps the
// context because an io.Reader is given none.
type source struct {
	ctx context.Context
	c   *Call
	r   stream.ContextReader
}

func (s *source) Read(p []byte) (int, error) {
	s.c.Out.Flush()
	n, err := s.r.ReadContext(s.ctx, p)
	if s.ctx.Err() != nil {
		panic(stopped{s.ctx.Err()})
	}
	s.c.Work(n)
	if s.c.tool.Holds {
		s.c.Hold(holdFactor*n + lineCost*bytes.Count(p[:n], []byte("\n")))
	}
	return n, err
}

// holdFactor is how much a tool that keeps its input takes for each byte of it.
const (
	holdFactor = 2
	lineCost   = 32 // of a line that is kept, beside its text
)

// Reparse reads options by another declaration, for tools that have to look at their arguments first.
func (c *Call) Reparse(declaration string, args []string) error {
	opts, operands, err := parseGrammar(declaration).parse(args)
	if err != nil {
		c.Warn("%v", err)
		return c.Usage()
	}
	c.Opts, c.Args = opts, operands
	return nil
}
