package stream

import (
	"context"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPipeCarriesEverything(t *testing.T) {
	r, w := NewPipe()
	want := strings.Repeat("0123456789", pipeCapacity/5)
	go func() {
		io.WriteString(w, want)
		w.Close()
	}()
	got, err := io.ReadAll(r)
	if err != nil || string(got) != want {
		t.Fatalf("read %d bytes, %v; want %d", len(got), err, len(want))
	}
}

func TestPipeWithoutReader(t *testing.T) {
	r, w := NewPipe()
	failed := make(chan error)
	go func() {
		_, err := w.Write(make([]byte, 2*pipeCapacity))
		failed <- err
	}()
	r.Close()
	if err := <-failed; err != syscall.EPIPE {
		t.Fatalf("write: %v, want EPIPE", err)
	}
}

func TestReadsCanBeAbandoned(t *testing.T) {
	r, w := NewPipe()
	sources := map[string]ContextReader{
		"pipe":  r,
		"input": Reader(struct{ io.Reader }{r}), // hides that a pipe is a ContextReader
	}
	for name, src := range sources {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			if _, err := src.ReadContext(ctx, make([]byte, 8)); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("read: %v, want the context's error", err)
			}
			// What arrives later is not lost.
			io.WriteString(w, "late")
			buf := make([]byte, 8)
			if n, err := src.ReadContext(t.Context(), buf); err != nil || string(buf[:n]) != "late" {
				t.Fatalf("read %q, %v", buf[:n], err)
			}
		})
	}
	w.Close()
}

func TestWritesCanBeAbandoned(t *testing.T) {
	_, w := NewPipe()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	n, err := w.WriteContext(ctx, make([]byte, pipeCapacity+1))
	if n != pipeCapacity || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("wrote %d, %v", n, err)
	}
}

func TestLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("ab\n")), 0, 50, -1).Draw(t, "text")
		lines := NewLines(strings.NewReader(text))
		var got strings.Builder
		for {
			line, ended, err := lines.Next()
			if err == io.EOF {
				break
			}
			got.Write(line)
			if ended {
				got.WriteByte('\n')
			}
		}
		if got.String() != text {
			t.Fatalf("got %q, want %q", got.String(), text)
		}
	})
	long := strings.Repeat("x", 200<<10)
	line, ended, err := NewLines(strings.NewReader(long + "\n")).Next()
	if string(line) != long || !ended || err != nil {
		t.Fatalf("a long line came back as %d bytes, %v, %v", len(line), ended, err)
	}
}
