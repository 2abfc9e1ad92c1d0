package cri

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/aiopslab/aiopslab/cloud"
)

const (
	logChunk    = 64 << 10 // bytes of log that are compressed together
	maxLog      = 10 << 20 // bytes a container's log may hold; the kubelet rotates at this size
	maxLine     = 16 << 10 // containerd breaks longer lines
	logTime     = "2006-01-02T15:04:05.000000000Z07:00"
	fullLine    = "F"
	partialLine = "P"
)

// Log is the output of one container, in the format of the CRI's log files: a line of
// "time stream tag text" for every line of output. Old lines are kept compressed; the oldest go when
// there are too many.
type Log struct {
	now func() time.Time

	mu      sync.Mutex
	sealed  []logBlock
	current []byte
	size    int   // bytes in sealed, uncompressed
	dropped int64 // bytes that are gone
	last    time.Time
	pending map[string][]byte // unfinished lines by stream
	closed  bool
	holding bool // what is written is held back
	held    []heldText
	heldLen int
	changed chan struct{} // closed at each change, then replaced

	restored int64        // how far a saved log goes, in bytes; -1 if there was none, or it is no matter any more
	told     []cloud.Line // of the past, by the program
	toldLen  int
	rotated  *rotatedLog // what was in the file before, if it was rotated
}

type logBlock struct {
	data []byte // compressed
	size int    // uncompressed
}

// NewLog returns an empty log.
func NewLog(now func() time.Time) *Log {
	return &Log{now: now, pending: map[string][]byte{}, changed: make(chan struct{}), restored: -1}
}

// heldText is what was written to a log that held it back.
type heldText struct {
	stream string
	text   []byte
}

// maxHeld is how many bytes a log holds back; what comes first is kept.
const maxHeld = 64 << 10

// restoreLog returns a log that has the lines of a saved one. Until its release it holds back what is
// written: a program that is restored says again how it starts, which is in the log already. If the
// program ends before, what it said is logged.
func restoreLog(now func() time.Time, text []byte) *Log {
	l := NewLog(now)
	l.holding = true
	for len(text) > 0 {
		n := len(text)
		if n > logChunk {
			n = bytes.LastIndexByte(text[:logChunk], '\n') + 1 // No line is as long as a chunk.
		}
		l.current = append(l.current, text[:n]...)
		l.seal()
		text = text[n:]
	}
	l.restored = l.dropped + int64(l.size)
	return l
}

// isHolding reports whether what is written is held back.
func (l *Log) isHolding() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holding
}

// release forgets what was held back, and logs what comes.
func (l *Log) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holding, l.held, l.heldLen = false, nil, 0
}

// packed returns a text compressed, in no more memory than that takes: what the encoder returns has room for a text
// that does not get smaller, and a log is kept for long.
func packed(text []byte) []byte { return bytes.Clone(s2.Encode(nil, text)) }

// text returns all lines.
func (l *Log) text() []byte {
	text, _, _, _ := l.from(0)
	return text
}

// Writer returns a writer whose lines are logged under a stream's name.
func (l *Log) Writer(stream string) io.Writer { return logWriter{l, stream} }

type logWriter struct {
	log    *Log
	stream string
}

func (w logWriter) Write(p []byte) (int, error) {
	l := w.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, io.ErrClosedPipe
	}
	if l.holding {
		if l.heldLen += len(p); l.heldLen <= maxHeld {
			l.held = append(l.held, heldText{w.stream, bytes.Clone(p)})
		}
		return len(p), nil
	}
	l.write(w.stream, p)
	return len(p), nil
}

// write adds lines, and keeps what has no end yet. It is called with l.mu held.
func (l *Log) write(stream string, p []byte) {
	rest := append(l.pending[stream], p...)
	for {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 && len(rest) < maxLine {
			break
		}
		if i < 0 || i > maxLine {
			l.append(stream, partialLine, rest[:maxLine])
			rest = rest[maxLine:]
			continue
		}
		l.append(stream, fullLine, rest[:i])
		rest = rest[i+1:]
	}
	l.pending[stream] = bytes.Clone(rest)
	l.notify()
}

// append adds a line. It is called with l.mu held.
func (l *Log) append(stream, tag string, text []byte) { l.appendAt(l.now(), stream, tag, text) }

func (l *Log) appendAt(t time.Time, stream, tag string, text []byte) {
	if t = t.UTC(); !t.After(l.last) {
		t = l.last.Add(1) // Times tell lines apart.
	}
	l.last = t
	l.current = appendLine(l.current, t, stream, tag, text)
	if len(l.current) >= logChunk {
		l.seal()
	}
}

// seal compresses the current lines. It is called with l.mu held.
func (l *Log) seal() {
	l.sealed = append(l.sealed, logBlock{packed(l.current), len(l.current)})
	l.size += len(l.current)
	l.current = make([]byte, 0, 4096)
	for l.size > maxLog {
		l.size -= l.sealed[0].size
		l.dropped += int64(l.sealed[0].size)
		l.sealed = l.sealed[1:]
	}
}

