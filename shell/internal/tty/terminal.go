package tty

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/stream"
)

// The keys a terminal acts upon.
const (
	keyInterrupt = 0x03 // Ctrl-C
	keyEOF       = 0x04 // Ctrl-D
	keyBackspace = 0x08
	keyKillLine  = 0x15 // Ctrl-U
	keyKillWord  = 0x17 // Ctrl-W
	keyEscape    = 0x1b
	keyDelete    = 0x7f
)

// Terminal is a line discipline over a client that sends raw keys. It is safe for concurrent use.
type Terminal struct {
	out  io.Writer
	size *kit.Terminal

	mu        sync.Mutex
	raw       bool   // keys go to readers as they are
	mute      bool   // what is typed is not shown
	line      []byte // what was typed since the last newline
	ready     []byte // what readers get
	eofs      int    // ends of input that readers have not seen yet
	err       error  // why no more will come
	interrupt []func()
	window    kit.TerminalSize
	changed   chan struct{}
}

// Attach puts a terminal between a program and its streams, if they are a terminal's and have none
// yet. The context it returns ends on Ctrl-C. detach must be called when the program ends.
func Attach(ctx context.Context, env *kit.Env) (_ context.Context, attached *kit.Env, detach func()) {
	if env.Terminal == nil || Of(env) != nil {
		return ctx, env, func() {}
	}
	t := &Terminal{
		out: env.Stdout, size: env.Terminal,
		changed: make(chan struct{}),
		window:  kit.TerminalSize{Width: 80, Height: 24},
	}
	ctx, cancel := context.WithCancelCause(ctx)
	t.interrupt = []func(){func() { cancel(kit.Killed{Signal: syscall.SIGINT}) }}
	c := *env
	c.Stdin, c.Stdout, c.Stderr = &input{t}, &output{t: t, w: env.Stdout}, &output{t: t, w: env.Stderr}
	src := stream.Reader(env.Stdin)
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	pumped := make(chan struct{})
	go func() {
		defer close(pumped)
		t.pump(reading, src)
	}()
	return ctx, &c, func() {
		stop()
		<-pumped
		cancel(context.Canceled)
	}
}

// Of returns the terminal a program's input comes from, or nil.
func Of(env *kit.Env) *Terminal {
	in, ok := env.Stdin.(interface{ Terminal() *Terminal })
	if !ok {
		return nil
	}
	return in.Terminal()
}

// Size returns the size of the window.
func (t *Terminal) Size() kit.TerminalSize {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		select {
		case s, ok := <-t.size.Resize:
			if !ok {
				return t.window
			}
			t.window = s
		default:
			return t.window
		}
	}
}

// OnInterrupt lets f be called on Ctrl-C, instead of what was called before, until restore.
func (t *Terminal) OnInterrupt(f func()) (restore func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.interrupt = append(t.interrupt, f)
	depth := len(t.interrupt)
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.interrupt = t.interrupt[:depth-1]
	}
}

// pump moves keys from the client to the readers.
func (t *Terminal) pump(ctx context.Context, src stream.ContextReader) {
	buf := make([]byte, 1024)
	for {
		n, err := src.ReadContext(ctx, buf)
		for _, key := range buf[:n] {
			t.key(key)
		}
		if err != nil {
			t.mu.Lock()
			t.ready, t.line = append(t.ready, t.line...), nil
			t.err = io.EOF
			t.wake()
			t.mu.Unlock()
			return
		}
	}
}

func (t *Terminal) wake() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// key does what the kernel does with a key.
func (t *Terminal) key(b byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.raw {
		t.ready = append(t.ready, b)
		t.wake()
		return
	}
	switch b {
	case keyInterrupt:
		t.echo("^C\r\n")
		t.line = nil
		go t.interrupt[len(t.interrupt)-1]() // It may want to write to the terminal.
	case keyEOF:
		if len(t.line) == 0 {
			t.eofs++
		}
		t.ready, t.line = append(t.ready, t.line...), nil
		t.wake()
	case keyBackspace, keyDelete:
		if len(t.line) > 0 {
			_, n := utf8.DecodeLastRune(t.line)
			t.line = t.line[:len(t.line)-n]
			t.echo("\b \b")
		}
	case keyKillLine:
		t.echo(strings.Repeat("\b \b", utf8.RuneCount(t.line)))
		t.line = nil
	case '\r', '\n':
		t.echo("\r\n")
		t.ready, t.line = append(append(t.ready, t.line...), '\n'), nil
		t.wake()
	default:
		t.line = append(t.line, b)
		if b < ' ' && b != '\t' {
			t.echo("^" + string(rune(b+'@')))
		} else {
			t.echo(string([]byte{b}))
		}
	}
}

// echo shows what was typed. What the client does not take is lost, as on a real line.
func (t *Terminal) echo(s string) {
	if !t.mute {
		io.WriteString(t.out, s)
	}
}

// SetEcho says whether what is typed is shown; a password is not.
func (t *Terminal) SetEcho(on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mute = !on
}

// read waits for what was typed. raw says whether the reader wants keys or lines.
func (t *Terminal) read(ctx context.Context, p []byte) (int, error) {
	for {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		t.mu.Lock()
		if len(t.ready) > 0 || len(p) == 0 {
			want := p
			if i := bytes.IndexByte(t.ready, '\n'); i >= 0 && i+1 < len(want) && !t.raw {
				want = want[:i+1] // A terminal gives one line at a time.
			}
			n := copy(want, t.ready)
			t.ready = t.ready[n:]
			t.mu.Unlock()
			return n, nil
		}
		if t.eofs > 0 {
			t.eofs--
			t.mu.Unlock()
			return 0, io.EOF
		}
		if t.err != nil {
			defer t.mu.Unlock()
			return 0, t.err
		}
		changed := t.changed
		t.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// setRaw switches between keys and lines. What was typed ahead is not lost.
func (t *Terminal) setRaw(raw bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.raw = raw; raw {
		t.ready, t.line = append(t.ready, t.line...), nil
	}
}
