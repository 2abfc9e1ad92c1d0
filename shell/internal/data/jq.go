package data

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/aiopslab/aiopslab/internal/nesting"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// The exit codes of jq.
const (
	jqFalse   = 1 // with -e, the last output was false or null
	jqUsage   = 2
	jqCompile = 3
	jqNone    = 4 // with -e, there was no output
	jqRuntime = 5
)

// jq is gojq: the language of jq, except that keys of objects are always sorted.
var jq = tool.Tool{
	Name: "jq", Raw: true, Holds: true, Args: "[OPTIONS] FILTER [FILE]...", UsageCode: jqUsage,
	Help: "Process JSON\n" +
		"\n" +
		"\t-r\tPrint strings without quotes (-j: nor newlines)\n" +
		"\t-c\tOne line for each result\n" +
		"\t-n\tDo not read input (input and inputs do)\n" +
		"\t-s\tRead all inputs into one array\n" +
		"\t-R\tRead lines as strings\n" +
		"\t-e\tExit by the last result: 1 for false and null\n" +
		"\t-f FILE\tRead the filter from FILE\n" +
		"\t--arg NAME VALUE, --argjson NAME JSON, --slurpfile NAME FILE, --rawfile NAME FILE,\n" +
		"\t--args VALUE..., --jsonargs JSON..., --tab, --indent N",
	Run: func(ctx context.Context, c *tool.Call) error {
		q := &jqCall{c: c, indent: "  ", names: []string{"$ARGS"}, named: map[string]any{}}
		if err := q.parse(c.Args); err != nil {
			return c.Fail(jqUsage, "error: %v", err)
		}
		if !q.hasFilter {
			return c.Usage()
		}
		if err := nesting.Check(q.filter, nesting.Query); err != nil {
			return c.Fail(jqCompile, "error: the filter is %v", err)
		}
		query, err := gojq.Parse(q.filter)
		if err != nil {
			return c.Fail(jqCompile, "error: %v in the filter %s", err, q.filter)
		}
		in := q.inputs()
		defer in.close()
		code, err := gojq.Compile(query, gojq.WithVariables(q.names), gojq.WithInputIter(in),
			gojq.WithEnvironLoader(func() []string { return c.Env.Environ() }))
		if err != nil {
			return c.Fail(jqCompile, "error: %v", err)
		}
		values := append([]any{map[string]any{"positional": q.positional, "named": q.named}}, q.values...)
		return q.run(ctx, code, in, values)
	},
}

// jqCall is a jq under way.
type jqCall struct {
	c                                      *tool.Call
	filter                                 string
	hasFilter                              bool
	files                                  []string
	raw, join, ascii, null, slurp, rawText bool
	exitStatus                             bool
	indent                                 string // "" for one line
	names                                  []string
	values                                 []any
	positional                             []any
	named                                  map[string]any
	last                                   any
	printed                                bool
}

// run applies the filter to each input.
func (q *jqCall) run(ctx context.Context, code *gojq.Code, in *jqInputs, values []any) error {
	status := 0
	for {
		var input any
		if !q.null {
			v, ok := in.Next()
			if !ok {
				break
			}
			if err, failed := v.(error); failed {
				q.c.Warn("error: %v", err)
				status = jqUsage
				break
			}
			input = v
		}
		results := code.RunWithContext(ctx, input, values...)
		for {
			v, ok := results.Next()
			if !ok {
				break
			}
			err, failed := v.(error)
			tool.Stopped(ctx)
			if !failed {
				if err := q.print(v); err != nil {
					return err
				}
				continue
			}
			if halt, ok := errors.AsType[*gojq.HaltError](err); ok {
				if halt.Value() != nil {
					q.c.Note("%s", haltText(halt.Value()))
				}
				return kit.Exit(halt.ExitCode())
			}
			q.c.Warn("error: %v", err)
			status = jqRuntime
			break
		}
		if q.null {
			break
		}
	}
	switch {
	case status != 0 || !q.exitStatus:
		return kit.Exit(status)
	case !q.printed:
		return kit.Exit(jqNone)
	case q.last == nil || q.last == false:
		return kit.Exit(jqFalse)
	}
	return nil
}

func haltText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := gojq.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b) + "\n"
}

func (q *jqCall) print(v any) error {
	if !shallow(v, maxValueDepth) {
		return errors.New("error: the result is nested too deep")
	}
	q.last, q.printed = v, true
	text, isText := v.(string)
	if !isText || !q.raw {
		b, err := gojq.Marshal(v)
		if err != nil {
			return err
		}
		text = indentJSON(b, q.indent)
	}
	if q.ascii {
		text = escapeNonASCII(text)
	}
	q.c.Out.WriteString(text)
	if !q.join {
		q.c.Out.WriteByte('\n')
	}
	return nil
}

// maxValueDepth is how deep a result may nest, as in jq.
const maxValueDepth = 10_000

// shallow reports whether a value nests no deeper than so many levels.
func shallow(v any, levels int) bool {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if levels == 0 || !shallow(e, levels-1) {
				return false
			}
		}
	case map[string]any:
		for _, e := range v {
			if levels == 0 || !shallow(e, levels-1) {
				return false
			}
		}
	}
	return true
}

// escapeNonASCII writes what is not ASCII as \u escapes.
func escapeNonASCII(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+(r>>10), 0xdc00+(r&0x3ff))
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
