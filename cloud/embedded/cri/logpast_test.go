package cri

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/kit/past"
)

const stamped = "2006-01-02T15:04:05Z"

// agedLog is a log of a container that was started some time before the join, had its program started ten
// seconds before, and its usual load two seconds before, in which a line was written every tenth of a second.
func agedLog(age time.Duration, tell func(*past.Past)) (lines []cloud.Line, p *past.Past) {
	l, p := logOfAge(age, tell)
	return ParseLog(l.text()), p
}

func logOfAge(age time.Duration, tell func(*past.Past)) (l *Log, p *past.Past) {
	join := time.Date(2026, 11, 16, 15, 20, 0, 0, time.UTC)
	p = past.New(7, join.Add(-2*time.Second), join, past.Cast{})
	p.Began = join.Add(-4 * time.Second)
	now := join.Add(-age)
	start := appendLine(nil, now, "stderr", fullLine, now.Format(stamped)+" INF Starting")
	l = restoreLog(func() time.Time { return now }, start)
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
	return l, p
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
			said.examples = append(said.examples, example{Line: x, stamps: past.Stamps(x.Text, x.Time)})
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

// TestRotatedLogHasAFileBefore holds that the file before a log that was rotated ends where the log begins, is as long as
// such a file gets or reaches back to the start, and is the same whoever looks; and that there is none otherwise.
func TestRotatedLogHasAFileBefore(t *testing.T) {
	if l, _ := logOfAge(10*time.Minute, nil); l.rotated != nil {
		t.Error("a short log was rotated")
	}
	whole, rotated := 0, 0
	for age := 30 * time.Minute; age < 20*24*time.Hour; age += age / 20 {
		l, _ := logOfAge(age, nil)
		if l.rotated == nil {
			continue
		}
		if rotated++; age > time.Hour {
			age *= 4
		}
		size := l.rotated.length()
		text := l.rotated.read()
		if int64(len(text)) != size || !bytes.Equal(text, l.rotated.read()) {
			t.Errorf("%v: it has %d bytes, then %d", age, size, len(text))
		}
		lines, next := ParseLog(text), ParseLog(l.text())[0]
		if !slices.IsSortedFunc(lines, func(a, b cloud.Line) int { return a.Time.Compare(b.Time) }) {
			t.Errorf("%v: lines are not in order", age)
		}
		last := lines[len(lines)-1]
		if gap := next.Time.Sub(last.Time); gap < 0 || gap > 5*time.Second || !l.rotated.at.Equal(next.Time) {
			t.Errorf("%v: its last line is of %v, it was rotated at %v, the log goes on at %v", age, last.Time, l.rotated.at, next.Time)
		}
		began := strings.HasSuffix(lines[0].Text, "INF Starting")
		if began {
			whole++
		}
		size = 0
		for _, x := range lines {
			size += int64(lineSize(x.Text))
		}
		if began == (size >= maxPast) || size > maxPast+(1<<10) {
			t.Errorf("%v: it has %d bytes, and the start: %v", age, size, began)
		}
		if n := count(lines, "Login", last.Time.Add(-time.Minute), last.Time); n < 300 || n > 1200 {
			t.Errorf("%v: %d lines in its last minute", age, n)
		}
	}
	if whole == 0 || whole == rotated {
		t.Errorf("%d of %d reach back to the start", whole, rotated)
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

// TestLogGoesOnAcrossTheJoin holds that lines which name something of their own come as often before the join as after
// it, whatever shape they have; that no name comes again, and one that is twice in a line is still one; and that what
// came at the start alone, or is told by the program itself, is not made up.
func TestLogGoesOnAcrossTheJoin(t *testing.T) {
	join := time.Date(2026, 11, 16, 15, 20, 0, 0, time.UTC)
	r := rand.New(rand.NewPCG(1, 2))
	hexes := func(n int) string { return another(strings.Repeat("a", n), r) }
	uuid := func() string { return another("aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa", r) }
	who := []string{"ann@example.com", "bob@example.org", "eve@example.net"}
	for name, tt := range map[string]struct {
		every time.Duration
		line  func(at time.Time) string
		same  string // that all lines have
		told  bool
		none  bool
	}{
		"a payment": {400 * time.Millisecond, func(time.Time) string {
			return "Transaction complete. id=" + uuid() + " amount=12." + fmt.Sprint(r.IntN(9))
		}, "", false, false},
		"a mail":    {500 * time.Millisecond, func(time.Time) string { return "Mail sent to=" + who[r.IntN(3)] + " order=" + uuid() }, "", false, false},
		"twice":     {300 * time.Millisecond, func(time.Time) string { id := uuid(); return "Stored " + id + " as /data/" + id + ".json" }, "", false, false},
		"an object": {300 * time.Millisecond, func(at time.Time) string { return fmt.Sprintf("Kept %x%s", at.Unix(), hexes(16)) }, "", false, false},
		"a query":   {300 * time.Millisecond, func(time.Time) string { return "GET /cards/" + hexes(24) + " took=0.00" + fmt.Sprint(r.IntN(9)) }, "", false, false},
		"by a node": {300 * time.Millisecond, func(time.Time) string { return "Ready node=57a98d98e4b00679b4a830b2 task=" + hexes(16) }, "57a98d98e4b00679b4a830b2", false, false},
		"its own":   {300 * time.Millisecond, func(time.Time) string { return "Order created order=" + uuid() + " items=" + fmt.Sprint(r.IntN(9)) }, "", true, false},
		"of a start": {100 * time.Millisecond, func(at time.Time) string {
			if at.After(join.Add(-2700 * time.Millisecond)) {
				return ""
			}
			return "Cold start action=search activation=" + hexes(32)
		}, "", false, true},
		"too few": {1500 * time.Millisecond, func(time.Time) string { return "Reserved customer=" + fmt.Sprint(r.IntN(1e6)) }, "", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := past.New(7, join.Add(-2*time.Second), join, past.Cast{})
			p.Began = join.Add(-3 * time.Second)
			p.Excursions = nil
			started := join.Add(-5 * time.Minute)
			now := started
			l := restoreLog(func() time.Time { return now }, appendLine(nil, started, "stdout", fullLine, "Starting"))
			l.release()
			after := 0
			for now = p.Began.Add(50 * time.Millisecond); now.Before(join.Add(time.Minute)); now = now.Add(tt.every) {
				if text := tt.line(now); text != "" {
					io.WriteString(l.Writer("stdout"), text+"\n")
					if now.After(join) {
						after++
					}
				}
			}
			if tt.told {
				for i := range time.Duration(60) {
					l.recollect(join.Add(-(i+1)*time.Second), tt.line(join))
				}
			}
			l.age(p, started, "c")
			before, seen := 0, map[string]int{}
			for _, x := range ParseLog(l.text()) {
				if !x.Time.Before(p.Loaded) || x.Text == "Starting" {
					continue
				}
				if x.Time.After(join.Add(-62 * time.Second)) {
					before++
				}
				inLine := map[string]bool{}
				for _, n := range names(x.Text) {
					inLine[x.Text[n.from:n.to]] = true
				}
				delete(inLine, tt.same)
				if len(inLine) > 1 || len(inLine) == 0 && !tt.none {
					t.Fatalf("the line %q names %d things, want one", x.Text, len(inLine))
				}
				for id := range inLine {
					if seen[id]++; seen[id] > 1 {
						t.Fatalf("%s comes again", id)
					}
					if name == "an object" && !strings.HasPrefix(id, fmt.Sprintf("%x", x.Time.Unix())) {
						t.Fatalf("%s was made at %x", id, x.Time.Unix())
					}
				}
				if !strings.Contains(x.Text, tt.same) {
					t.Fatalf("%q does not name %s", x.Text, tt.same)
				}
			}
			want := after
			switch {
			case tt.none:
				want = 0
			case tt.told:
				want = 58 // Those that it has told since the load are in the present, too.
			}
			if before < want/2 || before > 2*want {
				t.Errorf("%d lines in the minute before, want about %d", before, want)
			}
		})
	}
}

// TestNamesTellTheirTime holds that a UUID which tells when it was made tells it in a copy, too, and of the same maker.
func TestNamesTellTheirTime(t *testing.T) {
	written := time.Date(2026, 11, 16, 15, 20, 0, 0, time.UTC)
	id, err := uuid.NewUUID()
	if err != nil {
		t.Fatal(err)
	}
	sec, nsec := id.Time().UnixTime()
	made := time.Unix(sec, nsec)
	at := made.Add(-50 * time.Hour)
	text := "order placed id=" + id.String()
	got := rename(text, names(text), made, at, rand.New(rand.NewPCG(1, 2)))
	other, err := uuid.Parse(strings.TrimPrefix(got, "order placed id="))
	if err != nil {
		t.Fatal(err)
	}
	if sec, nsec := other.Time().UnixTime(); !time.Unix(sec, nsec).Equal(at) || other.Version() != 1 ||
		other.ClockSequence() != id.ClockSequence() || !slices.Equal(other.NodeID(), id.NodeID()) {
		t.Errorf("%v of %v has become %v of %v", id, made, other, time.Unix(sec, nsec))
	}
	old := "order placed id=" + other.String()
	if got := rename(old, names(old), written, at, rand.New(rand.NewPCG(1, 2))); got == old || len(got) != len(old) {
		t.Errorf("one that was made at another time has become %q", got)
	}
}
