package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// redirect has one descriptor be another.
func redirect(from, to int) error { return unix.Dup3(from, to, 0) }

// attributes put the process in a group of its own, and have the kernel end it with its supervisor.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// maxTree is how many processes are counted. Nobody starts as many.
const maxTree = 4096

// tree is a process and those that it has started.
func tree(pid int) []int {
	list := []int{pid}
	for i := 0; i < len(list) && len(list) < maxTree; i++ {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", list[i]))
		if err != nil {
			continue
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				continue // The thread has ended.
			}
			for _, f := range bytes.Fields(b) {
				if child, err := strconv.Atoi(string(f)); err == nil {
					list = append(list, child)
				}
			}
		}
	}
	return list
}

// memory is how many bytes of its own a process takes, with those it has started: heaps and stacks,
// not files.
func memory(pid int) (sum int64) {
	for _, p := range tree(pid) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p))
		fields := bytes.Fields(b)
		if err != nil || len(fields) < 3 {
			continue
		}
		resident, _ := strconv.ParseInt(string(fields[1]), 10, 64)
		shared, _ := strconv.ParseInt(string(fields[2]), 10, 64)
		sum += (resident - shared) * int64(os.Getpagesize())
	}
	return sum
}
