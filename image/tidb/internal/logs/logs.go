// Package logs writes lines as the programs of TiDB do: [time] [LEVEL] [file] [text] [key=value] ...
package logs

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Logger writes lines. Its methods may be called concurrently.
type Logger struct {
	mu   sync.Mutex
	w    io.Writer
	file string
}

// New returns a logger that names one file as the origin of its lines.
func New(w io.Writer, file string) *Logger { return &Logger{w: w, file: file} }

// Info writes a line of level INFO.
func (l *Logger) Info(text string, fields ...any) { l.Print("INFO", text, fields...) }

// Print writes a line. The fields are keys and values in turn.
func (l *Logger) Print(level, text string, fields ...any) {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s] [%s] [%s] [%s]", time.Now().UTC().Format("2006/01/02 15:04:05.000 -07:00"), level, l.file,
		quoted(text))
	for i := 0; i+1 < len(fields); i += 2 {
		fmt.Fprintf(&b, " [%s]", quoted(fmt.Sprintf("%v=%v", fields[i], fields[i+1])))
	}
	b.WriteByte('\n')
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = io.WriteString(l.w, b.String())
}

// quoted quotes what would not be read as one text.
func quoted(s string) string {
	if len(s) > 2000 {
		s = s[:2000] + "..."
	}
	if strings.ContainsAny(s, " []\"\n\t") {
		return strconv.Quote(s)
	}
	return s
}
