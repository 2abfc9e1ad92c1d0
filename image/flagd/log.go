package flagd

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// journal writes lines as flagd's logger does.
type journal struct {
	mu   sync.Mutex
	out  io.Writer
	json bool
}

func (j *journal) line(level, format string, args ...any) {
	now, text := time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), fmt.Sprintf(format, args...)
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.json {
		fmt.Fprintf(j.out, "%s\t%s\t%s\n", now, level, text)
		return
	}
	data, _ := json.Marshal(struct {
		Level string `json:"level"`
		TS    string `json:"ts"`
		Msg   string `json:"msg"`
	}{level, now, text}) // It is made of texts.
	fmt.Fprintf(j.out, "%s\n", data)
}

func (j *journal) info(format string, args ...any)  { j.line("info", format, args...) }
func (j *journal) warn(format string, args ...any)  { j.line("warn", format, args...) }
func (j *journal) error(format string, args ...any) { j.line("error", format, args...) }
