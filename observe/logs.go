package observe

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	logReaders = 8        // how many logs are read at once
	maxLine    = 64 << 10 // bytes; the rest of a longer line is the next line
)

// serviceLabels are the labels of a pod that may name its service.
var serviceLabels = []string{
	"service", "io.kompose.service", "app", "app.kubernetes.io/name", "name", "k8s-app", "job-name",
}

// LogQuery selects log lines. Fields that are not set select everything.
type LogQuery struct {
	Namespace string
	Service   string    // value of a label that names the service, or a pod's name
	From, To  time.Time // From is inclusive, To exclusive
	Level     string    // "debug", "info", "warn", "error" or "fatal": lines of this level or worse
	Text      string    // part of the line, whatever the case
	Previous  bool      // of the containers before their last restart as well
	Limit     int       // the newest so many lines
}

// LogLine is a line of a container's log.
type LogLine struct {
	Time      time.Time `json:"time"`
	Namespace string    `json:"namespace"`
	Pod       string    `json:"pod"`
	Container string    `json:"container"`
	Node      string    `json:"node"`
	Level     string    `json:"level,omitempty"` // "" if the line does not tell
	Text      string    `json:"text"`
}

// Logs returns the lines a query selects, in the order of time.
func (o *Observer) Logs(ctx context.Context, q LogQuery) ([]LogLine, error) {
	atLeast := slices.Index(levels, strings.ToLower(q.Level))
	if q.Level != "" && atLeast < 0 {
		return nil, fmt.Errorf("log level %q: use one of %s", q.Level, strings.Join(levels, ", "))
	}
	pods, err := o.client.CoreV1().Pods(q.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	q.Text = strings.ToLower(q.Text)
	if o.loki != nil {
		var names []string
		for i := range pods.Items {
			if isService(&pods.Items[i], q.Service) {
				names = append(names, pods.Items[i].Name)
			}
		}
		return o.loki.logs(ctx, q, atLeast, names)
	}
	var mu sync.Mutex
	var all []LogLine
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(logReaders)
	for i := range pods.Items {
		p := &pods.Items[i]
		if !isService(p, q.Service) {
			continue
		}
		for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
			for _, previous := range []bool{true, false} {
				if previous && !q.Previous {
					continue
				}
				g.Go(func() error {
					lines, err := o.readLog(ctx, p, c.Name, previous, &q, atLeast)
					mu.Lock()
					defer mu.Unlock()
					all = append(all, lines...)
					return err
				})
			}
		}
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b LogLine) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Pod, b.Pod))
	})
	if q.Limit > 0 && len(all) > q.Limit {
		all = all[len(all)-q.Limit:]
	}
	return all, nil
}

func isService(p *v1.Pod, name string) bool {
	return name == "" || p.Name == name || slices.ContainsFunc(serviceLabels, func(l string) bool {
		return p.Labels[l] == name
	})
}

// readLog reads the log of one container. One that has not started has none.
func (o *Observer) readLog(ctx context.Context, p *v1.Pod, container string, previous bool, q *LogQuery,
	atLeast int,
) ([]LogLine, error) {
	opts := &v1.PodLogOptions{Container: container, Previous: previous, Timestamps: true}
	if !q.From.IsZero() {
		opts.SinceTime = &metav1.Time{Time: q.From} // The API has seconds only.
	}
	if q.Limit > 0 && atLeast < 0 && q.Text == "" && q.To.IsZero() { // Every line counts.
		opts.TailLines = ptr.To(int64(q.Limit))
	}
	r, err := o.client.CoreV1().Pods(p.Namespace).GetLogs(p.Name, opts).Stream(ctx)
	switch {
	case apierrors.IsBadRequest(err), apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the log of %s/%s: %w", p.Namespace, p.Name, err)
	}
	defer r.Close()
	var lines []LogLine
	for s := bufio.NewReaderSize(r, maxLine); ; {
		b, err := s.ReadSlice('\n')
		if len(b) > 0 {
			stamp, text, _ := strings.Cut(strings.TrimRight(string(b), "\r\n"), " ")
			at, perr := time.Parse(time.RFC3339Nano, stamp)
			if perr != nil && len(lines) > 0 { // The rest of a line that was too long.
				at, text = lines[len(lines)-1].Time, stamp+" "+text
			}
			l := LogLine{at, p.Namespace, p.Name, container, p.Spec.NodeName, levelOf(text), text}
			if q.selects(&l, atLeast) {
				lines = append(lines, l)
			}
			if q.Limit > 0 && len(lines) >= 2*q.Limit { // Nobody is going to see the older ones.
				lines = slices.Clone(lines[len(lines)-q.Limit:])
			}
		}
		if err != nil && err != bufio.ErrBufferFull {
			return lines, ctx.Err() // A log that breaks off is what there is of it.
		}
	}
}

