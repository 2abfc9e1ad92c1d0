package text

import (
	"slices"
	"strconv"
	"strings"
)

// rewriteAwk replaces what a program does with files and commands by calls of the functions of
// awkRun: output to files and pipes, getline from them, system, close and fflush.
func rewriteAwk(source string) (string, error) {
	original := lexAwk(source)
	tokens := rewriteOutput(rewriteGetline(rewriteCalls(slices.Clone(original))))
	program := source
	if !slices.Equal(tokens, original) { // Most programs have nothing to rewrite.
		program = joinAwk(tokens)
	}
	// The arguments become standard input when the program's own BEGIN is through with them, or
	// before, if that reads the input already.
	const feed = `BEGIN { for (__i = 1; __i < ARGC; __i++) if (__isfile(ARGV[__i])) ARGV[__i] = "-" }`
	if slices.ContainsFunc(tokens, func(t awkToken) bool { return t.is("getline") }) {
		program = feed + "\n" + program
	} else {
		program += "\n" + feed
	}
	if slices.ContainsFunc(tokens, func(t awkToken) bool { return t.is("FILENAME") }) && readsInput(tokens) {
		program = "{ FILENAME = __filename() }\n" + program
	}
	return program, nil
}

// readsInput reports whether a program has more than BEGIN and functions.
func readsInput(tokens []awkToken) bool {
	for i := 0; i < len(tokens); {
		switch t := tokens[i]; {
		case t.kind == awkNewline || t.is(";"):
			i++
		case t.is("BEGIN", "function", "func"):
			for i < len(tokens) && !tokens[i].is("{") {
				i++
			}
			i = closing(tokens, i) + 1
		default:
			return true
		}
	}
	return false
}