func (l *Log) notify() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// Close ends the log and its followers. A line without an end stays without one, as containerd has it.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	for _, h := range l.held { // The program did not get as far as it was.
		l.write(h.stream, h.text)
	}
	l.holding, l.held = false, nil
	for _, stream := range []string{"stdout", "stderr"} {
		if rest := l.pending[stream]; len(rest) > 0 {
			l.append(stream, partialLine, rest)
		}
	}
	l.pending, l.closed = nil, true
	l.notify()
}

// length returns how many bytes the log holds.
func (l *Log) length() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(l.size + len(l.current))
}

// LogOptions select what to read of a log, with the meaning they have for kubectl.
type LogOptions struct {
	Since      time.Time
	Tail       int64 // lines from the end; negative is all
	LimitBytes int64 // 0 is no limit
	Timestamps bool
	Follow     bool
	Stream     string // "stdout", "stderr" or "" for both
}

// logLine is one parsed line.
type logLine struct {
	time   time.Time
	stamp  string
	stream string
	text   []byte // with its newline, unless it is partial
}

// from returns the text from an offset on, the offset after it, and what tells of more. Offsets
// count what was dropped.
func (l *Log) from(offset int64) (text []byte, next int64, closed bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.read(offset), l.dropped + int64(l.size+len(l.current)), l.closed, l.changed
}

// read returns the text from an offset on. It is called with l.mu held.
func (l *Log) read(offset int64) (text []byte) {
	at := l.dropped
	for _, b := range l.sealed {
		if end := at + int64(b.size); offset < end {
			if d, err := s2.Decode(nil, b.data); err == nil {
				text = append(text, d[max(0, offset-at):]...)
			}
		}
		at += int64(b.size)
	}
	return append(text, l.current[min(max(0, offset-at), int64(len(l.current))):]...)
}

// Read writes the selected lines to w. With Follow it goes on until the log is closed or ctx ends.
func (l *Log) Read(ctx context.Context, w io.Writer, opts LogOptions) error {
	out := &limitedWriter{w: w, left: opts.LimitBytes, limited: opts.LimitBytes > 0}
	text, offset, closed, changed := l.from(0)
	lines := parseLog(text, opts.Stream)
	if opts.Tail >= 0 && int64(len(lines)) > opts.Tail {
		lines = lines[int64(len(lines))-opts.Tail:]
	}
	for {
		for _, line := range lines {
			if line.time.Before(opts.Since) {
				continue
			}
			if opts.Timestamps {
				if _, err := io.WriteString(out, line.stamp+" "); err != nil {
					return out.end(err)
				}
			}
			if _, err := out.Write(line.text); err != nil {
				return out.end(err)
			}
		}
		if !opts.Follow || closed {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
		text, offset, closed, changed = l.from(offset)
		lines = parseLog(text, opts.Stream)
	}
}

func parseLog(text []byte, stream string) (lines []logLine) {
	s := bufio.NewScanner(bytes.NewReader(text))
	s.Buffer(nil, 2*maxLine)
	for s.Scan() {
		parts := bytes.SplitN(s.Bytes(), []byte(" "), 4)
		if len(parts) < 4 || stream != "" && !strings.EqualFold(string(parts[1]), stream) {
			continue
		}
		t, err := time.Parse(logTime, string(parts[0]))
		if err != nil {
			continue
		}
		line := logLine{time: t, stamp: string(parts[0]), stream: string(parts[1]), text: bytes.Clone(parts[3])}
		if string(parts[2]) == fullLine {
			line.text = append(line.text, '\n')
		}
		lines = append(lines, line)
	}
	return lines
}

// ParseLog returns the lines of a log in the format of the CRI's log files.
func ParseLog(text []byte) (lines []cloud.Line) {
	for _, l := range parseLog(text, "") {
		t, full := strings.CutSuffix(string(l.text), "\n")
		lines = append(lines, cloud.Line{Time: l.time, Stream: l.stream, Partial: !full, Text: t})
	}
	return lines
}

// FormatLog is the inverse of ParseLog.
func FormatLog(lines []cloud.Line) (text []byte) {
	for _, l := range lines {
		tag := fullLine
		if l.Partial {
			tag = partialLine
		}
		text = appendLine(text, l.Time, l.Stream, tag, l.Text)
	}
	return text
}

func appendLine[T string | []byte](b []byte, t time.Time, stream, tag string, text T) []byte {
	b = t.UTC().AppendFormat(b, logTime)
	b = append(append(append(append(append(b, ' '), stream...), ' '), tag...), ' ')
	return append(append(b, text...), '\n')
}

// limitedWriter stops after a number of bytes.
type limitedWriter struct {
	w       io.Writer
	left    int64
	limited bool
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	if !w.limited {
		return w.w.Write(p)
	}
	if int64(len(p)) > w.left {
		p = p[:w.left]
	}
	w.left -= int64(len(p))
	if _, err := w.w.Write(p); err != nil {
		return 0, err
	}
	if w.left == 0 {
		return len(p), io.EOF
	}
	return len(p), nil
}

// end turns the error that ends a limited read into none.
func (w *limitedWriter) end(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}
