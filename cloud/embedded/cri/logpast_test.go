package cri

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/kit/past"
)

const stamped = "2006-01-02T15:04:05Z"

// agedLog is a log of a container that was started some time before the join, had its program started ten
// seconds before, and its usual load two seconds before, in which a line was written every tenth of a second.
func agedLog(age time.Duration, tell func(*past.Past)) (lines []cloud.Line, p *past.Past) {
	join := time.Date(2026, 11, 16, 15, 20, 0, 0, time.UTC)
	p = past.New(7, join.Add(-2*time.Second), join, past.Cast{})
	p.Began = join.Add(-4 * time.Second)
	now := join.Add(-age)
	start := appendLine(nil, now, "stderr", fullLine, now.Format(stamped)+" INF Starting")
	l := restoreLog(func() time.Time { return now }, start)
	out := l.Writer("stderr")
	say := func(text string) { io.WriteString(out, now.UTC().Format(stamped)+" "+text+"\n") }
	now = join.Add(-10 * time.Second)
	say("INF Starting") // It is held back: it was said before.
	l.release()
	for now = join.Add(-5 * time.Second); now.Before(join.Add(time.Second)); now = now.Add(100 * time.Millisecond) {
		say("INF Login failed")
		if d := join.Sub(now); d == 3*time.Second || d == time.Second {
			say("ERR no connection")
			say(fmt.Sprintf("INF Reserved customer=%d", d))
		}
	}
	if tell != nil {
		own := *p
		own.Log = l.recollect
		tell(&own)
	}
	l.age(p, join.Add(-age), "user")
	return ParseLog(l.text()), p
}

// TestEndedLogReachesItsEnd holds that the log of a container that was killed goes on from its start to its end as that of its
// successor does, that it has what was told of its time, and nothing after it was killed.
func TestEndedLogReachesItsEnd(t *testing.T) {
	for _, told := range []bool{true, false} {
		join := time.Date(2026, 11, 16, 15, 20, 0, 0, time.UTC)
		p := past.New(7, join.Add(-2*time.Second), join, past.Cast{})
		started, finished := join.Add(-3*time.Hour), join.Add(-2*time.Hour)
		l := restoreLog(time.Now, appendLine(nil, started, "stderr", fullLine, started.Format(stamped)+" INF Starting"))
		l.Close()
		line := func(at time.Time, text string) cloud.Line {
			return cloud.Line{Time: at, Stream: "stderr", Text: at.Format(stamped) + " INF " + text}
		}
		if told {
			for _, at := range []time.Time{finished.Add(time.Second), finished.Add(-time.Minute)} {
				if !l.recollect(at, line(at, "Reserved customer=7").Text) {
					t.Fatal("there is no room for two lines")
				}
			}
		}
		said := manner{started: join.Add(-time.Hour).Add(-21 * time.Second)}
		for at := said.started.Add(time.Minute); at.Before(join); at = at.Add(time.Minute) {
			said.told = append(said.told, line(at, "Checkpoint"))
		}
		for i := range time.Duration(20) {
			x := line(join.Add(-i*100*time.Millisecond), "Login failed")
			said.examples = append(said.examples, example{x, past.Stamps(x.Text, x.Time)})
		}
		p.Began = join.Add(-40 * time.Second)
		l.ageEnded(p, said, started, finished, "user")
		lines := ParseLog(l.text())
		for _, x := range lines {
			if own, err := time.Parse(stamped, x.Text[:len(stamped)]); err != nil || !own.Equal(x.Time.Truncate(time.Second)) ||
				!x.Time.Before(finished) || x.Stream != "stderr" {
				t.Fatalf("a line of %v on %s says %q", x.Time, x.Stream, x.Text)
			}
		}
		if n := count(lines, "Login failed", finished.Add(-time.Minute), finished); n < 10 {
			t.Errorf("%d lines in its last minute", n)
		}
		reserved, checkpoints := count(lines, "Reserved", started, finished), count(lines, "Checkpoint", started, finished)
		if told && (reserved != 1 || checkpoints != 0) || !told && (reserved != 0 || checkpoints < 50) {
			t.Errorf("it tells of %d reservations and %d checkpoints", reserved, checkpoints)
		}
		for _, x := range lines {
			if strings.Contains(x.Text, "Checkpoint") && x.Time.Sub(started)%time.Minute != 0 {
				t.Errorf("a checkpoint %v after the start", x.Time.Sub(started))
			}
		}
		if n := count(lines, "Checkpoint", finished.Add(-time.Minute), finished); !told && n != 1 {
			t.Errorf("%d checkpoints in its last minute", n)
		}
	}
}

