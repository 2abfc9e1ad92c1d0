package kit

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"syscall"
)

// DefaultPath is where programs are looked for if PATH is not set.
const DefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// LookPath finds the file of a program as execvp(3) does: by its path if the name has a slash, else
// in the directories of PATH. The error is what an [ExecError] wraps: ErrNotInPath, or one with the
// errno.
func (e *Env) LookPath(name string) (string, error) {
	if strings.Contains(name, "/") {
		file := e.Path(name)
		return file, e.checkExecutable(file)
	}
	search := e.Getenv("PATH")
	if search == "" {
		search = DefaultPath
	}
	missing := ErrNotInPath
	for dir := range strings.SplitSeq(search, ":") {
		file := path.Join(e.Path(dir), name)
		switch err := e.checkExecutable(file); {
		case err == nil:
			return file, nil
		case errors.Is(err, syscall.EACCES):
			missing = err
		}
	}
	return "", missing
}

func (e *Env) checkExecutable(file string) error {
	fi, err := e.FS.Stat(file)
	switch {
	case errors.Is(err, syscall.ENOENT):
		return &fs.PathError{Op: "stat", Path: file, Err: syscall.ENOENT}
	case err != nil:
		return errnoOf(err)
	case fi.IsDir(), fi.Mode()&0o111 == 0:
		return syscall.EACCES
	}
	return nil
}

// errnoOf strips an error of its path.
func errnoOf(err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return err
}
