package interp

import (
	"context"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// splitWord splits the results of expansions in a word where package expand would do it wrongly: it
// takes several separators for one even if they are not blanks, so that a::b has no empty field.
func (s *Shell) splitWord(ctx context.Context, w *syntax.Word) ([]*syntax.Word, error) {
	ifs := s.get("IFS")
	if strings.Trim(ifs, " \t\n") == "" || !s.vars["IFS"].Set {
		return []*syntax.Word{w}, nil
	}
	var words []*syntax.Word
	var current []syntax.WordPart
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.ParamExp:
			if p.Index != nil || p.Param == nil || p.Param.Value == "@" || p.Param.Value == "*" {
				return []*syntax.Word{w}, nil
			}
		case *syntax.CmdSubst:
		default:
			current = append(current, part)
			continue
		}
		quoted := &syntax.DblQuoted{Parts: []syntax.WordPart{part}}
		value, err := s.literal(ctx, &syntax.Word{Parts: []syntax.WordPart{quoted}})
		if err != nil {
			return nil, err
		}
		text := []rune(value)
		fields := splitFields(text, make([]bool, len(text)), ifs, -1)
		for i, f := range fields {
			if i > 0 {
				words = append(words, &syntax.Word{Parts: current})
				current = nil
			}
			current = append(current, expanded(f))
		}
	}
	if len(current) > 0 {
		words = append(words, &syntax.Word{Parts: current})
	}
	return words, nil
}

// expanded is a part of a word that came out of an expansion: only its wildcards are special.
func expanded(s string) syntax.WordPart {
	if s == "" {
		return &syntax.SglQuoted{}
	}
	if !strings.ContainsAny(s, "*?[") {
		return &syntax.SglQuoted{Value: s}
	}
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune("\\~{}'\"$`", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return &syntax.Lit{Value: b.String()}
}

// splitFields cuts a line into at most n fields as read does; the last one gets the rest. Unlike
// package expand it keeps empty fields between separators that are not blanks. taken marks
// characters that a backslash protects.
func splitFields(line []rune, taken []bool, ifs string, n int) []string {
	sep := func(i int) bool { return strings.ContainsRune(ifs, line[i]) && !taken[i] }
	blank := func(i int) bool { return sep(i) && strings.ContainsRune(" \t\n", line[i]) }
	var fields []string
	i := 0
	skip := func() {
		for i < len(line) && blank(i) {
			i++
		}
	}
	skip()
	for i < len(line) {
		if n > 0 && len(fields) == n-1 {
			return append(fields, lastField(line[i:], taken[i:], ifs))
		}
		start := i
		for i < len(line) && !sep(i) {
			i++
		}
		fields = append(fields, string(line[start:i]))
		skip()
		if i < len(line) && sep(i) && !blank(i) {
			i++
			skip()
		}
	}
	return fields
}

// lastField is what the last variable of a read gets: everything, less the blanks at the end and one
// separator if that ends the line.
func lastField(rest []rune, taken []bool, ifs string) string {
	end := len(rest)
	blank := func(i int) bool {
		return !taken[i] && strings.ContainsRune(ifs, rest[i]) && strings.ContainsRune(" \t\n", rest[i])
	}
	for end > 0 && blank(end-1) {
		end--
	}
	if end > 0 && !taken[end-1] && strings.ContainsRune(ifs, rest[end-1]) {
		others := false
		for i := range end - 1 {
			others = others || !taken[i] && strings.ContainsRune(ifs, rest[i])
		}
		if !others {
			end--
		}
	}
	return string(rest[:end])
}
