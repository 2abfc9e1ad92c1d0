package interp

import (
	"context"
	"io"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// onlyReader hides what else a reader can do, so that it is read as a stream.
type onlyReader struct{ r io.Reader }

func (o onlyReader) Read(p []byte) (int, error) { return o.r.Read(p) }

// ReadContext never waits.
func (o onlyReader) ReadContext(_ context.Context, p []byte) (int, error) { return o.r.Read(p) }

// hereDocument is the text of <<, <<- or <<<.
func (s *Shell) hereDocument(ctx context.Context, r *syntax.Redirect) (string, error) {
	if r.Op == syntax.WordHdoc {
		text, err := s.literal(ctx, r.Word)
		return text + "\n", err
	}
	if r.Hdoc == nil {
		return "", nil
	}
	body := r.Hdoc
	if r.Op == syntax.DashHdoc {
		body = withoutTabs(body)
	}
	if quotedDelimiter(r.Word) {
		if lit := body.Lit(); lit != "" {
			return lit, nil
		}
	}
	return s.document(ctx, body)
}

// quotedDelimiter reports whether a here-document is taken as it is.
func quotedDelimiter(w *syntax.Word) bool {
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.SglQuoted, *syntax.DblQuoted:
			return true
		case *syntax.Lit:
			if strings.Contains(p.Value, `\`) {
				return true
			}
		}
	}
	return false
}

// withoutTabs removes the tabs that lines begin with.
func withoutTabs(w *syntax.Word) *syntax.Word {
	c := *w
	c.Parts = nil
	start := true // of a line
	for _, part := range w.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			c.Parts = append(c.Parts, part)
			start = false
			continue
		}
		lines := strings.SplitAfter(lit.Value, "\n")
		for i, line := range lines {
			if start || i > 0 {
				lines[i] = strings.TrimLeft(line, "\t")
			}
		}
		l := *lit
		l.Value = strings.Join(lines, "")
		start = strings.HasSuffix(l.Value, "\n")
		c.Parts = append(c.Parts, &l)
	}
	return &c
}