// closing returns the bracket that closes the one at i.
func closing(tokens []awkToken, i int) int {
	depth := 0
	for ; i < len(tokens); i++ {
		switch {
		case tokens[i].is("(", "[", "{"):
			depth++
		case tokens[i].is(")", "]", "}"):
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(tokens)
}

// opening returns the bracket that the one at i closes.
func opening(tokens []awkToken, i int) int {
	depth := 0
	for ; i >= 0; i-- {
		switch {
		case tokens[i].is(")", "]", "}"):
			depth++
		case tokens[i].is("(", "[", "{"):
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return 0
}

// rewriteCalls renames functions and statements, and adds what gensub leaves out.
func rewriteCalls(tokens []awkToken) (out []awkToken) {
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		called := i+1 < len(tokens) && tokens[i+1].is("(")
		switch {
		case t.is("system", "close", "fflush") && called:
			t.text = "__" + t.text
		case t.is("fflush"):
			t = awkToken{kind: awkRaw, text: "__fflush()"}
		case t.is("nextfile"):
			t = awkToken{kind: awkRaw, text: "{ __nextfile(); nextfile }"}
		case t.is("gensub") && called:
			end := closing(tokens, i+1)
			if i+2 < len(tokens) && tokens[i+2].kind == awkRegex {
				expr := tokens[i+2].text
				tokens[i+2] = awkToken{
					kind: awkString,
					text: strconv.Quote(strings.ReplaceAll(expr[1:len(expr)-1], `\/`, "/")),
				}
			}
			commas, depth := 0, 0
			for _, a := range tokens[i+1 : end] {
				switch {
				case a.is("(", "["):
					depth++
				case a.is(")", "]"):
					depth--
				case a.is(",") && depth == 1:
					commas++
				}
			}
			if commas == 2 {
				tokens = slices.Insert(tokens, end, awkToken{kind: awkOp, text: ","},
					awkToken{kind: awkRaw, text: "$0"})
			}
		}
		out = append(out, t)
	}
	return out
}

// primary returns where the operand that begins at i ends.
func primary(tokens []awkToken, i int) int {
	for i < len(tokens) && tokens[i].is("$", "-", "+", "!", "++", "--") {
		i++
	}
	if i >= len(tokens) {
		return i
	}
	if tokens[i].is("(") {
		return closing(tokens, i) + 1
	}
	name := tokens[i].kind == awkName
	i++
	if name && i < len(tokens) && tokens[i].is("(", "[") {
		return closing(tokens, i) + 1
	}
	return i
}

// rewriteGetline replaces getline from files and commands. What it reads is passed through split, so
// that text which looks like a number compares as one.
func rewriteGetline(tokens []awkToken) []awkToken {
	for i := 0; i < len(tokens); i++ {
		if !tokens[i].is("getline") {
			continue
		}
		end := i + 1
		target := ""
		if end < len(tokens) && (tokens[end].is("$") || tokens[end].kind == awkName && !awkKeyword(tokens[end].text)) {
			stop := primary(tokens, end)
			target = joinAwk(tokens[end:stop])
			end = stop
		}
		start, mode, source := i, "", ""
		switch {
		case end < len(tokens) && tokens[end].is("<"):
			stop := primary(tokens, end+1)
			mode, source = "<", joinAwk(tokens[end+1:stop])
			end = stop
		case i > 0 && tokens[i-1].is("|"):
			start = operandStart(tokens, i-2)
			mode, source = "|", joinAwk(tokens[start:i-1])
		default:
			continue
		}
		effect := "$0 = __record()"
		if target != "" {
			effect = `split(__record(), __line, "\001"), ` + target + " = __line[1]"
		}
		if mode == "|" {
			effect += ", NR = NR + 1"
		}
		text := "(__getline(" + strconv.Quote(mode) + ", (" + source + ")) > 0 ? __one(" + effect + ") : __status())"
		tokens = slices.Replace(tokens, start, end, awkToken{kind: awkRaw, text: text})
		i = start
	}
	return tokens
}

func awkKeyword(s string) bool {
	return slices.Contains(strings.Fields("in else print printf while if for getline return next exit delete do"), s)
}

// operandStart walks back from i to where the command before | getline begins.
func operandStart(tokens []awkToken, i int) int {
	for ; i >= 0; i-- {
		t := tokens[i]
		switch {
		case t.is(")", "]"):
			open := opening(tokens, i)
			if open > 0 && tokens[open-1].is("if", "while", "for") {
				return i + 1
			}
			i = open
		case t.kind == awkNewline, t.kind == awkName && awkKeyword(t.text):
			return i + 1
		case t.kind == awkOp && !t.is("$", "+", "-", "*", "/", "%", "^", "**", "++", "--"):
			return i + 1
		}
	}
	return 0
}

// rewriteOutput replaces print > file and the like by a block that switches the output.
func rewriteOutput(tokens []awkToken) []awkToken {
	for i := 0; i < len(tokens); i++ {
		if !tokens[i].is("print", "printf") {
			continue
		}
		end, redirect := statementEnd(tokens, i)
		if redirect < 0 {
			continue
		}
		text := "{ __output(" + strconv.Quote(tokens[redirect].text) + ", (" + joinAwk(tokens[redirect+1:end]) +
			")); " +
			joinAwk(tokens[i:redirect]) + "; __stdout() }"
		// A block before else takes no semicolon, where a statement needs one.
		if end < len(tokens) && tokens[end].is(";") {
			next := end + 1
			for next < len(tokens) && tokens[next].kind == awkNewline {
				next++
			}
			if next < len(tokens) && tokens[next].is("else") {
				end = next
			}
		}
		tokens = slices.Replace(tokens, i, end, awkToken{kind: awkRaw, text: text})
	}
	return tokens
}

// statementEnd returns where a statement ends, and its redirection, or -1.
func statementEnd(tokens []awkToken, i int) (end, redirect int) {
	redirect = -1
	depth := 0
	for end = i + 1; end < len(tokens); end++ {
		t := tokens[end]
		switch {
		case t.is("(", "["):
			depth++
		case t.is(")", "]"):
			if depth--; depth < 0 {
				return end, redirect
			}
		case depth > 0:
		case t.is(";", "}"), t.kind == awkNewline && !tokens[end-1].is(",", "&&", "||"):
			return end, redirect
		case t.is(">", ">>", "|") && redirect < 0:
			redirect = end
		}
	}
	return end, redirect
}
