package cri

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// clockLog returns a log whose clock moves a second with each line.
func clockLog() *Log {
	at := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	return NewLog(func() time.Time { at = at.Add(time.Second); return at })
}

func read(t *testing.T, l *Log, opts LogOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := l.Read(t.Context(), &b, opts); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestLogOptions(t *testing.T) {
	l := clockLog()
	out, errOut := l.Writer("stdout"), l.Writer("stderr")
	io.WriteString(out, "one\ntwo\nth")
	io.WriteString(errOut, "oops\n")
	io.WriteString(out, "ree\nunfinished")
	for _, tc := range []struct {
		name string
		opts LogOptions
		want string
	}{
		{"all", LogOptions{Tail: -1}, "one\ntwo\noops\nthree\n"},
		{"tail", LogOptions{Tail: 2}, "oops\nthree\n"},
		{"tail nothing", LogOptions{Tail: 0}, ""},
		{"since", LogOptions{Tail: -1, Since: time.Date(2026, 1, 2, 3, 4, 3, 0, time.UTC)}, "oops\nthree\n"},
		{"limit", LogOptions{Tail: -1, LimitBytes: 6}, "one\ntw"},
		{"stamps", LogOptions{Tail: 1, Timestamps: true}, "2026-01-02T03:04:04.000000000Z three\n"},
		{"one stream", LogOptions{Tail: -1, Stream: "stderr"}, "oops\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := read(t, l, tc.opts); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	l.Close()
	if got := read(t, l, LogOptions{Tail: 1}); got != "unfinished" {
		t.Errorf("the unfinished line reads %q", got)
	}
	if _, err := out.Write([]byte("late")); err == nil {
		t.Error("a closed log takes more")
	}
}

func TestLogFollow(t *testing.T) {
	l := clockLog()
	w := l.Writer("stdout")
	fmt.Fprintln(w, "old")
	r, pw := io.Pipe()
	go func() { pw.CloseWithError(l.Read(context.Background(), pw, LogOptions{Tail: -1, Follow: true})) }()
	buf := make([]byte, 4)
	if _, err := io.ReadFull(r, buf); err != nil || string(buf) != "old\n" {
		t.Fatalf("%q, %v", buf, err)
	}
	fmt.Fprintln(w, "new")
	if _, err := io.ReadFull(r, buf); err != nil || string(buf) != "new\n" {
		t.Fatalf("%q, %v", buf, err)
	}
	l.Close()
	if rest, err := io.ReadAll(r); err != nil || len(rest) != 0 {
		t.Errorf("after the end: %q, %v", rest, err)
	}
}

// TestLogIsBounded writes more than a log holds and follows it meanwhile.
func TestLogIsBounded(t *testing.T) {
	l := NewLog(time.Now)
	w := l.Writer("stdout")
	line := strings.Repeat("x", 100)
	const lines = 200_000
	for i := range lines {
		fmt.Fprintf(w, "%d %s\n", i, line)
	}
	got := read(t, l, LogOptions{Tail: -1})
	if len(got) > maxLog || len(got) < maxLog/2 {
		t.Errorf("%d bytes are kept, the limit is %d", len(got), maxLog)
	}
	if !strings.HasSuffix(got, fmt.Sprintf("%d %s\n", lines-1, line)) {
		t.Error("the last line is missing")
	}
	held := 0
	for _, b := range l.sealed {
		held += len(b.data)
	}
	if held > maxLog/4 {
		t.Errorf("%d bytes are held in memory for %d of log", held, l.size)
	}
}

func TestLongLinesAreKeptWhole(t *testing.T) {
	l := clockLog()
	long := strings.Repeat("y", 3*maxLine+7)
	fmt.Fprintln(l.Writer("stdout"), long)
	if got := read(t, l, LogOptions{Tail: -1}); got != long+"\n" {
		t.Errorf("%d bytes came back of %d", len(got), len(long)+1)
	}
}
