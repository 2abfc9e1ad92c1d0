package node

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/aiopslab/aiopslab/cloud/embedded/vfs"
)

// What a journal keeps. Older lines go.
const (
	journalLines  = 4000
	journalDetail = 2 // klog's verbosity; a kubelet's usual one
	kubeletUnit   = "kubelet"
	kubeletPID    = 655 // as the node's processes have it
)

// journal is what the services of a node have logged. It belongs to the machine, so it is gone with a
// restore. Nothing of it is the host's.
type journal struct {
	host string
	dir  string // of the host's, which nobody needs to know
	now  func() time.Time

	mu    sync.Mutex
	lines []journalLine
}

type journalLine struct {
	at   time.Time
	unit string
	text string
}

// logger returns a logger for the kubelet's code.
func (j *journal) logger() klog.Logger {
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(j), textlogger.Verbosity(journalDetail)))
}

// klogHeader is how klog begins a line: level and date, time, the process, and where in the code.
var klogHeader = regexp.MustCompile(`^([IWEF])\d{4} [\d:.]+ +\d+ `)

// Write takes a line of the kubelet's. The process that it comes from is the lab's, and so is its time zone.
func (j *journal) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		at := j.now().UTC()
		text := strings.TrimRight(string(line), "\n")
		text = klogHeader.ReplaceAllString(text,
			fmt.Sprintf("${1}%s %7d ", at.Format("0102 15:04:05.000000"), kubeletPID))
		text = strings.ReplaceAll(text, j.dir, kubeletDir)
		j.add(at, kubeletUnit, text)
	}
	return len(p), nil
}

func (j *journal) add(at time.Time, unit, text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, journalLine{at, unit, text})
	if extra := len(j.lines) - journalLines; extra > journalLines/4 {
		j.lines = append([]journalLine(nil), j.lines[extra:]...)
	}
}

// tree is the journal as the node's own tools read it: one file, with lines of time, source and text.
func (j *journal) tree() (*vfs.Tree, error) {
	t := vfs.NewTree(vfs.Options{Type: "tmpfs"})
	dir := "/" + machineID(j.host)
	if err := t.Root().Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	content := func() *bytes.Reader {
		j.mu.Lock()
		defer j.mu.Unlock()
		var b bytes.Buffer
		for _, l := range j.lines {
			fmt.Fprintf(&b, "%s\t%s[%d]\t%s\n", l.at.Format(time.RFC3339Nano), l.unit, kubeletPID, l.text)
		}
		return bytes.NewReader(b.Bytes())
	}
	return t, t.AddDevice(dir+"/system.journal", 0o640, vfs.Device{
		Open: func(int) (vfs.Stream, error) { return journalReader{content()}, nil },
		Size: func() int64 { return content().Size() },
	})
}

type journalReader struct{ *bytes.Reader }

func (journalReader) Write([]byte) (int, error) { return 0, syscall.EPERM }

// has reports whether a service logs here.
func (j *journal) has(unit string) bool { return unit == kubeletUnit }

// journalQuery selects lines. What is not set does not matter.
type journalQuery struct {
	units        []string
	since, until *time.Time
	tail         *int
	pattern      *regexp.Regexp
}

func (q journalQuery) selects(l journalLine) bool {
	for _, u := range q.units {
		if u == l.unit {
			return (q.since == nil || !l.at.Before(*q.since)) && (q.until == nil || !l.at.After(*q.until)) &&
				(q.pattern == nil || q.pattern.MatchString(l.text))
		}
	}
	return false
}

// write prints lines as journalctl --output=short-precise does.
func (j *journal) write(w io.Writer, q journalQuery) error {
	j.mu.Lock()
	lines := append([]journalLine(nil), j.lines...)
	j.mu.Unlock()
	var chosen []journalLine
	for _, l := range lines {
		if q.selects(l) {
			chosen = append(chosen, l)
		}
	}
	if q.tail != nil && len(chosen) > *q.tail {
		chosen = chosen[len(chosen)-*q.tail:]
	}
	if len(chosen) == 0 {
		_, err := io.WriteString(w, "-- No entries --\n")
		return err
	}
	for _, l := range chosen {
		if _, err := fmt.Fprintf(w, "%s %s %s[%d]: %s\n", l.at.Format("Jan 02 15:04:05.000000"), j.host, l.unit,
			kubeletPID, l.text); err != nil {
			return err
		}
	}
	return nil
}
