package box

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/aci/tool"
)

// environment is a process with a machine on which kubectl hangs. It prints the processes of both.
func environment(dir string) {
	b, err := newBox(Options{
		Dir: dir, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED },
		API: "127.0.0.1:6443", Self: []string{os.Args[0], "tool"},
	}, standard, tool.OwnRoot())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(b.shell.cmd.Process.Pid)
	go func() {
		for {
			b.shell.mu.Lock()
			for cmd := range b.shell.tools {
				fmt.Println(cmd.Process.Pid)
			}
			n := len(b.shell.tools)
			b.shell.mu.Unlock()
			if n > 0 {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	b.Run(context.Background(), "kubectl hang", time.Hour)
}

// Nothing outlives an environment that is killed.
func TestProcessesEndWithTheEnvironment(t *testing.T) {
	cmd := exec.Command(os.Args[0], "environment", t.TempDir())
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var pids []int
	for len(pids) < 2 && lines.Scan() {
		pid, err := strconv.Atoi(strings.TrimSpace(lines.Text()))
		if err != nil {
			t.Fatal(lines.Text())
		}
		pids = append(pids, pid)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for _, pid := range pids {
		for alive(pid) {
			time.Sleep(10 * time.Millisecond) // The test's own limit ends this.
		}
	}
	if len(pids) != 2 {
		t.Errorf("%d processes were seen", len(pids))
	}
}

// alive reports whether a process runs: one that has ended may wait for its new parent to notice.
func alive(pid int) bool {
	if stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil {
		_, rest, _ := strings.Cut(string(stat), ") ")
		return !strings.HasPrefix(rest, "Z")
	}
	return syscall.Kill(pid, 0) == nil
}
