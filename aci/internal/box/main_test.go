package box

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/aci/tool"
)

// TestMain is also the lab's binary: called as "tool" it runs fake tools, confined for real.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "tool" {
		os.Exit(tool.Run(os.Args[2:], map[string]tool.Program{ShellName: fakeShell, "kubectl": fakeTool, "helm": fakeTool}))
	}
	if len(os.Args) > 2 && os.Args[1] == "environment" {
		environment(os.Args[2])
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

func fakeShell(w *tool.World, _ []string) int { return Serve(w, fakePreferences) }

// fakeTool prints what it was given, or does what its first argument says.
func fakeTool(w *tool.World, args []string) int {
	w.EndWithStarter()
	fail := func(err error) int {
		if err != nil {
			fmt.Println("failed:", err)
			return 1
		}
		fmt.Println("succeeded")
		return 0
	}
	switch verb(args, kubectlValues) {
	case "get":
		dir, _ := os.Getwd()
		fmt.Printf("args %q\ndir %s\n", args, dir)
		for _, kv := range os.Environ() {
			fmt.Println("env", kv)
		}
		return 0
	case "read":
		_, err := os.ReadFile(args[2])
		return fail(err)
	case "list":
		_, err := os.ReadDir(args[2])
		return fail(err)
	case "write":
		return fail(os.WriteFile(args[2], []byte("x"), 0o600))
	case "start":
		_, err := os.StartProcess(args[2], []string{args[2]}, &os.ProcAttr{})
		return fail(err)
	case "connect":
		c, err := net.Dial("tcp", args[2])
		if err == nil {
			c.Close()
		}
		return fail(err)
	case "cat":
		_, _ = io.Copy(os.Stdout, os.Stdin)
		return 0
	case "apply":
		for i, a := range args {
			if a == "-f" {
				b, err := os.ReadFile(args[i+1])
				if err != nil {
					fmt.Fprintf(os.Stderr, "error: the path %q cannot be read: %v\n", args[i+1], err)
					return 1
				}
				os.Stdout.Write(b)
			}
		}
		return 0
	case "hang":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
		fmt.Println("pid", os.Getpid())
		time.Sleep(time.Hour)
	case "overflow":
		return overflow(0)
	case "grow":
		for kept := [][]byte{}; ; {
			kept = append(kept, make([]byte, 64<<20))
		}
	case "panic":
		fmt.Println(args[len(args)+len(os.Args)])
	case "hold":
		megabytes, _ := strconv.Atoi(args[2])
		kept := make([]byte, megabytes<<20)
		for i := range kept {
			kept[i] = 1
		}
		time.Sleep(time.Minute)
		runtime.KeepAlive(kept)
	case "fill":
		f, err := os.Create(args[2])
		for err == nil {
			_, err = f.Write(make([]byte, 64<<10))
		}
		return fail(err)
	case "spill": // more than there is room for, at once
		return max(fail(os.WriteFile(args[2], make([]byte, 16<<20), 0o600)), 3)
	case "flood":
		err := error(nil)
		for i := 0; err == nil; i++ {
			err = os.WriteFile(args[2]+strconv.Itoa(i), nil, 0o600)
		}
		return fail(err)
	case "fail":
		fmt.Println("out")
		fmt.Fprintln(os.Stderr, "err")
		return 7
	}
	fmt.Println(strings.Join(args, " "))
	return 0
}

func overflow(n int) int {
	if n < 0 { // It never is: the stack ends before.
		return n
	}
	return overflow(n+1) + 1
}
