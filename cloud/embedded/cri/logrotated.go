package cri

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/cloud/embedded/vfs"
)

// rotatedAt is how the name of a file tells when it was rotated.
const rotatedAt = "20060102-150405"

// rotatedLog is what was in the file of a log before the one that there is. What comes right before is known, and the
// rest is made up when somebody looks, or lists the files: nearly nobody does. That is once, and of a bounded size.
type rotatedLog struct {
	at   time.Time
	more func() []cloud.Line // before the lines that are known

	once sync.Once
	text []byte // compressed; of the lines that are known, and then of all
	size int    // uncompressed
}

// rotateOut returns the file that was rotated when the next line came: with lines that are gone, the last of them up to
// a size, and with those before. These come from a function, and before them is how it began if they reach back so far.
func rotateOut(gone []cloud.Line, next time.Time, most int,
	before func(until time.Time, most int) (list []cloud.Line, begin bool), begin []cloud.Line,
) *rotatedLog {
	i, size := len(gone), 0
	for ; i > 0 && size < most; i-- {
		size += lineSize(gone[i-1].Text)
	}
	gone = gone[i:]
	until := next
	if len(gone) > 0 {
		until = gone[0].Time
	}
	l := &rotatedLog{at: next}
	l.keep(FormatLog(gone))
	// It must not hold the lines: they are a part of all that were made up, and nobody may ever look.
	l.more = func() []cloud.Line {
		if size >= most {
			return nil
		}
		list, all := before(until, most-size)
		slices.SortStableFunc(list, func(a, b cloud.Line) int { return a.Time.Compare(b.Time) })
		if all {
			list = slices.Concat(begin, list)
		}
		return list
	}
	return l
}

func (l *rotatedLog) keep(text []byte) { l.text, l.size = packed(text), len(text) }

// read returns the whole file.
func (l *rotatedLog) read() []byte {
	l.once.Do(func() {
		if list := l.more(); len(list) > 0 {
			text, _ := s2.Decode(nil, l.text) // It was encoded here.
			l.keep(append(FormatLog(list), text...))
		}
		l.more = nil
	})
	text, _ := s2.Decode(nil, l.text)
	return text
}

// length is how many bytes the file has.
func (l *rotatedLog) length() int64 {
	l.read()
	return int64(l.size)
}

// name is what the file is called beside that of a log.
func (l *rotatedLog) name(file string) string { return file + "." + l.at.UTC().Format(rotatedAt) }

// fileBefore is what was in the file before the one that there is; nil if it was not rotated.
func (l *Log) fileBefore() *rotatedLog {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rotated
}

// addRotated lets the file before the log be read where a kubelet leaves it.
func (c *Container) addRotated() error {
	l, file := c.log.fileBefore(), c.logFile()
	if l == nil || file == "" {
		return nil
	}
	file = l.name(file)
	err := c.runtime.logs.AddDevice(strings.TrimPrefix(file, logDir), 0o640, vfs.Device{
		Open: func(int) (vfs.Stream, error) { return &readOnly{bytes.NewReader(l.read())}, nil },
		Size: l.length,
	})
	if err != nil {
		return fmt.Errorf("add the file %s: %w", file, err)
	}
	return c.runtime.env().FS.Chtimes(file, l.at)
}
