package agnhost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/aiopslab/aiopslab/kit"
)

const (
	newContent   = "mount-tester new file\n" // Specs compare this.
	readInterval = 2 * time.Second           // between two looks at a file that may change
)

// look is one thing mounttest does with a path: it returns what to print.
type look struct {
	flag, usage string
	do          func(path string) (string, error)
}

// looks are in the order in which they are done, so that one run can write a file and then look at it.
// Specs compare what they print.
func (p *program) looks() []look {
	list := []look{{"fs_type", "print the type of the file system", p.fsType}}
	for _, perm := range []fs.FileMode{0o644, 0o666, 0o660, 0o777} {
		name := fmt.Sprintf("new_file_%04o", perm)
		list = append(list, look{
			name, "write a file with these permissions and print it",
			func(path string) (string, error) {
				if err := p.createFile(path, perm); err != nil {
					return "", err
				}
				return p.content(path)
			},
		})
	}
	return append(list,
		look{"file_mode", "print type and permissions", func(path string) (string, error) {
			fi, err := p.env.FS.Stat(p.env.Path(path))
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("mode of file %q: %v", path, fi.Mode()), nil
		}},
		look{"file_perm", "print the permissions", func(path string) (string, error) {
			fi, err := p.env.FS.Stat(p.env.Path(path))
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("perms of file %q: %v", path, fi.Mode().Perm()), nil
		}},
		look{"file_owner", "print user and group", p.owner},
		look{"file_content", "print the content", p.content},
	)
}

// newMounttest returns the sub-command that writes files and prints what they are, and can go on
// printing one while its volume changes.
func (p *program) newMounttest() *cobra.Command {
	looks := p.looks()
	var c *cobra.Command
	var watched string
	var seconds int
	var until bool
	const short = "Write files; print their types, permissions, owners and content"
	c = command("mounttest", short, func(ctx context.Context) error {
		var failures []error
		for _, l := range looks {
			path, _ := c.Flags().GetString(l.flag)
			if path == "" {
				continue
			}
			text, err := l.do(path)
			if err != nil {
				failures = append(failures, fmt.Errorf("%s: %w", l.flag, err))
				continue
			}
			fmt.Fprintln(p.env.Stdout, text)
		}
		if watched != "" {
			if err := p.watchContent(ctx, watched, time.Duration(seconds)*time.Second, until); err != nil {
				failures = append(failures, err)
			}
		}
		return errors.Join(failures...)
	})
	stringFlag := func(f *pflag.FlagSet, name, usage string) { f.String(name, "", usage+" of `PATH`") }
	for _, l := range looks {
		stringFlag(c.Flags(), l.flag, l.usage)
	}
	c.Flags().StringVar(&watched, "file_content_in_loop", "", "print the content of `PATH` again and again")
	c.Flags().IntVar(&seconds, "retry_time", 180, "for how many seconds")
	c.Flags().BoolVar(&until, "break_on_expected_content", true, "end as soon as it is a file that this program wrote")
	return c
}

// fsType prints the name of a type, such as tmpfs, which is the one that specs ask for.
func (p *program) fsType(path string) (string, error) {
	info, err := p.env.FS.StatFS(p.env.Path(path))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("mount type of %q: %s", path, info.Type), nil
}

func (p *program) owner(path string) (string, error) {
	fi, err := p.env.FS.Stat(p.env.Path(path))
	if err != nil {
		return "", err
	}
	var uid, gid int
	switch sys := fi.Sys().(type) {
	case *kit.Owner:
		uid, gid = sys.UID, sys.GID
	case *syscall.Stat_t: // on a real cluster
		uid, gid = int(sys.Uid), int(sys.Gid)
	}
	return fmt.Sprintf("owner UID of %q: %d\nowner GID of %[1]q: %[3]d", path, uid, gid), nil
}

func (p *program) content(path string) (string, error) {
	data, err := p.env.ReadFile(path)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("content of file %q: %s", path, data), nil
}

// createFile writes a file. A new one gets exactly the given permissions, whatever the umask.
func (p *program) createFile(path string, perm fs.FileMode) error {
	_, err := p.env.FS.Stat(p.env.Path(path))
	isNew := errors.Is(err, fs.ErrNotExist)
	if err := p.env.WriteFile(path, []byte(newContent), perm); err != nil || !isNew {
		return err
	}
	return p.env.FS.Chmod(p.env.Path(path), perm)
}

// watchContent prints a file again and again, until the time is up or, if until is set, the file is one
// that createFile wrote. The file may come and go; it fails if it is not there at last.
func (p *program) watchContent(ctx context.Context, path string, limit time.Duration, until bool) error {
	end := time.Now().Add(limit)
	for {
		data, err := p.env.ReadFile(path)
		if err != nil {
			fmt.Fprintf(p.env.Stdout, "Error reading file %s: %v\n", path, err) // Specs search for this.
		} else {
			fmt.Fprintf(p.env.Stdout, "content of file %q: %s\n", path, data)
			if until && string(data) == newContent {
				return nil
			}
		}
		if err := sleep(ctx, readInterval); err != nil {
			return err
		}
		if !time.Now().Before(end) {
			return err
		}
	}
}
