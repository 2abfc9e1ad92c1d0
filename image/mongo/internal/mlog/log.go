// Package mlog writes the server's log: a line of JSON for each event, with the event's number.
package mlog

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
	"github.com/aiopslab/aiopslab/kit/past"
)

// The components that log.
const (
	Access   = "ACCESS"
	Command  = "COMMAND"
	Control  = "CONTROL"
	FTDC     = "FTDC"
	Index    = "INDEX"
	Network  = "NETWORK"
	Repl     = "REPL"
	Sharding = "SHARDING"
	Storage  = "STORAGE"
	Default  = "-"
)

// keep is how many lines getLog can show.
const keep = 1024

// A line begins with its time.
const dateBegin, dateLayout = `{"t":{"$date":"`, "2006-01-02T15:04:05.000-07:00"

// Log is safe for concurrent use.
type Log struct {
	mu       sync.Mutex
	w        io.Writer
	now      func() time.Time
	recent   []string
	total    int
	warnings []string // those of the start
}

// New returns a log on a stream.
func New(w io.Writer) *Log { return &Log{w: w, now: time.Now} }

// Info writes an event. The context is the name of the thread it happens in.
func (l *Log) Info(component string, id int, ctx, msg string, attr bson.D) {
	l.write("I", component, id, ctx, msg, attr, nil)
}

// Warn writes an event somebody should look at.
func (l *Log) Warn(component string, id int, ctx, msg string, attr bson.D) {
	l.write("W", component, id, ctx, msg, attr, nil)
}

// StartupWarning writes a warning that getLog keeps.
func (l *Log) StartupWarning(component string, id int, msg string) {
	line := l.write("W", component, id, "initandlisten", msg, nil, []string{"startupWarnings"})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.warnings = append(l.warnings, line)
}

// Error writes a failure.
func (l *Log) Error(component string, id int, ctx, msg string, attr bson.D) {
	l.write("E", component, id, ctx, msg, attr, nil)
}

// Fatal writes a failure the server does not survive.
func (l *Log) Fatal(component string, id int, ctx, msg string, attr bson.D) {
	l.write("F", component, id, ctx, msg, attr, nil)
}

// At returns the line of an event that happened at a time, without writing it.
func (l *Log) At(t time.Time, component string, id int, ctx, msg string, attr bson.D) string {
	return format(t, "I", component, id, ctx, msg, attr, nil)
}

func format(t time.Time, severity, component string, id int, ctx, msg string, attr bson.D, tags []string) string {
	var b strings.Builder
	c, n := `"`+component+`",`, fmt.Sprintf("%d,", id)
	fmt.Fprintf(&b, dateBegin+`%s"},"s":"%s",  "c":%-11s "id":%-8s "ctx":%s,"msg":%s`,
		t.UTC().Format(dateLayout), severity, c, n, quote(ctx), quote(msg))
	if len(attr) > 0 {
		b.WriteString(`,"attr":`)
		writeJSON(&b, value.Of(attr))
	}
	if len(tags) > 0 {
		fmt.Fprintf(&b, `,"tags":["%s"]`, strings.Join(tags, `","`))
	}
	b.WriteString("}")
	return b.String()
}

func (l *Log) write(severity, component string, id int, ctx, msg string, attr bson.D, tags []string) string {
	line := format(l.now(), severity, component, id, ctx, msg, attr, tags)
	l.mu.Lock()
	defer l.mu.Unlock()
	io.WriteString(l.w, line+"\n")
	l.total++
	if l.recent = append(l.recent, line); len(l.recent) > keep {
		l.recent = append([]string(nil), l.recent[keep/4:]...)
	}
	return line
}

// Age moves what getLog shows of the time before a moment: it is of a start that was longer ago.
func (l *Log) Age(until time.Time, by time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, list := range [][]string{l.recent, l.warnings} {
		for i, line := range list {
			t, err := time.Parse(dateLayout, line[len(dateBegin):len(dateBegin)+len(dateLayout)])
			if err == nil && t.Before(until) {
				list[i] = past.Move(line, past.Stamps(line, t), by)
			}
		}
	}
}

// Recent returns the last lines and how many there were in all.
func (l *Log) Recent() (lines []string, total int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string{}, l.recent...), l.total
}

// StartupWarnings returns the warnings of the start.
func (l *Log) StartupWarnings() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string{}, l.warnings...)
}
