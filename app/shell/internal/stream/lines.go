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
}

// NewLines returns the lines of r.
func NewLines(r io.Reader) *Lines { return &Lines{r: bufio.NewReaderSize(r, 64<<10), sep: '\n'} }

// NewRecords returns the parts of r that end in sep.
func NewRecords(r io.Reader, sep byte) *Lines {
	return &Lines{r: bufio.NewReaderSize(r, 64<<10), sep: sep}
}

// Next returns the next line without its newline, and whether it had one: the last line of a text may
// lack it. The line is valid until the next call. The error is io.EOF at the end.
func (l *Lines) Next() (line []byte, ended bool, err error) {
	l.long = l.long[:0]
	for {
		part, err := l.r.ReadSlice(l.sep)
		if err == bufio.ErrBufferFull {
			l.long = append(l.long, part...)
			continue
		}
		if len(l.long) > 0 {
			l.long = append(l.long, part...)
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
