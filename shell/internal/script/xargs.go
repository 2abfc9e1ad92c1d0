package script

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var xargs = tool.Tool{
	Name: "xargs",
	Options: "0,null d:,delimiter n:,max-args I: i::,replace L:,max-lines P:,max-procs " +
		"r,no-run-if-empty t,verbose s:,max-chars E: e:: p,interactive x,exit a:,arg-file " +
		"o,open-tty",
	InOrder: true, Args: "[OPTIONS] [PROG ARGS]",
	Help: "Run PROG on every item given by stdin\n" +
		"\n" +
		"\t-0\tNUL terminated input\n" +
		"\t-r\tDon't run command if input is empty\n" +
		"\t-t\tPrint the command on stderr before execution\n" +
		"\t-n N\tPass no more than N args to PROG\n" +
		"\t-I STR\tReplace STR within PROG ARGS with input line\n" +
		"\t-P N\tRun up to N PROGs in parallel",
	Run: func(ctx context.Context, c *tool.Call) error {
		x := &runner{c: c, command: c.Args}
		if len(x.command) == 0 {
			x.command = []string{"echo"}
		}
		if err := x.options(); err != nil {
			return c.Fail(1, "%v", err)
		}
		data, err := c.ReadAll(c.Opts.Get("a", "-"))
		if err != nil {
			return c.Fail(1, "can't open '%s': %s", c.Opts.Get("a", "-"), tool.Reason(err))
		}
		items, err := x.items(string(data))
		if err != nil {
			return c.Fail(1, "%v", err)
		}
		return x.run(ctx, items)
	},
}

// runner is an xargs under way.
type runner struct {
	c       *tool.Call
	command []string
	replace string // what -I replaces
	batch   int    // arguments for one command; 0 is all
	lines   bool   // items are whole lines
	procs   int

	mu   sync.Mutex
	code int
}

func (x *runner) options() error {
	number := func(name string, to *int) error {
		if !x.c.Opts.Has(name) {
			return nil
		}
		n, err := strconv.Atoi(x.c.Opts.Get(name, ""))
		if err != nil || n < 0 {
			return fmt.Errorf("invalid number '%s'", x.c.Opts.Get(name, ""))
		}
		*to = n
		return nil
	}
	x.procs = 1
	for name, to := range map[string]*int{"n": &x.batch, "P": &x.procs} {
		if err := number(name, to); err != nil {
			return err
		}
	}
	if x.c.Opts.Has("L") {
		x.lines = true
		if err := number("L", &x.batch); err != nil {
			return err
		}
	}
	if x.procs == 0 {
		x.procs = 64
	}
	switch x.c.Opts.Last("I", "i") {
	case "I":
		x.replace = x.c.Opts.Get("I", "")
	case "i":
		if x.replace = x.c.Opts.Get("i", ""); x.replace == "" {
			x.replace = "{}"
		}
	}
	if x.replace != "" {
		x.lines, x.batch = true, 1
	}
	return nil
}

// items are the arguments in the input.
func (x *runner) items(data string) ([]string, error) {
	split := func(sep string) []string {
		data = strings.TrimSuffix(data, sep)
		if data == "" {
			return nil
		}
		return strings.Split(data, sep)
	}
	switch {
	case x.c.Opts.Has("0"):
		return split("\x00"), nil
	case x.c.Opts.Has("d"):
		sep, _ := unescape(x.c.Opts.Get("d", ""), false)
		return split(sep), nil
	case x.lines:
		var lines []string
		for line := range strings.Lines(data) {
			if line = strings.TrimLeft(strings.TrimSuffix(line, "\n"), " \t"); line != "" {
				lines = append(lines, line)
			}
		}
		return lines, nil
	}
	return splitQuoted(data, x.c.Opts.Get("E", ""))
}

// splitQuoted cuts a text at blanks, minding quotes and backslashes. eof is a word that ends it.
func splitQuoted(data, eof string) (words []string, err error) {
	var word strings.Builder
	in, quote := false, byte(0)
	for i := 0; i < len(data); i++ {
		switch b := data[i]; {
		case quote != 0 && b == quote:
			quote = 0
		case quote != 0 && b == '\n':
			return nil, fmt.Errorf("unmatched %s quote", map[byte]string{'\'': "single", '"': "double"}[quote])
		case quote != 0:
			word.WriteByte(b)
		case b == '\'' || b == '"':
			in, quote = true, b
		case b == '\\' && i+1 < len(data):
			in = true
			i++
			word.WriteByte(data[i])
		case b == ' ' || b == '\t' || b == '\n':
			if in {
				if eof != "" && word.String() == eof {
					return words, nil
				}
				words = append(words, word.String())
				word.Reset()
			}
			in = false
		default:
			in = true
			word.WriteByte(b)
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("unmatched %s quote", map[byte]string{'\'': "single", '"': "double"}[quote])
	}
	if in && (eof == "" || word.String() != eof) {
		words = append(words, word.String())
	}
	return words, nil
}

func (x *runner) run(ctx context.Context, items []string) error {
	if len(items) == 0 && (x.c.Opts.Has("r") || x.replace != "") {
		return nil
	}
	batch := x.batch
	if batch == 0 {
		batch = max(len(items), 1)
	}
	slots := make(chan struct{}, x.procs)
	var wg sync.WaitGroup
	for first := true; first || len(items) > 0; first = false {
		n := min(batch, len(items))
		args := x.arguments(items[:n])
		items = items[n:]
		slots <- struct{}{}
		if x.stop() || ctx.Err() != nil {
			break
		}
		if x.c.Opts.Has("t") {
			x.c.Note("%s\n", strings.Join(args, " "))
		}
		child := x.c.Env.Child(args...)
		child.Stdin = strings.NewReader("")
		p, err := x.c.Start(ctx, child)
		if err != nil {
			wg.Wait()
			return err
		}
		wg.Go(func() {
			x.ended(p.Wait())
			<-slots
		})
		if x.procs == 1 {
			wg.Wait()
		}
	}
	wg.Wait()
	tool.Stopped(ctx)
	return kit.Exit(x.code)
}

func (x *runner) arguments(items []string) []string {
	if x.replace == "" {
		return append(append([]string(nil), x.command...), items...)
	}
	args := make([]string, len(x.command))
	for i, a := range x.command {
		args[i] = strings.ReplaceAll(a, x.replace, items[0])
	}
	return args
}

// stop reports whether a command has asked for the end.
func (x *runner) stop() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.code == 124 || x.code == 126 || x.code == 127
}

// ended notes the exit code of a command, as POSIX has it.
func (x *runner) ended(code int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case code == 0:
	case code == 255:
		x.code = 124
	case code > kit.ExitSignal:
		x.code = max(x.code, 125)
	case code == kit.ExitNotFound || code == kit.ExitNotRunnable:
		x.code = code
	default:
		x.code = max(x.code, 123)
	}
}
