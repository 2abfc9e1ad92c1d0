package stream

import (
	"bufio"
	"io"
)

// Lines reads a text line by line, however long the lines are.
type Lines struct {
	r    *bufio.Reader
	sep  byte
	long []byte
	hold func(int) // states memory; nil if nobody cares
	held int
}

// holder is a source that wants to know what is kept of it.
type holder interface{ Hold(n int) }

func newLines(r io.Reader, sep byte) *Lines {
	l := &Lines{r: bufio.NewReaderSize(r, 64<<10), sep: sep}
	if h, ok := r.(holder); ok {
		l.hold = h.Hold
	}
	return l
}

// keep makes a part of a line that does not fit the buffer last.
func (l *Lines) keep(part []byte) {
	l.long = append(l.long, part...)
	if grown := cap(l.long) - l.held; l.hold != nil && grown > 0 {
		l.held += grown
		l.hold(grown)
	}
}

// NewLines returns the lines of r.
func NewLines(r io.Reader) *Lines { return newLines(r, '\n') }

// NewRecords returns the parts of r that end in sep.
func NewRecords(r io.Reader, sep byte) *Lines { return newLines(r, sep) }

// Next returns the next line without its newline, and whether it had one: the last line of a text may
// lack it. The line is valid until the next call. The error is io.EOF at the end.
func (l *Lines) Next() (line []byte, ended bool, err error) {
	l.long = l.long[:0]
	for {
		part, err := l.r.ReadSlice(l.sep)
		if err == bufio.ErrBufferFull {
			l.keep(part)
			continue
		}
		if len(l.long) > 0 {
			l.keep(part)
			part = l.long
		}
		if err == nil {
			return part[:len(part)-1], true, nil
		}
		if err == io.EOF && len(part) > 0 {
			return part, false, nil
		}
		return part, false, err
	}
}

// Rest returns what comes after the last line that was read.
func (l *Lines) Rest() io.Reader { return l.r }

// Buffered is how much of Rest was already read from the source.
func (l *Lines) Buffered() int { return l.r.Buffered() }
