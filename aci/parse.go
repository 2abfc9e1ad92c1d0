package aci

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/internal/thought"
)

// Call is an action an agent wants taken.
type Call struct {
	Name   string
	Args   []any          // positional: string, int64, float64, bool, nil, []any, map[string]any
	Kwargs map[string]any // by name; never nil
	// Context is the text around the block the call is in: what comes before, and what comes after.
	Context []string
	// Note says which part of the response was ignored. The agent must be told.
	Note string
}

// ParseError says what is wrong with a response, and shows the right form.
type ParseError struct{ Problem string }

func (e *ParseError) Error() string {
	return "Error parsing response: " + e.Problem + `
Write exactly one API call in a block of three backticks, for example:
` + "```\nexec_shell(\"kubectl get services --all-namespaces\")\n```"
}

func wrong(format string, args ...any) error { return &ParseError{fmt.Sprintf(format, args...)} }

// maxFences is how many fences a response may have. Each may end what any before it begins, so that
// the time to read them grows fast.
const maxFences = 40

// shellAction is the action whose argument is a command, in which quotes are often not escaped.
const shellAction = "exec_shell"

var (
	// fence is three or more backticks or tildes, where Markdown and models put them.
	fence = regexp.MustCompile("`{3,}|~{3,}")
	// language is a tag behind an opening fence, alone on its line.
	language = regexp.MustCompile(`^[ \t]*[A-Za-z0-9_+.-]*[ \t]*\r?\n`)
	// inlineLanguage is a tag with code behind it on the same line.
	inlineLanguage = regexp.MustCompile(`^(?:python|py|bash|sh|shell|text|json|tool_code|plaintext)[ \t]+`)
	callStart      = regexp.MustCompile(`^(?:[A-Za-z_]\w*[ \t]*=[ \t]*)?(?:await[ \t]+)?([A-Za-z_]\w*)[ \t]*\(`)
	name           = regexp.MustCompile(`^[A-Za-z_]\w*`)
)

// Parse reads the call in an agent's response. It accepts what models write: fences with or without
// a language, indented or inline, any quotes, keyword arguments, comments, prose around, and calls as
// JSON. Of several calls it takes the first and says so in Note. Anything that would have to be guessed
// is a *ParseError.
//
// What stands in tags such as <think> is a thought, whoever wrote it, and a call in there is not made.
func Parse(response string) (*Call, error) {
	response, _ = thought.Split(response, false)
	if len(fence.FindAllStringIndex(response, maxFences+1)) > maxFences {
		return nil, wrong("There are more than %d fences in it.", maxFences)
	}
	blocks := append(findTagged(response), findBlocks(response)...)
	slices.SortStableFunc(blocks, func(a, b block) int { return a.start - b.start })
	if len(blocks) == 0 {
		return parseBare(response)
	}
	var first error
	for i, b := range blocks {
		call, err := parseBlock(b.text)
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		call.Context = around(response, b)
		rest := slices.ContainsFunc(blocks[i+1:], func(b block) bool {
			_, err := parseBlock(b.text)
			return err == nil
		})
		if rest && call.Note == "" {
			call.Note = fmt.Sprintf("Only the first API call, %s, was made; write one call at a time.", call.Name)
		}
		return call, nil
	}
	return nil, first
}

// block is a fenced part of a response, fences not included.
type block struct {
	text       string
	start, end int // of the fences, in the response
}

// findBlocks returns the fenced blocks. A fence inside a quoted argument does not end one: a block
// ends at the first fence after which its text reads as a call, if there is any.
func findBlocks(s string) []block {
	var blocks []block
	for from := 0; ; {
		open := fence.FindStringIndex(s[from:])
		if open == nil {
			return blocks
		}
		start, inner := from+open[0], from+open[1]
		mark := s[start : start+3]
		var ends [][2]int
		for at := inner; ; {
			m := fence.FindStringIndex(s[at:])
			if m == nil {
				break
			}
			if strings.HasPrefix(s[at+m[0]:], mark) {
				ends = append(ends, [2]int{at + m[0], at + m[1]})
			}
			at += m[1]
		}
		if len(ends) == 0 { // Never closed: what a reply that was cut off looks like.
			return append(blocks, block{clean(s[inner:]), start, len(s)})
		}
		end := ends[0]
		for _, e := range ends {
			if _, err := parseBlock(clean(s[inner:e[0]])); err == nil {
				end = e
				break
			}
		}
		blocks = append(blocks, block{clean(s[inner:end[0]]), start, end[1]})
		from = end[1]
	}
}

// clean drops the language of a block.
func clean(s string) string {
	if m := language.FindString(s); m != "" && !callStart.MatchString(strings.TrimSpace(m)) {
		return s[len(m):]
	}
	return inlineLanguage.ReplaceAllString(s, "")
}

// around is the text before and after a block.
func around(s string, b block) []string {
	var context []string
	for _, part := range []string{s[:b.start], s[b.end:]} {
		if part = strings.TrimSpace(part); part != "" {
			context = append(context, part)
		}
	}
	return context
}

