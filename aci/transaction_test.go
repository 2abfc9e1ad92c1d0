package aci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/internal/term"
)

// ledger plays the guard: it notes what it is asked.
type ledger struct {
	open  atomic.Bool
	asked string
}

func (l *ledger) note(format string, args ...any) (*guard.Transaction, error) {
	l.asked = fmt.Sprintf(format, args...)
	if strings.HasPrefix(l.asked, "undo 99") {
		return nil, errors.New("there is no write that could be taken back")
	}
	action, _, _ := strings.Cut(l.asked, " ")
	return &guard.Transaction{Action: action, Number: 7, Writes: 3}, nil
}

func (l *ledger) Begin(context.Context) (*guard.Transaction, error) {
	l.open.Store(true)
	return l.note("begin")
}

func (l *ledger) Commit(_ context.Context, wait time.Duration) (*guard.Transaction, error) {
	return l.note("commit %v", wait)
}

func (l *ledger) Abort(context.Context) (*guard.Transaction, error) { return l.note("abort") }

func (l *ledger) Undo(_ context.Context, n int) (*guard.Transaction, error) {
	return l.note("undo %d", n)
}

func (l *ledger) History() string  { return "Nothing was written.\n" }
func (l *ledger) Restrained() bool { return l.open.Load() }

func TestTransactionActions(t *testing.T) {
	i := fake(t, term.Mitigation, cluster())
	for _, call := range []string{"begin()", "undo(2)", "history()"} {
		if r := do(t, i, call); !r.Failed || !strings.Contains(r.Text, "there are no transactions here") {
			t.Errorf("%s without transactions: %+v", call, r)
		}
	}
	l := &ledger{}
	i.o.Transactions = l
	tests := []struct {
		call, asked, says string
		failed            bool
	}{
		{"begin()", "begin", "Transaction 7 has begun", false},
		{"commit()", "commit 30s", "Transaction 7 is committed, with 3 writes", false},
		{"commit(wait=5)", "commit 5s", "is committed", false},
		{`commit("100000")`, "commit 5m0s", "is committed", false},
		{"commit(-1)", "", "wait must be 0 or more", true},
		{"abort()", "abort", "Transaction 7 is aborted", false},
		{"undo()", "undo 1", "", false},
		{"undo(n=1e9)", "undo 1000000000", "", false},
		{"undo(99)", "undo 99", "Error: there is no write that could be taken back", true},
		{`undo("all")`, "", "n must be a whole number", true},
		{"history()", "", "Nothing was written.", false},
		{"history(3)", "", "it takes 0 arguments", true},
	}
	for _, tt := range tests {
		l.asked = ""
		if r := do(t, i, tt.call); l.asked != tt.asked || r.Failed != tt.failed || !strings.Contains(r.Text, tt.says) {
			t.Errorf("%s: asked %q, %+v", tt.call, l.asked, r)
		}
	}
}

// TestShellInTransaction sends from the agent's shell while a transaction is open.
func TestShellInTransaction(t *testing.T) {
	posts := atomic.Int32{}
	m := http.NewServeMux()
	m.HandleFunc("GET shop/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "the shop") })
	m.HandleFunc("POST shop/", func(w http.ResponseWriter, _ *http.Request) { posts.Add(1); fmt.Fprintln(w, "sold") })
	l := &ledger{}
	i := fake(t, term.Mitigation, m)
	i.tamer = &tamer{dial: i.o.Dial, open: l.Restrained, dns: "10.96.0.10:53"}
	curl := func(args string) string {
		conn, err := i.tamer.dialContext(t.Context(), "tcp", "10.0.0.1:80")
		if err != nil {
			return err.Error()
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			return err.Error()
		}
		if _, err := io.WriteString(conn, args); err != nil {
			return err.Error()
		}
		b, _ := io.ReadAll(conn)
		return string(b)
	}
	const get = "GET /x HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n"
	const post = "POST /x HTTP/1.1\r\nHost: shop\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
	if out := curl(get); !strings.Contains(out, "the shop") {
		t.Errorf("a GET: %s", out)
	}
	if out := curl(post); !strings.Contains(out, "sold") || i.tamer.told() != "" {
		t.Errorf("a POST: %s", out)
	}
	l.open.Store(true)
	if out := curl(get); !strings.Contains(out, "the shop") {
		t.Errorf("a GET in a transaction: %s", out)
	}
	for _, evil := range []string{
		post, "SET a 1\r\n", "GET a\r\nSET b 1\r\n", "GET / HTTP/1.1\r\nSET b 1\r\n\r\n", "\x16\x03\x01\x02",
		"GET / HTTP/1.1\nHost: shop\n\n" + post, get + post, "GET / HTTP/1.1\r\nHost: shop\r\nContent-Length: 4\r\n\r\nabc\n",
		"GET / HTTP/1.1\r\nSET b: 1\r\n\r\n", strings.Repeat("x", maxLine+1),
	} {
		if out := curl(evil); !strings.Contains(out, errTamed.Error()) {
			t.Errorf("%.60q: %s", evil, out)
		}
	}
	if text := i.tamer.told(); !strings.Contains(text, "what was sent to 10.0.0.1:80") || i.tamer.told() != "" {
		t.Errorf("told %q", text)
	}
	if n := posts.Load(); n != 1 {
		t.Errorf("%d requests were sent that write", n)
	}
	if _, err := i.tamer.dialContext(t.Context(), "udp", "10.0.0.1:80"); !errors.Is(err, errTamed) {
		t.Errorf("another network: %v", err)
	}
}

// TestOldConnectionInTransaction has spoken something else before the transaction.
func TestOldConnectionInTransaction(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	go func() { _, _ = io.Copy(io.Discard, there) }()
	l := &ledger{}
	tm := &tamer{open: l.Restrained, dial: func(context.Context, string, string) (net.Conn, error) { return here, nil }}
	conn, err := tm.dialContext(t.Context(), "tcp", "10.0.0.1:6379")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "SET a 1\r\n"); err != nil {
		t.Fatal(err)
	}
	l.open.Store(true)
	if _, err := io.WriteString(conn, "SET a 2\r\n"); !errors.Is(err, errTamed) {
		t.Errorf("%v", err)
	}
}

// FuzzTamedConn sends pieces while a transaction is open: what comes through is lines of requests that read.
func FuzzTamedConn(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), 3)
	f.Add([]byte("GET a\r\nSET b 1\r\n"), 1)
	f.Add([]byte("GET / HTTP/1.1\n\nPOST / HTTP/1.1\r\n"), 7)
	f.Fuzz(func(t *testing.T, sent []byte, size int) {
		out := &sink{}
		tm := &tamer{open: func() bool { return true }}
		c := &tamedConn{Conn: out, tamer: tm, http: true}
		for rest := sent; len(rest) > 0; {
			n := min(len(rest), max(1, size%64))
			if _, err := c.Write(rest[:n]); err != nil {
				break
			}
			rest = rest[n:]
		}
		for line := range strings.Lines(string(out.b)) {
			line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
			if line != "" && !requestLine.MatchString(line) && !headerLine.MatchString(line) {
				t.Errorf("%q got through", line)
			}
		}
		if !strings.HasPrefix(string(sent), string(out.b)) {
			t.Errorf("%q was sent, %q came", sent, out.b)
		}
	})
}

type sink struct {
	net.Conn
	b []byte
}

func (s *sink) Write(b []byte) (int, error) { s.b = append(s.b, b...); return len(b), nil }
func (s *sink) Close() error                { return nil }
