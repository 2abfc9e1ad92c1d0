package logs

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// minSecret is how long a secret is at least; something shorter is found in any text.
	minSecret = 6
	blot      = "[secret]"
)

// cleaner writes lines without secrets, and without what a terminal would obey: the handler for JSON
// leaves in what is beyond ASCII, and some of that is control characters.
type cleaner struct {
	w       io.Writer
	secrets [][]byte
}

func clean(w io.Writer, secrets []string) cleaner {
	c := cleaner{w: w}
	for _, s := range secrets {
		if len(s) < minSecret {
			continue
		}
		quoted := strconv.Quote(s) // as a text has it
		encoded, _ := json.Marshal(s)
		c.secrets = append(c.secrets, []byte(s), []byte(quoted[1:len(quoted)-1]), encoded[1:len(encoded)-1])
	}
	slices.SortStableFunc(c.secrets, func(a, b []byte) int { return len(b) - len(a) }) // One may be a part of another.
	return c
}

// Write writes a line: handlers write each in one piece.
func (c cleaner) Write(b []byte) (int, error) {
	line := b
	for _, s := range c.secrets {
		line = bytes.ReplaceAll(line, s, []byte(blot))
	}
	if _, err := c.w.Write(printable(line)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// printable writes what is beyond ASCII and cannot be printed as JSON would write it. A handler has done
// so with the rest.
func printable(line []byte) []byte {
	hidden := func(r rune) bool { return r >= utf8.RuneSelf && !unicode.IsPrint(r) }
	if !bytes.ContainsFunc(line, hidden) {
		return line
	}
	var out []byte
	for _, r := range string(line) {
		if !hidden(r) {
			out = utf8.AppendRune(out, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			out = append(out, `\u`...)
			out = append(out, strconv.FormatUint(uint64(unit)|1<<16, 16)[1:]...)
		}
	}
	return out
}