func (q *LogQuery) selects(l *LogLine, atLeast int) bool {
	return !l.Time.Before(q.From) && (q.To.IsZero() || l.Time.Before(q.To)) &&
		slices.Index(levels, l.Level) >= atLeast &&
		(q.Text == "" || strings.Contains(strings.ToLower(l.Text), q.Text))
}

// AtLeast reports whether a line of a level is to be shown when only those of least, or worse, are asked for. Empty is
// a level that a line does not tell, and asks for all.
func AtLeast(level, least string) bool {
	return slices.Index(levels, level) >= slices.Index(levels, least)
}

// levels are the names of log levels, the worst last.
var levels = []string{"debug", "info", "warn", "error", "fatal"}

// levelWords are what loggers write for a level.
var levelWords = map[string]string{
	"debug": "debug", "dbg": "debug", "trace": "debug", "trc": "debug", "d": "debug",
	"info": "info", "inf": "info", "information": "info", "notice": "info", "i": "info",
	"warn": "warn", "wrn": "warn", "warning": "warn", "w": "warn",
	"error": "error", "err": "error", "e": "error", "severe": "error",
	"fatal": "fatal", "ftl": "fatal", "panic": "fatal", "pnc": "fatal", "critical": "fatal", "crit": "fatal",
	"emerg": "fatal", "alert": "fatal", "f": "fatal",
}

// levelWindow is how far into a line its level is looked for, in bytes. Later words are the message.
const levelWindow = 160

// LevelOf returns the level that a line of a log tells: "debug", "info", "warn", "error" or "fatal", or "".
func LevelOf(line string) string { return levelOf(line) }

// levelOf returns the level a line tells, or "". It understands a field of JSON or logfmt ("level",
// "lvl", "severity", MongoDB's "s"), klog's first letter, and a word in front of the message.
func levelOf(line string) string {
	head := line[:min(len(line), levelWindow)]
	for _, key := range []string{`"level":"`, `"lvl":"`, `"severity":"`, `"s":"`, `level=`, `lvl=`, `severity=`} {
		if _, rest, ok := strings.Cut(head, key); ok {
			return levelWords[strings.ToLower(word(rest))]
		}
	}
	if len(head) > 5 && strings.ContainsRune("IWEF", rune(head[0])) && isDigits(head[1:5]) {
		return levelWords[strings.ToLower(head[:1])]
	}
	for _, f := range strings.FieldsFunc(head, func(r rune) bool { return strings.ContainsRune(" \t[]<>|:()", r) }) {
		// Only a word in capitals, or one that stands for nothing else, is a level.
		l := levelWords[strings.ToLower(f)]
		if l != "" && len(f) > 2 && (f == strings.ToUpper(f) || strings.Contains(head, "["+f+"]") ||
			strings.Contains(head, "<"+f+">")) {
			return l
		}
	}
	if strings.HasPrefix(head, "panic:") {
		return "fatal"
	}
	return ""
}

// word is the letters a text begins with, quotes aside.
func word(s string) string {
	s = strings.TrimLeft(s, `"`)
	end := strings.IndexFunc(s, func(r rune) bool { return r < 'A' || r > 'z' })
	if end < 0 {
		return s
	}
	return s[:end]
}

func isDigits(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}
