package text

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/benhoyt/goawk/interp"
	"github.com/benhoyt/goawk/lexer"
	"github.com/benhoyt/goawk/parser"

	"github.com/aiopslab/aiopslab/internal/nesting"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/cell"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// awk is GoAWK. Since that would open files and run commands on the host, it is allowed neither:
// the program's input and output are rewritten to calls of functions that go through the Env, and
// the files among its arguments are fed to it as standard input. See awkrewrite.go and awkio.go. It
// does not count what it holds either, so that in a pod it is a cell.
var awk = tool.Tool{
	Name: "awk", Options: "F:,field-separator v:,assign f:,file e:", InOrder: true,
	Args: "[-F SEP] [-v VAR=VAL]... [-f FILE | CMDS] [FILE]...", UsageCode: 2, Cell: "awk",
	Run: func(ctx context.Context, c *tool.Call) error {
		source, args, err := awkSource(c)
		if err != nil {
			return err
		}
		a := &awkRun{c: c, outputs: map[string]*awkOutput{}, inputs: map[string]*awkInput{}}
		defer a.close()
		program, err := a.parse(source)
		if err != nil {
			return c.Fail(2, "%s", awkError(err))
		}
		cfg := &interp.Config{
			Stdin: a.mainInput(), Output: a, Error: c.Env.Stderr, Argv0: "awk", Args: args,
			Funcs: a.functions(), NoExec: true, NoFileWrites: true, NoFileReads: true,
			Environ: []string{}, Chars: true,
		}
		for name, value := range c.Env.Vars {
			cfg.Environ = append(cfg.Environ, name, value)
		}
		for _, opt := range c.Opts.InOrder() {
			switch opt.Name {
			case "F":
				cfg.Vars = append(cfg.Vars, "FS", awkSeparator(opt.Value))
			case "v":
				name, value, ok := strings.Cut(opt.Value, "=")
				if !ok {
					return c.Usage()
				}
				if plain, err := lexer.Unescape(value); err == nil {
					value = plain
				}
				cfg.Vars = append(cfg.Vars, name, value)
			}
		}
		machine, err := interp.New(program)
		if err != nil {
			return c.Fail(2, "%s", awkError(err))
		}
		paced, stop := pace(ctx, c)
		status, err := machine.ExecuteContext(paced, cfg)
		stop()
		a.flush()
		tool.Stopped(ctx)
		switch {
		case a.err != nil:
			return c.Fail(2, "%v", a.err)
		case err != nil:
			return c.Fail(2, "%s", awkError(err))
		}
		return kit.Exit(status)
	},
}

func init() { cell.Register(awk.Cell, awk.Program()) }

// awkSource returns the program and the arguments for it.
func awkSource(c *tool.Call) (source string, args []string, err error) {
	var parts []string
	for _, opt := range c.Opts.InOrder() {
		switch opt.Name {
		case "f":
			data, err := c.ReadAll(opt.Value)
			if err != nil {
				return "", nil, c.Fail(1, "can't open '%s': %s", opt.Value, tool.Reason(err))
			}
			parts = append(parts, string(data))
		case "e":
			parts = append(parts, opt.Value)
		}
	}
	if parts != nil {
		return strings.Join(parts, "\n"), c.Args, nil
	}
	if len(c.Args) == 0 {
		return "", nil, c.Usage()
	}
	return c.Args[0], c.Args[1:], nil
}

// awkSeparator is the value of -F: a lone t is a tab, by an old tradition.
func awkSeparator(s string) string {
	if s == "t" {
		return "\t"
	}
	if plain, err := lexer.Unescape(s); err == nil {
		return plain
	}
	return s
}

// awkError is an error in the form BusyBox has for it.
func awkError(err error) string {
	if p, ok := errors.AsType[*parser.ParseError](err); ok {
		return fmt.Sprintf("cmd. line:%d: %s", p.Position.Line, p.Message)
	}
	return err.Error()
}

// parse reads a program and, if it has input or output of its own, rewrites and reads it again.
func (a *awkRun) parse(source string) (*parser.Program, error) {
	if err := nesting.Check(source, nesting.Query); err != nil {
		return nil, fmt.Errorf("the program is %w", err)
	}
	if _, err := parser.ParseProgram([]byte(source), &parser.ParserConfig{Funcs: a.functions()}); err != nil {
		return nil, err
	}
	rewritten, err := rewriteAwk(source)
	if err != nil {
		return nil, err
	}
	return parser.ParseProgram([]byte(rewritten), &parser.ParserConfig{Funcs: a.functions()})
}
