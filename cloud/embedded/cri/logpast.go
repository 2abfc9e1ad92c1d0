package cri

import (
	"cmp"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"slices"
	"time"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/kit/past"
)

const (
	// maxPast is how long the past of a log gets before it was rotated, in bytes, and maxEnded that of a container
	// that has ended. Then it has an eighth of that at least.
	maxPast  = 2 << 20
	maxEnded = 512 << 10
	// settling is how long a program took to write what it usually does.
	settling = 10 * time.Second
)

// unusual are lines that nobody writes all the time: trouble, and what stores say when others start.
var unusual = regexp.MustCompile(`\b(ERR|WRN|FTL|ERROR|WARN|WARNING|FATAL|PANIC)\b|level"?[=:]"?(warn|error|fatal)|` +
	`\[(warn|error|crit|alert|emerg)\]|"s":"[WEF]"|Slow query|"c":"(NETWORK|ACCESS|STORAGE|INDEX)"|` +
	`^\d+:[A-Z] \d\d [A-Z][a-z]{2} \d{4}`)

// recollect takes a line that a restored program would have written, the last one first.
func (l *Log) recollect(at time.Time, line string) (further bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.restored < 0 {
		return false
	}
	l.told = append(l.told, cloud.Line{Time: at, Text: line})
	l.toldLen += lineSize(line)
	return l.toldLen < maxPast
}

// lineSize is how many bytes a line takes.
func lineSize(text string) int { return len(text) + len(logTime) + len(" stdout F \n") }

// age has a restored log reach back: with what its program has told of the past, and with lines like those that come
// under the usual load. What was written before there was that load is not shown any more: it was of the start. What
// is drawn depends on the name. It returns what the program says all the time.
func (l *Log) age(p *past.Past, started time.Time, name string) (said manner) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.restored < 0 || l.closed {
		return manner{}
	}
	text := l.read(0)
	begin := min(max(0, l.restored-l.dropped), int64(len(text)))
	old, live := ParseLog(text[:begin]), ParseLog(text[begin:])
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // It never fails.
	r := rand.New(rand.NewPCG(p.Seed, h.Sum64()))
	examples := usual(p, live, l.told)
	said = manner{started, examples, slices.Clone(l.told)}
	lines, _ := again(p, examples, started, p.Loaded, maxPast, r)
	lines, gone := after(old, append(l.told, lines...), maxPast, r)
	if len(gone) > 0 {
		told := l.toldLen < maxPast // all of it
		l.rotated = rotateOut(gone, lines[0].Time, maxPast, func(until time.Time, most int) ([]cloud.Line, bool) {
			list, all := again(p, examples, started, until, most, r)
			return list, all && told
		}, old)
		old = nil
	}
	live = slices.DeleteFunc(live, func(x cloud.Line) bool { return x.Time.Before(p.Loaded) })
	l.rewrite(slices.Concat(old, lines, live))
	return said
}

// manner is what a program says all the time: lines that come again, and what it has told of the past.
type manner struct {
	started  time.Time
	examples []example
	told     []cloud.Line
}

// ageEnded has the log of a container that has ended reach from its start to its end. Its successor says the same as it
// did, but for what it has told of that time itself. What is killed says nothing at its end.
func (l *Log) ageEnded(p *past.Past, said manner, started, finished time.Time, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.restored < 0 {
		return
	}
	old := ParseLog(l.read(0))
	h := fnv.New64a()
	_, _ = h.Write([]byte("before " + name)) // It never fails.
	r := rand.New(rand.NewPCG(p.Seed, h.Sum64()))
	lines, _ := again(p, said.examples, started, finished, maxPast, r)
	if len(l.told) > 0 {
		said.told = nil
	}
	// What a program does every minute, it does every minute since its start, until its end.
	by := started.Sub(said.started)
	by += (finished.Sub(p.Loaded) - by).Truncate(time.Minute) + time.Minute
	out := func(at time.Time) bool { return at.Before(started.Add(settling)) || !at.Before(finished) }
	for _, x := range said.told {
		if at := x.Time.Add(by); !out(at) { // Of many lines few are of that time, and stamps take long to find.
			x.Text, x.Time = past.Move(x.Text, past.Stamps(x.Text, x.Time), by), at
			lines = append(lines, x)
		}
	}
	lines = slices.DeleteFunc(append(lines, l.told...), func(x cloud.Line) bool { return out(x.Time) })
	lines, gone := after(old, lines, maxEnded, r)
	if len(gone) > 0 {
		l.rotated = rotateOut(gone, lines[0].Time, maxEnded, func(until time.Time, most int) ([]cloud.Line, bool) {
			return again(p, said.examples, started, until, most, r)
		}, old)
		old = nil
	}
	l.rewrite(slices.Concat(old, lines))
}

// after orders lines that come after those that there are, on the stream that these are on. If they are too many, those
// that come first are not there any more: they are gone.
func after(old, lines []cloud.Line, most int, r *rand.Rand) (kept, gone []cloud.Line) {
	slices.SortStableFunc(lines, func(a, b cloud.Line) int { return a.Time.Compare(b.Time) })
	last := cloud.Line{Stream: "stdout"}
	if len(old) > 0 {
		last = old[len(old)-1]
	}
	lines = slices.DeleteFunc(lines, func(x cloud.Line) bool { return !x.Time.After(last.Time) })
	for i := range lines {
		lines[i].Stream = cmp.Or(lines[i].Stream, last.Stream)
	}
	kept = rotate(lines, most, r)
	return kept, lines[:len(lines)-len(kept)]
}

// rewrite has the log have other lines. It is told no past any more.
func (l *Log) rewrite(lines []cloud.Line) {
	l.sealed, l.size, l.dropped, l.current, l.last = nil, 0, 0, nil, time.Time{}
	l.restored, l.told, l.toldLen = -1, nil, 0
	for _, x := range lines {
		tag := fullLine
		if x.Partial {
			tag = partialLine
		}
		l.appendAt(x.Time, x.Stream, tag, []byte(x.Text))
	}
	l.notify()
}

// rotate drops the lines that are not there any more if there are too many.
func rotate(lines []cloud.Line, most int, r *rand.Rand) []cloud.Line {
	size := 0
	for _, x := range lines {
		size += lineSize(x.Text)
	}
	if size <= most {
		return lines
	}
	i := len(lines)
	for left := most/8 + r.IntN(most-most/8); i > 0 && left > 0; i-- {
		left -= lineSize(lines[i-1].Text)
	}
	return lines[i:]
}
