package tty

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// screen is what the client sees.
type screen struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// attach returns a program's side of a terminal, its keyboard and its screen.
func attach(t *testing.T) (context.Context, *kit.Env, io.Writer, *screen) {
	keys, keyboard := stream.NewPipe()
	out := &screen{}
	size := make(chan kit.TerminalSize, 1)
	size <- kit.TerminalSize{Width: 100, Height: 40}
	env := &kit.Env{Stdin: keys, Stdout: out, Stderr: out, Terminal: &kit.Terminal{Resize: size}}
	ctx, env, detach := Attach(t.Context(), env)
	t.Cleanup(detach)
	return ctx, env, keyboard, out
}

func TestCookedInput(t *testing.T) {
	_, env, keyboard, out := attach(t)
	io.WriteString(keyboard, "abé\x7fc\rsecond\r\x04")
	got, err := io.ReadAll(env.Stdin)
	if err != nil || string(got) != "abc\nsecond\n" {
		t.Errorf("the program reads %q, %v", got, err)
	}
	if want := "abé\b \bc\r\nsecond\r\n"; out.String() != want {
		t.Errorf("the screen shows %q, want %q", out.String(), want)
	}
	io.WriteString(env.Stdout, "one\ntwo\n")
	if want := "one\r\ntwo\r\n"; !bytes.HasSuffix([]byte(out.String()), []byte(want)) {
		t.Errorf("the screen shows %q, want %q at its end", out.String(), want)
	}
}

func TestInterruptEndsTheContext(t *testing.T) {
	ctx, _, keyboard, _ := attach(t)
	io.WriteString(keyboard, "abc\x03")
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
		t.Fatal("Ctrl-C has no effect")
	}
	if code := kit.ExitCode(ctx, ctx.Err(), io.Discard); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
}

func TestAttachTwice(t *testing.T) {
	ctx, env, _, _ := attach(t)
	_, again, detach := Attach(ctx, env)
	defer detach()
	if again != env {
		t.Error("a program on a terminal was attached to it again")
	}
	if s := Of(env).Size(); s.Width != 100 || s.Height != 40 {
		t.Errorf("size %v", s)
	}
}

func TestReadLine(t *testing.T) {
	history := History{"ls -l", "uname -a"}
	for _, tt := range []struct {
		name, keys, want string
		err              error
	}{
		{name: "plain", keys: "echo hi\r", want: "echo hi"},
		{name: "backspace", keys: "echx\x7fo\r", want: "echo"},
		{name: "backspace takes a whole character", keys: "aé\x7fb\r", want: "ab"},
		{name: "kill line", keys: "wrong\x15right\r", want: "right"},
		{name: "kill word", keys: "ls /tmp  \x17/etc\r", want: "ls /etc"},
		{name: "arrows", keys: "ac\x1b[Db\x1b[H>\x1b[F<\r", want: ">abc<"},
		{name: "delete", keys: "abc\x01\x1b[3~\x04\r", want: "c"},
		{name: "history", keys: "\x1b[A\x1b[A\r", want: "ls -l"},
		{name: "back from history", keys: "mine\x1b[A\x1b[B\r", want: "mine"},
		{name: "interrupt", keys: "abc\x03", err: ErrInterrupted},
		{name: "end", keys: "\x04", err: io.EOF},
		{name: "tabs are ignored", keys: "a\tb\r", want: "ab"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, env, keyboard, out := attach(t)
			go func() { // Before the prompt, the terminal would edit the line itself.
				for out.String() == "" {
					time.Sleep(time.Millisecond)
				}
				io.WriteString(keyboard, tt.keys)
			}()
			got, err := Of(env).ReadLine(ctx, "/ # ", history)
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("read %q, %v; want %q, %v", got, err, tt.want, tt.err)
			}
			if !bytes.HasPrefix([]byte(out.String()), []byte("/ # ")) {
				t.Errorf("the screen shows %q", out.String())
			}
		})
	}
}
