package tty

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// ErrInterrupted is the result of ReadLine after Ctrl-C.
var ErrInterrupted = errors.New("interrupted")

// History is what was entered before, the oldest first.
type History []string

// Add notes a line, unless it is empty or repeats the last one.
func (h *History) Add(line string) {
	if line != "" && (len(*h) == 0 || (*h)[len(*h)-1] != line) {
		*h = append(*h, line)
	}
}

// editor is a line that is being edited.
type editor struct {
	t       *Terminal
	prompt  string
	line    []byte
	cursor  int // in line
	history History
	entry   int // in history; len(history) is the line itself
	own     []byte
}

// ReadLine shows a prompt and lets the user edit a line, which it returns without its newline. The
// error is io.EOF after Ctrl-D on an empty line or when the client has gone, ErrInterrupted after
// Ctrl-C, or the context's.
func (t *Terminal) ReadLine(ctx context.Context, prompt string, history History) (string, error) {
	t.setRaw(true)
	defer t.setRaw(false)
	e := &editor{t: t, prompt: prompt, history: history, entry: len(history)}
	e.show(prompt)
	for {
		key, err := e.next(ctx)
		if err != nil {
			return "", err
		}
		switch done, err := e.press(ctx, key); {
		case err != nil:
			return "", err
		case done:
			return string(e.line), nil
		}
	}
}

func (e *editor) show(s string) { io.WriteString(e.t.out, s) }

func (e *editor) next(ctx context.Context) (byte, error) {
	var b [1]byte
	_, err := e.t.read(ctx, b[:])
	return b[0], err
}

// press reports whether the line is complete.
func (e *editor) press(ctx context.Context, key byte) (done bool, err error) {
	switch key {
	case '\r', '\n':
		e.show("\r\n")
		return true, nil
	case keyInterrupt:
		e.show("^C\r\n")
		return false, ErrInterrupted
	case keyEOF:
		if len(e.line) == 0 {
			e.show("\r\n")
			return false, io.EOF
		}
		e.remove(e.cursor, e.after(e.cursor))
	case keyBackspace, keyDelete:
		e.remove(e.before(e.cursor), e.cursor)
	case keyKillLine:
		e.remove(0, e.cursor)
	case keyKillWord:
		start := len(bytes.TrimRight(e.line[:e.cursor], " "))
		e.remove(bytes.LastIndexByte(e.line[:start], ' ')+1, e.cursor)
	case 'K' - '@':
		e.remove(e.cursor, len(e.line))
	case 'A' - '@':
		e.move(0)
	case 'E' - '@':
		e.move(len(e.line))
	case 'B' - '@':
		e.move(e.before(e.cursor))
	case 'F' - '@':
		e.move(e.after(e.cursor))
	case 'P' - '@':
		e.recall(-1)
	case 'N' - '@':
		e.recall(1)
	case 'L' - '@':
		e.show("\x1b[H\x1b[J")
		e.redraw()
	case keyEscape:
		return false, e.escape(ctx)
	default:
		if key >= ' ' {
			e.insert(key)
		}
	}
	return false, nil
}

// escape handles the keys that send a sequence, as the arrows do.
func (e *editor) escape(ctx context.Context) error {
	if b, err := e.next(ctx); err != nil || b != '[' && b != 'O' {
		return err
	}
	var number int
	for {
		b, err := e.next(ctx)
		if err != nil {
			return err
		}
		switch {
		case b >= '0' && b <= '9':
			number = number*10 + int(b-'0')
			continue
		case b == ';':
			number = 0
			continue
		case b == 'A':
			e.recall(-1)
		case b == 'B':
			e.recall(1)
		case b == 'C':
			e.move(e.after(e.cursor))
		case b == 'D':
			e.move(e.before(e.cursor))
		case b == 'H', b == '~' && (number == 1 || number == 7):
			e.move(0)
		case b == 'F', b == '~' && (number == 4 || number == 8):
			e.move(len(e.line))
		case b == '~' && number == 3:
			e.remove(e.cursor, e.after(e.cursor))
		}
		return nil
	}
}

// before and after are the places one character to the left and right.
func (e *editor) before(i int) int {
	_, n := utf8.DecodeLastRune(e.line[:i])
	return i - n
}

func (e *editor) after(i int) int {
	_, n := utf8.DecodeRune(e.line[i:])
	return i + n
}

func (e *editor) insert(b byte) {
	e.line = append(e.line[:e.cursor], append([]byte{b}, e.line[e.cursor:]...)...)
	e.cursor++
	if e.cursor == len(e.line) {
		e.show(string([]byte{b}))
		return
	}
	e.redraw()
}

func (e *editor) remove(from, to int) {
	if from == to {
		return
	}
	atEnd := to == len(e.line) && to == e.cursor
	n := utf8.RuneCount(e.line[from:to])
	e.line = append(e.line[:from], e.line[to:]...)
	if e.cursor = from; atEnd && n == 1 {
		e.show("\b \b")
		return
	}
	e.redraw()
}

func (e *editor) move(to int) {
	e.cursor = to
	e.redraw()
}

// recall replaces the line by another one of the history.
func (e *editor) recall(step int) {
	to := e.entry + step
	if to < 0 || to > len(e.history) {
		return
	}
	if e.entry == len(e.history) {
		e.own = e.line
	}
	if e.entry = to; to == len(e.history) {
		e.line = e.own
	} else {
		e.line = []byte(e.history[to])
	}
	e.cursor = len(e.line)
	e.redraw()
}

func (e *editor) redraw() {
	e.show("\r" + e.prompt + string(e.line) + "\x1b[K")
	if n := utf8.RuneCount(e.line[e.cursor:]); n > 0 {
		e.show(fmt.Sprintf("\x1b[%dD", n))
	}
}
