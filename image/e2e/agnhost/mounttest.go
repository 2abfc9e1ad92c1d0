package agnhost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/kit"
)

const (
	newContent   = "mount-tester new file\n"
	readInterval = 2 * time.Second // between two looks at a file whose content may change
)

// magic are the numbers statfs(2) gives for types of file systems. The real program knows only
// tmpfs by name and prints the number of any other.
var magic = map[string]int64{
	"ext2": 0xef53, "ext3": 0xef53, "ext4": 0xef53, "overlay": 0x794c7630, "xfs": 0x58465342,
	"btrfs": 0x9123683e, "nfs": 0x6969, "nfs4": 0x6969, "fuse": 0x65735546, "hugetlbfs": 0x958458f6,
	"proc": 0x9fa0, "sysfs": 0x62656572, "cgroup2": 0x63677270, "devpts": 0x1cd1, "ramfs": 0x858458f6,
}

// newMounttest returns the sub-command that creates files and prints types, modes, owners and
// contents. Flags are obeyed in a fixed order, so that one run can write a file and then look at it.
func (p *program) newMounttest() *cobra.Command {
	var fsType, mode, perm, owner, content, loop string
	var retry int
	var stopOnContent bool
	create := map[fs.FileMode]*string{}
	perms := []fs.FileMode{0o644, 0o666, 0o660, 0o777}
	c := command("mounttest", "Creates files with given permissions and outputs FS type, owner, mode, permissions, contents of files", func(ctx context.Context) error {
		failed := false
		do := func(path string, f func(string) error) {
			if path == "" {
				return
			}
			if err := f(path); err != nil {
				failed = true
			}
		}
		do(fsType, p.printFSType)
		for _, perm := range perms {
			do(*create[perm], func(path string) error { return p.createFile(path, perm) })
		}
		do(mode, p.printMode)
		do(perm, p.printPerm)
		do(owner, p.printOwner)
		do(content, p.printContent)
		do(loop, func(path string) error {
			return p.watchContent(ctx, path, time.Duration(retry)*time.Second, stopOnContent)
		})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case failed:
			return kit.Exit(1)
		}
		return nil
	})
	f := c.Flags()
	f.StringVar(&fsType, "fs_type", "", "Path to print the fs type for")
	f.StringVar(&mode, "file_mode", "", "Path to print the mode bits of")
	f.StringVar(&perm, "file_perm", "", "Path to print the perms of")
	f.StringVar(&owner, "file_owner", "", "Path to print the owning UID and GID of")
	for _, perm := range perms {
		create[perm] = f.String(fmt.Sprintf("new_file_%04o", perm), "", fmt.Sprintf("Path to write to and read from with perm %04o", perm))
	}
	f.StringVar(&content, "file_content", "", "Path to read the file content from")
	f.StringVar(&loop, "file_content_in_loop", "", "Path to read the file content in loop from")
	f.IntVar(&retry, "retry_time", 180, "Retry time during the loop")
	f.BoolVar(&stopOnContent, "break_on_expected_content", true, "Break out of loop on expected content, (use with --file_content_in_loop flag only)")
	return c
}

func (p *program) printf(format string, args ...any) { fmt.Fprintf(p.env.Stdout, format, args...) }

// bare strips what package fs adds to the kernel's error: some of the texts tests read have it,
// some do not.
func bare(err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return err
}

func (p *program) printFSType(path string) error {
	info, err := p.env.FS.StatFS(p.env.Path(path))
	if err != nil {
		p.printf("error from statfs(%q): %v\n", path, bare(err))
		return err
	}
	name := info.Type
	if name != "tmpfs" {
		name = strconv.FormatInt(magic[name], 10)
	}
	p.printf("mount type of %q: %s\n", path, name)
	return nil
}

func (p *program) printMode(path string) error {
	fi, err := p.env.FS.Stat(p.env.Path(path))
	if err != nil {
		p.printf("error from Stat(%q): %v\n", path, err)
		return err
	}
	p.printf("mode of file %q: %v\n", path, fi.Mode())
	return nil
}

func (p *program) printPerm(path string) error {
	fi, err := p.env.FS.Stat(p.env.Path(path))
	if err != nil {
		p.printf("error from Stat(%q): %v\n", path, err)
		return err
	}
	p.printf("perms of file %q: %v\n", path, fi.Mode().Perm())
	return nil
}

func (p *program) printOwner(path string) error {
	fi, err := p.env.FS.Stat(p.env.Path(path))
	if err != nil {
		p.printf("error from stat(%q): %v\n", path, bare(err))
		return err
	}
	var uid, gid int
	switch sys := fi.Sys().(type) {
	case *kit.Owner:
		uid, gid = sys.UID, sys.GID
	case *syscall.Stat_t: // on a real cluster
		uid, gid = int(sys.Uid), int(sys.Gid)
	}
	p.printf("owner UID of %q: %v\n", path, uid)
	p.printf("owner GID of %q: %v\n", path, gid)
	return nil
}

func (p *program) printContent(path string) error {
	data, err := p.env.ReadFile(path)
	if err != nil {
		p.printf("error reading file content for %q: %v\n", path, err)
		return err
	}
	p.printf("content of file %q: %v\n", path, string(data))
	return nil
}

// createFile writes a file. A new one gets exactly the given permissions: the real program clears
// its umask.
func (p *program) createFile(path string, perm fs.FileMode) error {
	_, err := p.env.FS.Stat(p.env.Path(path))
	isNew := errors.Is(err, fs.ErrNotExist)
	err = p.env.WriteFile(path, []byte(newContent), perm)
	if err == nil && isNew {
		err = p.env.FS.Chmod(p.env.Path(path), perm)
	}
	if err != nil {
		p.printf("error writing new file %q: %v\n", path, err)
		return err
	}
	return p.printContent(path)
}

// watchContent prints a file's content again and again, until the time is up or the file has the
// expected content.
func (p *program) watchContent(ctx context.Context, path string, limit time.Duration, stopOnContent bool) error {
	var err error
	for start := time.Now(); time.Since(start) < limit; {
		var data []byte
		data, err = p.env.ReadFile(path)
		switch {
		case err != nil:
			p.printf("Error reading file %s: %v, retrying\n", path, err)
		case stopOnContent && string(data) == newContent:
			p.printf("content of file %q: %v\n", path, string(data))
			return nil
		default:
			p.printf("content of file %q: %v\n", path, string(data))
			if stopOnContent {
				p.printf("Unexpected content. Expected: %s. Retrying\n", newContent)
			}
		}
		if sleep(ctx, readInterval) != nil {
			return ctx.Err()
		}
	}
	return err
}
