package socketpair_test

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/internal/socketpair"
)

// childEnv says that this process is the child of a test, and what it does.
const childEnv = "SOCKETPAIR_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childEnv) {
	case "":
		os.Exit(m.Run())
	case "answer": // in capitals, whatever is said
		there := os.NewFile(3, "there")
		b, err := io.ReadAll(there)
		if err != nil {
			os.Exit(1)
		}
		_, _ = io.WriteString(there, strings.ToUpper(string(b)))
	case "wait": // until its input ends
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
	os.Exit(0)
}

func child(t *testing.T, does string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), childEnv+"="+does)
	return cmd
}

// pair is a connection as its ends are used: here as a net.Conn, there as a file.
func pair(t *testing.T) (here *net.UnixConn, there *os.File) {
	t.Helper()
	file, there, err := socketpair.New()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		there.Close()
	})
	return conn.(*net.UnixConn), there
}

// A process and its child talk to each other, both ways.
func TestTalk(t *testing.T) {
	here, there := pair(t)
	cmd := child(t, "answer")
	cmd.ExtraFiles = []*os.File{there}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	there.Close() // Only the child has it now.
	if _, err := io.WriteString(here, "are you there?"); err != nil {
		t.Fatal(err)
	}
	if err := here.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(here)
	if err != nil || string(b) != "ARE YOU THERE?" {
		t.Errorf("%q, %v", b, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// The end of a child that dies is closed, whichever other children there are: none of them has it.
func TestNoOtherChildInherits(t *testing.T) {
	here, there := pair(t)
	other := child(t, "wait")
	alive, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	there.Close()
	if err := here.SetDeadline(time.Now().Add(20 * time.Second)); err != nil { // With an heir, reading would never end.
		t.Fatal(err)
	}
	if b, err := io.ReadAll(here); err != nil || len(b) > 0 {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := here.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("writing to nobody: %v", err)
	}
	alive.Close()
	if err := other.Wait(); err != nil {
		t.Error(err)
	}
}