func count(lines []cloud.Line, text string, from, to time.Time) (n int) {
	for _, x := range lines {
		if strings.Contains(x.Text, text) && !x.Time.Before(from) && x.Time.Before(to) {
			n++
		}
	}
	return n
}

// TestLogReachesBack holds that a log has lines of all its time, as many as there was load, that tell their times as the
// runtime does; that what is said once is not said again; and that nothing is left of the start of the program.
func TestLogReachesBack(t *testing.T) {
	lines, p := agedLog(25*time.Minute, func(p *past.Past) {
		for i := range time.Duration(20) {
			at := p.Join.Add(-(i + 1) * time.Minute)
			if !p.Log(at, at.Format(stamped)+" INF Checkpoint") {
				t.Error("there is no room for a few lines")
			}
		}
	})
	if !slices.IsSortedFunc(lines, func(a, b cloud.Line) int { return a.Time.Compare(b.Time) }) {
		t.Error("lines are not in order")
	}
	for _, x := range lines {
		if own, err := time.Parse(stamped, x.Text[:len(stamped)]); err != nil || !own.Equal(x.Time.Truncate(time.Second)) {
			t.Fatalf("a line of %v says %q", x.Time, x.Text)
		}
		if x.Stream != "stderr" {
			t.Fatalf("%q is on %s", x.Text, x.Stream)
		}
	}
	if n := count(lines, "Starting", time.Time{}, p.Join); n != 1 || !strings.Contains(lines[0].Text, "Starting") {
		t.Errorf("it says %d times that it starts, and first %q", n, lines[0].Text)
	}
	for from := p.Join.Add(-24 * time.Minute); from.Before(p.Join.Add(-6 * time.Minute)); from = from.Add(5 * time.Minute) {
		to := from.Add(5 * time.Minute)
		want := 10 * p.Work(from, to)
		if n := float64(count(lines, "Login", from, to)); n < 0.8*want || n > 1.2*want {
			t.Errorf("%v lines from %v to %v, want about %.0f", n, from, to, want)
		}
	}
	if n := count(lines, "Login", p.Loaded, p.Join); n != 20 {
		t.Errorf("%d lines since the load, want all 20", n)
	}
	if n := count(lines, "ERR", time.Time{}, p.Loaded) + count(lines, "Reserved", time.Time{}, p.Loaded); n != 0 {
		t.Errorf("%d lines were made up that only the program could", n)
	}
	if n := count(lines, "ERR", p.Loaded, p.Join); n != 1 {
		t.Error("a line since the load is gone")
	}
	if n := count(lines, "Checkpoint", time.Time{}, p.Join); n != 20 {
		t.Errorf("%d lines of the program's own past, want 20", n)
	}
}

// TestLogWasRotated holds that a log that would be too long has its last part.
func TestLogWasRotated(t *testing.T) {
	lines, p := agedLog(20*24*time.Hour, nil)
	size := 0
	for _, x := range lines {
		size += lineSize(x.Text)
	}
	if size < maxPast/8 || size > maxPast+(1<<10) {
		t.Errorf("it has %d bytes", size)
	}
	if n := count(lines, "Starting", time.Time{}, p.Join); n != 0 {
		t.Error("it still has its beginning")
	}
}

// TestYoungLogHasNoPast holds that a log that was not restored is left alone.
func TestYoungLogHasNoPast(t *testing.T) {
	l := clockLog()
	io.WriteString(l.Writer("stdout"), "one\n")
	join := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	p := past.New(7, join.Add(-time.Second), join, past.Cast{})
	if l.recollect(join.Add(-time.Hour), "zero") {
		t.Error("it wants to know more")
	}
	l.age(p, join.Add(-time.Hour), "young")
	if got := read(t, l, LogOptions{Tail: -1}); got != "one\n" {
		t.Errorf("it has become %q", got)
	}
}