// parseBare reads a response without a block: it must be a call on a line of its own, perhaps
// behind a label.
func parseBare(s string) (*Call, error) {
	label := regexp.MustCompile(`(?m)^[ \t]*(?:(?i:action|api|call|command)[ \t]*:[ \t]*)?` + "`?")
	s = strings.TrimRight(s, " \t\r\n")
	var found *Call
	for _, m := range label.FindAllStringIndex(s, -1) {
		rest := strings.TrimSuffix(s[m[1]:], "`")
		if callStart.FindString(rest) == "" || strings.Contains(strings.SplitN(rest, "(", 2)[0], "=") {
			continue
		}
		line, _, _ := strings.Cut(rest, "\n")
		call, err := parseBlock(strings.TrimRight(line, "` \t\r"))
		if err != nil {
			call, err = parseBlock(rest)
		}
		if err != nil {
			return nil, err
		}
		if found != nil {
			found.Note = fmt.Sprintf("Only the first API call, %s, was made; write one call at a time.", found.Name)
			break
		}
		found = call
	}
	if found == nil {
		if call, ok := parseJSON(strings.TrimSpace(s)); ok { // Nothing but JSON.
			return call, nil
		}
		return nil, wrong("No API call found!")
	}
	return found, nil
}

// parseBlock reads the first call of a block.
func parseBlock(s string) (*Call, error) {
	s = strings.TrimSpace(skipComments(s))
	if s == "" {
		return nil, wrong("No API call found! The block is empty.")
	}
	if call, ok := parseJSON(s); ok {
		return call, nil
	}
	m := callStart.FindStringSubmatchIndex(s)
	if m == nil {
		if n := name.FindString(s); n != "" && n == s {
			return nil, wrong("%s has no parentheses; write %s().", n, n)
		}
		line, _, _ := strings.Cut(s, "\n")
		return nil, wrong("No API call found! %q is not one.", short(line))
	}
	call := &Call{Name: s[m[2]:m[3]], Kwargs: map[string]any{}}
	r := &reader{s: s, at: m[1]}
	err := r.arguments(call)
	rest := s[r.at:]
	if err != nil && call.Name == shellAction {
		if rest, ok := lenientShell(call, s[m[1]:]); ok {
			return finish(call, rest)
		}
	}
	if err != nil {
		return nil, err
	}
	return finish(call, rest)
}

// finish judges what stands behind a call in its block.
func finish(call *Call, rest string) (*Call, error) {
	rest = strings.TrimSpace(skipComments(strings.TrimLeft(strings.TrimSpace(rest), ";")))
	switch {
	case rest == "":
	case callStart.MatchString(rest):
		call.Note = fmt.Sprintf("Only the first API call, %s, was made; write one call at a time.", call.Name)
	default:
		line, _, _ := strings.Cut(rest, "\n")
		if strings.ContainsAny(line[:1], "\"')]}|&>.+") {
			return nil, wrong("%q behind the call %s(...) cannot be understood.", short(line), call.Name)
		}
		call.Note = fmt.Sprintf("The text behind the call in the block was not heeded: %q.", short(line))
	}
	return call, nil
}

// skipComments drops blank lines and lines that begin with a number sign or two slashes.
func skipComments(s string) string {
	for {
		s = strings.TrimLeft(s, " \t\r\n")
		if !strings.HasPrefix(s, "#") && !strings.HasPrefix(s, "//") {
			return s
		}
		_, rest, ok := strings.Cut(s, "\n")
		if !ok {
			return ""
		}
		s = rest
	}
}

var (
	shellOpen = regexp.MustCompile(`^\s*(?:command\s*=\s*)?(["'])`)
	shellEnd  = regexp.MustCompile(`(?m)(["'])\s*(?:,\s*(?:timeout\s*=\s*)?(\d+)\s*,?\s*)?\)[ \t]*;?[ \t]*(?:#.*)?\r?$`)
)

// lenientShell reads the arguments of exec_shell when the quotes inside the command are not escaped:
// the command goes from the first quote to the same quote before the parenthesis that ends a line,
// behind which there is nothing or the next call.
func lenientShell(call *Call, s string) (rest string, ok bool) {
	open := shellOpen.FindStringSubmatchIndex(s)
	if open == nil {
		return "", false
	}
	quote := s[open[2]:open[3]]
	for _, m := range shellEnd.FindAllStringSubmatchIndex(s, -1) {
		if m[2] < open[3] || s[m[2]:m[3]] != quote {
			continue
		}
		rest := strings.TrimSpace(skipComments(s[m[1]:]))
		if rest != "" && !callStart.MatchString(rest) {
			continue
		}
		command := s[open[3]:m[2]]
		call.Args, call.Kwargs = []any{strings.ReplaceAll(command, `\`+quote, quote)}, map[string]any{}
		if m[4] >= 0 {
			r := &reader{s: s[m[4]:m[5]]}
			seconds, err := r.number()
			if err != nil {
				return "", false
			}
			call.Kwargs["timeout"] = seconds
		}
		return rest, true
	}
	return "", false
}

// short is the beginning of a long text.
func short(s string) string {
	const most = 80
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "..."
	}
	return s
}
