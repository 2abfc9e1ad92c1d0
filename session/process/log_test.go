package process

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aiopslab/aiopslab/internal/logs"
	"github.com/aiopslab/aiopslab/problem/problemtest"
	"github.com/aiopslab/aiopslab/session"
)

// lines are what was logged.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// What an environment logs comes with the id of the run, at the level that is wanted; how it ends, with
// its last words.
func TestLog(t *testing.T) {
	for level, want := range map[string]string{
		"debug": `level=DEBUG msg=opened run=r1 dir=`, "info": `level=INFO msg=open run=r1 group.key="a\nb"`, "warn": "", "off": "",
	} {
		t.Run(level, func(t *testing.T) {
			out := &lines{}
			log := logs.Settings{Level: level}.New(out)
			e := start(t, log.With("run", "r1"))
			if err := e.Open(t.Context()); err != nil {
				t.Fatal(err)
			}
			s := session.Setting{Problem: problemtest.Find(t, "revoke_auth_mongodb-detection-1"), Log: log.With("run", "r2")}
			if _, err := e.Prepare(t.Context(), s, func(string, any) {}); err != nil {
				t.Fatal(err)
			}
			_, _ = e.Act(t.Context(), "panic", func(string) {})
			<-e.Done()
			text := out.String()
			if !strings.Contains(text, want) || (level == "debug") != strings.Contains(text, "msg=opened") || (want != "") != strings.Contains(text, "msg=prepared run=r2") {
				t.Errorf("logged:\n%s", text)
			}
			if dead := strings.Contains(text, `by itself" run=r2 pid=`) && strings.Contains(text, `last_words="panic: oh no\n\ngoroutine `); dead == (level == "off") {
				t.Errorf("the end:\n%s", text)
			}
			if level != "off" && strings.Count(text, "\n") != strings.Count(text, "\ntime=")+1 {
				t.Errorf("a line is broken:\n%s", text)
			}
		})
	}
}

// An end that was ours is nothing to worry about.
func TestLogClosed(t *testing.T) {
	out := &lines{}
	start(t, logs.Settings{Level: "info"}.New(out)).Close()
	if out.String() != "" {
		t.Error(out)
	}
}

// What the process starts cannot speak on its behalf.
func TestLineIsPrivate(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("nothing tells of open files here")
	}
	r, err := start(t, nil).Act(t.Context(), "have a child look for the line", func(string) {})
	if err != nil || r.Text != "3 is closed" {
		t.Errorf("%q, %v", r.Text, err)
	}
}

// An agent can have the control plane complain without end: that fills neither the pipe nor a disk.
func TestLogFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		level := slog.LevelDebug
		l := newRemote(&writer{w: &b}, &level)
		text := strings.Repeat("x", 10*maxLogValue)
		for range 2*logBurst + 5 {
			l.Debug("kubernetes", "text", text)
		}
		if n := strings.Count(b.String(), "\n"); n != logBurst || b.Len() > n*2*maxLogValue {
			t.Errorf("%d lines of %d bytes", n, b.Len())
		}
		b.Reset()
		time.Sleep(time.Second)
		l.Debug("kubernetes")
		if want := fmt.Sprintf(`["not_logged_before","%d"]`, logBurst+5); !strings.Contains(b.String(), want) {
			t.Errorf("there is no %s in %s", want, b.String())
		}
	})
}

// What a line has arrives, in its order; what a supervisor does not want does not.
func TestHeard(t *testing.T) {
	var wire, out bytes.Buffer
	level := slog.LevelInfo
	l := newRemote(&writer{w: &wire}, &level).With("a", 1).WithGroup("g").With("b", time.Second)
	l.Debug("no")
	l.Warn("yes", "c", []string{"x y"}, slog.Group("h", "d", "level=ERROR\n"), "run", "forged")
	c := newConn(nil, slog.New(slog.NewTextHandler(&out, nil)).With("run", "true"))
	if err := c.read(&wire); err != nil {
		t.Fatal(err)
	}
	want := `level=WARN msg=yes run=true a=1 g.b=1s g.c="[x y]" g.h.d="level=ERROR\n" g.run=forged` + "\n"
	if got := out.String(); !strings.HasSuffix(got, want) || strings.Count(got, "\n") != 1 {
		t.Errorf("got %s", got)
	}
	c.log = logs.Or(nil)
	heard(c.logger(), &logLine{Level: slog.LevelError, Message: "nobody listens"})
	if wanted(c.logger()) != nil || *wanted(slog.New(slog.NewTextHandler(&out, nil))) != slog.LevelInfo {
		t.Error("another level is wanted")
	}
	if newRemote(nil, nil).Enabled(context.Background(), slog.LevelError) {
		t.Error("it logs for nobody")
	}
}
