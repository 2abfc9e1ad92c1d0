package queue

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, c Config) *Queue {
	t.Helper()
	if c.Dir == "" && c.URL == "" {
		c.Dir = t.TempDir()
	}
	q, err := Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
	return q
}

func inbox(t testing.TB, q *Queue, name string) *Inbox {
	t.Helper()
	in, err := q.Inbox(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func next(t testing.TB, in *Inbox) *Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	d, err := in.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func send(t testing.TB, q *Queue, to, id, body string) {
	t.Helper()
	if err := q.Send(context.Background(), to, id, []byte(body)); err != nil {
		t.Fatal(err)
	}
}

// Each name gets what is for it, in order, and what was there before it listened.
func TestInboxes(t *testing.T) {
	q := open(t, Config{})
	send(t, q, "geo", "1", "a")
	send(t, q, "mongodb.geo", "2", "b")
	send(t, q, "geo", "3", "c")
	send(t, q, "geo", "3", "c again")
	geo, mongo := inbox(t, q, "geo"), inbox(t, q, "mongodb.geo")
	got := ""
	for range 2 {
		d := next(t, geo)
		got += string(d.Body)
		if err := d.Ack(); err != nil {
			t.Fatal(err)
		}
	}
	if d := next(t, mongo); got != "ac" || string(d.Body) != "b" {
		t.Errorf("got %q and %q", got, d.Body)
	}
}

// A message that its reader did not acknowledge comes again, to the reader that follows.
func TestAtLeastOnce(t *testing.T) {
	for _, tt := range []struct {
		name string
		wait time.Duration
		end  func(*Delivery) error
	}{
		{"lost", 50 * time.Millisecond, func(*Delivery) error { return nil }},
		{"given back", time.Hour, (*Delivery).Again},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := open(t, Config{AckWait: tt.wait})
			send(t, q, "geo", "1", "a")
			first := next(t, inbox(t, q, "geo"))
			if err := tt.end(first); err != nil {
				t.Fatal(err)
			}
			second := next(t, inbox(t, q, "geo"))
			if first.Times != 1 || second.Times < 2 || string(second.Body) != "a" {
				t.Errorf("delivered %d and %d times: %q", first.Times, second.Times, second.Body)
			}
			if err := second.Ack(); err != nil {
				t.Fatal(err)
			}
			for { // An acknowledgement is not answered.
				n, err := q.Waiting(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				if n == 0 {
					return
				}
			}
		})
	}
}

// A flood is refused, and what is there stays.
func TestBounds(t *testing.T) {
	q := open(t, Config{})
	if err := q.Send(context.Background(), "geo", "0", make([]byte, MaxBody+1)); err == nil {
		t.Error("a message that is too long was taken")
	}
	body := []byte(strings.Repeat("x", MaxBody))
	var err error
	n := 0
	for ; err == nil && n < 2*maxBytes/MaxBody; n++ {
		err = q.Send(context.Background(), "geo", fmt.Sprint(n), body)
	}
	if !errors.Is(err, ErrFull) {
		t.Fatalf("after %d messages: %v", n, err)
	}
	if d := next(t, inbox(t, q, "geo")); len(d.Body) != MaxBody {
		t.Errorf("got %d bytes", len(d.Body))
	}
}

// A server of the user's own serves as well, and nothing is left on it.
func TestOwnServer(t *testing.T) {
	s := serveAt(t, server.Options{})
	a, err := Open(context.Background(), Config{URL: s.ClientURL()})
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, Config{URL: s.ClientURL()})
	send(t, a, "geo", "1", "a")
	send(t, b, "geo", "1", "b")
	if d := next(t, inbox(t, a, "geo")); string(d.Body) != "a" {
		t.Errorf("got %q", d.Body)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	names := b.js.StreamNames(context.Background())
	var list []string
	for n := range names.Name() {
		list = append(list, n)
	}
	if len(list) != 1 || list[0] != b.name {
		t.Errorf("left on the server: %v", list)
	}
}

// An address where nobody answers is named.
func TestNoServer(t *testing.T) {
	_, err := Open(context.Background(), Config{URL: "nats://127.0.0.1:1"})
	if err == nil || !strings.Contains(err.Error(), "nats://127.0.0.1:1") {
		t.Errorf("got %v", err)
	}
}

// Who waits can be called away.
func TestNextEnds(t *testing.T) {
	q := open(t, Config{})
	in := inbox(t, q, "geo")
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := in.Next(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	cancel()
	wg.Wait()
}

// BenchmarkQueue sends and takes messages, eight inboxes at a time.
func BenchmarkQueue(b *testing.B) {
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapInuse+m.StackInuse) / 1e6
	}
	before := heap()
	q := open(b, Config{})
	const readers = 8
	body := []byte(strings.Repeat("a word or two ", 20))
	var wg sync.WaitGroup
	for r := range readers {
		name := fmt.Sprintf("service-%d", r)
		in := inbox(b, q, name)
		wg.Go(func() {
			for n := r; n < b.N; n += readers {
				send(b, q, name, fmt.Sprint(n), string(body))
				if err := next(b, in).Ack(); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(heap()-before, "MB")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}
