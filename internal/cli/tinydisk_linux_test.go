package cli_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// tinydisk runs a program with a small disk mounted, in namespaces of its own so that it needs no
// privileges where the kernel allows that: tinydisk DIR SIZE PROGRAM ARG...
func tinydisk() int {
	cmd := exec.Command("tinymount", os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tinydisk:", err)
		return 125
	}
	return 0
}

// tinymount is what tinydisk runs in the namespaces.
func tinymount() int {
	err := syscall.Mount("tmpfs", os.Args[1], "tmpfs", 0, "mode=0700,size="+os.Args[2])
	if err == nil {
		var program string
		if program, err = exec.LookPath(os.Args[3]); err == nil {
			err = syscall.Exec(program, os.Args[3:], os.Environ())
		}
	}
	fmt.Fprintln(os.Stderr, "tinymount:", err)
	return 125
}
