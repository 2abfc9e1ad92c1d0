package cell

import (
	"context"
	"net"
	"net/rpc"
	"os"
	"runtime/debug"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"

	"github.com/aiopslab/aiopslab/kit"
)

const (
	// softMemory is where Go's collector begins to work hard; maxMemory is what the kernel gives.
	softMemory = 448 << 20
	// maxStack is how much one goroutine may nest.
	maxStack = 256 << 20
	maxFiles = 64 // open ones
)

// Register names a program that [Run] can run. In a process that is to be this cell, it runs the program
// and does not return.
func Register(name string, p kit.Program) {
	RegisterFunc(name, func(line net.Conn) { inside(line, p) })
}

// RegisterFunc names a function that [Start] can run, with a line to speak its own language on. In a
// process that is to be this cell, it runs the function and does not return.
func RegisterFunc(name string, f func(line net.Conn)) {
	if os.Getenv(nameVar) != name {
		return
	}
	os.Unsetenv(nameVar)
	file := os.NewFile(lineFD, "line")
	line, err := net.FileConn(file)
	if err == nil {
		file.Close()
		err = confine()
	}
	if err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
	f(line)
	os.Exit(0)
}

// confine takes from the process, for good, all memory beyond its share, all files, and what the
// kernel's Landlock can take of the network.
func confine() error {
	limits := map[int]uint64{unix.RLIMIT_FSIZE: 0, unix.RLIMIT_NOFILE: maxFiles, unix.RLIMIT_CORE: 0}
	if maxMemory > 0 {
		limits[unix.RLIMIT_DATA] = maxMemory
	}
	for resource, most := range limits {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return err
		}
	}
	debug.SetMemoryLimit(softMemory)
	debug.SetMaxStack(maxStack)
	// If the machine runs out of memory, this process should go before any other.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	return landlock.V10.BestEffort().Restrict()
}

// inside runs a program at the far end of a line.
func inside(line net.Conn, p kit.Program) {
	client := rpc.NewClient(line)
	go func() { // Whoever has started us may end.
		_ = client.Call("Host.Alive", 0, new(int))
		os.Exit(1)
	}()
	var w World
	if client.Call("Host.World", 0, &w) != nil {
		os.Exit(1)
	}
	code := kit.Run(context.Background(), p, w.env(client))
	_ = client.Call("Host.Exit", code, new(int))
}
