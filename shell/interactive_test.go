package shell

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/shelltest"
	"github.com/aiopslab/aiopslab/shell/internal/stream"
)

// session is somebody at a terminal, as kubectl exec -it makes it.
type session struct {
	t        *testing.T
	keyboard *stream.PipeWriter
	screen   *shelltest.Buffer
	run      *shelltest.Running
	seen     int
}

func newSession(t *testing.T, m *shelltest.Machine, args ...string) *session {
	keys, keyboard := stream.NewPipe()
	env := m.Env(args...)
	screen := &shelltest.Buffer{}
	size := make(chan kit.TerminalSize, 1)
	size <- kit.TerminalSize{Width: 40, Height: 10}
	env.Stdin, env.Stdout, env.Stderr, env.Terminal = keys, screen, screen, &kit.Terminal{Resize: size}
	s := &session{t: t, keyboard: keyboard, screen: screen, run: m.Start(env)}
	t.Cleanup(func() { keyboard.Close() })
	return s
}

// expect waits until the screen shows what is wanted, after what was expected before.
func (s *session) expect(want string) {
	s.t.Helper()
	for deadline := time.Now().Add(shelltest.Patience); ; time.Sleep(time.Millisecond) {
		text := s.screen.String()
		if i := strings.Index(text[s.seen:], want); i >= 0 {
			s.seen += i + len(want)
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the screen does not show %q, but %q", want, text[s.seen:])
		}
	}
}

func (s *session) press(keys string) { io.WriteString(s.keyboard, keys) }

func TestInteractiveShell(t *testing.T) {
	m := shelltest.New(t, Tools())
	s := newSession(t, m, "sh")
	s.expect("/ # ")
	s.press("echo hello\r")
	s.expect("echo hello\r\nhello\r\n/ # ")
	s.press("cd /etc\r")
	s.expect("/etc # ")
	s.press("ls\r")
	s.expect("ls\r\ngroup   hosts   passwd\r\n/etc # ")
	s.press("ls | cat\r")
	s.expect("group\r\nhosts\r\npasswd\r\n")
	s.expect("# ")
	s.press("for i in 1 2\r")
	s.expect("> ")
	s.press("do echo n$i; done\r")
	s.expect("n1\r\nn2\r\n/etc # ")
	s.press("nosuch\r")
	s.expect("sh: nosuch: not found\r\n")
	s.press("echo $?\r")
	s.expect("127\r\n")
	s.expect("# ")
	s.press("echo typo\x7f\x7f\x7f\x7fright\r")
	s.expect("\r\nright\r\n")
	s.press("\x1b[A\r")
	s.expect("\r\nright\r\n")
	s.press("fi\r")
	s.expect("syntax error")
	s.press("stty size; tty\r")
	s.expect("10 40\r\n/dev/pts/0\r\n")
	s.press("exit 3\r")
	if got := s.run.Wait(); got.Code != 3 {
		t.Errorf("exit code %d", got.Code)
	}
}

func TestInteractiveInterrupt(t *testing.T) {
	m := shelltest.New(t, Tools())
	s := newSession(t, m, "sh")
	s.expect("/ # ")
	s.press("half a line\x03")
	s.expect("^C\r\n/ # ")
	for _, command := range []string{"sleep 1000", "while :; do :; done", "sleep 1000 | cat", "cat", "tail -f /etc/passwd", "sh -c 'sleep 1000'", "sleep 1000; echo no''t", "sleep 1000 | cat; echo no''t", "sleep 1000 | { read x; true; }"} {
		s.press("echo u''p; " + command + "\r")
		s.expect("\r\nup\r\n") // The line is under way.
		s.press("\x03")
		s.expect("/ # ")
		s.press("echo status $?\r")
		s.expect("status 130\r\n")
		s.expect("/ # ")
	}
	if strings.Contains(s.screen.String(), "not\r\n") {
		t.Error("the line went on")
	}
	s.press("\x04")
	if got := s.run.Wait(); got.Code != 130 && got.Code != 0 {
		t.Errorf("exit code %d", got.Code)
	}
}

func TestInteractiveInput(t *testing.T) {
	m := shelltest.New(t, Tools())
	s := newSession(t, m, "sh")
	s.expect("/ # ")
	s.press("cat\r")
	s.expect("cat\r\n")
	s.press("one\r")
	s.expect("one\r\none\r\n") // the echo, and what cat says
	s.press("\x04")
	s.expect("/ # ")
	s.press("read x\r")
	s.expect("read x\r\n")
	s.press("typed\r")
	s.expect("# ")
	s.press("echo \"<$x>\"\r")
	s.expect("<typed>\r\n")
	s.expect("# ")
	s.press("read -s -p 'Secret: ' x; echo; echo \"<$x>\"\r")
	s.expect("\r\nSecret: ")
	s.press("hush\r")
	s.expect("<hush>\r\n")
	if strings.Contains(s.screen.String(), "Secret: h") {
		t.Error("the secret is shown")
	}
	// A shell within the shell shares the terminal.
	s.press("sh\r")
	s.expect("/ # ")
	s.press("echo inner; exit\r")
	s.expect("\r\ninner\r\n/ # ")
	s.press("sleep 1000 &\r")
	s.expect("# ")
	s.press("jobs; kill %1\r")
	s.expect("[1]+  Running                sleep 1000\r\n")
	s.press("\x04")
	s.run.Wait()
}

func TestInteractivePrompt(t *testing.T) {
	m := shelltest.New(t, Tools())
	m.Write("/root/.bashrc", "PS1='\\u@\\h:\\w\\$ '\n")
	s := newSession(t, m, "bash")
	s.expect("root@box:/# ")
	s.press("cd\r")
	s.expect("root@box:~# ")
	s.press("\x04")
	s.expect("exit\r\n")
	s.run.Wait()

	m.User.UID = 1000
	s = newSession(t, m, "sh")
	s.expect("/ $ ")
	s.press("\x04")
	s.run.Wait()
}

// TestTerminalWithoutShell runs a tool on a terminal by itself, as kubectl exec -it pod -- ls does.
func TestTerminalWithoutShell(t *testing.T) {
	m := shelltest.New(t, Tools())
	s := newSession(t, m, "ls", "/etc")
	s.run.Wait()
	s.expect("group   hosts   passwd\r\n")
	s = newSession(t, m, "tail", "-f", "/etc/hosts")
	s.expect("localhost\r\n")
	s.press("\x03")
	if got := s.run.Wait(); got.Code != 130 {
		t.Errorf("exit code %d", got.Code)
	}
	s = newSession(t, m, "sh", "-c", "echo a; read x; echo got $x")
	s.expect("a\r\n")
	s.press("b\r")
	s.expect("b\r\ngot b\r\n")
	s.run.Wait()
	s = newSession(t, m, "top")
	s.expect("use 'top -b -n1'\r\n")
	s.run.Wait()
}
