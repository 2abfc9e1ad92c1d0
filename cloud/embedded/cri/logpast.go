package cri

import (
	"cmp"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
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
	// many is how many lines must differ for nobody to notice that they come again.
	many = 20
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
	examples := usual(p, live)
	said = manner{started, examples, slices.Clone(l.told)}
	lines := append(l.told, again(p, examples, started, p.Loaded, r)...)
	lines, rotated := after(old, lines, maxPast, r)
	if rotated {
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
	lines := again(p, said.examples, started, finished, r)
	if len(l.told) > 0 {
		said.told = nil
	}
	// What a program does every minute, it does every minute since its start, until its end.
	by := started.Sub(said.started)
	by += (finished.Sub(p.Loaded) - by).Truncate(time.Minute) + time.Minute
	for _, x := range said.told {
		x.Text = past.Move(x.Text, past.Stamps(x.Text, x.Time), by)
		x.Time = x.Time.Add(by)
		lines = append(lines, x)
	}
	lines = slices.DeleteFunc(append(lines, l.told...), func(x cloud.Line) bool {
		return x.Time.Before(started.Add(settling)) || !x.Time.Before(finished)
	})
	lines, rotated := after(old, lines, maxEnded, r)
	if rotated {
		old = nil
	}
	l.rewrite(slices.Concat(old, lines))
}

// after orders lines that come after those that there are, on the stream that these are on. If they are too many, it
// drops those that are not there any more, and says so.
func after(old, lines []cloud.Line, most int, r *rand.Rand) (kept []cloud.Line, rotated bool) {
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
	return kept, len(kept) < len(lines)
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

// again returns lines like those that came since there was load, from the start of a program until another time.
func again(p *past.Past, examples []example, started, until time.Time, r *rand.Rand) (list []cloud.Line) {
	if len(examples) == 0 {
		return nil
	}
	rate := float64(len(examples)) / p.Join.Sub(p.Began).Seconds()
	for at, size := until, 0; size <= maxPast; {
		density := rate * max(p.Work(at.Add(-time.Second), at), 0.01)
		at = at.Add(-time.Duration(r.ExpFloat64() / density * float64(time.Second)))
		if at.Before(started.Add(settling)) {
			break
		}
		x := examples[r.IntN(len(examples))]
		x.Text, x.Time = past.Move(x.Text, x.stamps, at.Sub(x.Time)), at
		list = append(list, x.Line)
		size += lineSize(x.Text)
	}
	return list
}

// example is a line that a program writes all the time.
type example struct {
	cloud.Line
	stamps []past.Stamp
}

// usual are the lines that came under load and would come again: several that read alike, or many that have the same
// form. Which of others come again only their program knows.
func usual(p *past.Past, live []cloud.Line) (list []example) {
	forms := map[string][]example{}
	for _, x := range live {
		if x.Partial || x.Time.Before(p.Began) || !x.Time.Before(p.Join) || unusual.MatchString(x.Text) {
			continue
		}
		stamps := past.Stamps(x.Text, x.Time)
		form := strings.Map(func(c rune) rune {
			if '0' <= c && c <= '9' {
				return -1
			}
			return c
		}, past.Unstamped(x.Text, stamps))
		forms[form] = append(forms[form], example{x, stamps})
	}
	for _, same := range forms {
		differ := map[string]bool{}
		for _, x := range same {
			differ[past.Unstamped(x.Text, x.stamps)] = true
		}
		if len(same) > 1 && len(differ) == 1 || len(differ) >= many {
			list = append(list, same...)
		}
	}
	slices.SortFunc(list, func(a, b example) int { return a.Time.Compare(b.Time) })
	return list
}
