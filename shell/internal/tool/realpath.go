package tool

import (
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/aiopslab/aiopslab/kit"
)

// maxLinks is how many symbolic links a path may lead through.
const maxLinks = 40

// Realpath resolves all symbolic links in a path. missing says how much may not exist: 0 nothing,
// 1 the last element, 2 any.
func Realpath(env *kit.Env, name string, missing int) (string, error) {
	fail := func(err error) (string, error) {
		return "", &fs.PathError{Op: "realpath", Path: name, Err: err}
	}
	// Not cleaned: a ".." after a link leads to the parent of where the link leads.
	if !strings.HasPrefix(name, "/") {
		name = env.Dir + "/" + name
	}
	rest := strings.Split(name, "/")
	resolved := "/"
	for links := 0; len(rest) > 0; {
		element := rest[0]
		rest = rest[1:]
		switch element {
		case "", ".":
			continue
		case "..":
			resolved = path.Dir(resolved)
			continue
		}
		next := path.Join(resolved, element)
		fi, err := env.FS.Lstat(next)
		if err != nil {
			last := strings.Trim(strings.Join(rest, ""), "/") == ""
			if missing == 2 || missing == 1 && last {
				resolved = next
				continue
			}
			return fail(Errno(err))
		}
		if fi.Mode()&fs.ModeSymlink == 0 {
			if !fi.IsDir() && len(rest) > 0 && missing < 2 {
				return fail(syscall.ENOTDIR)
			}
			resolved = next
			continue
		}
		if links++; links > maxLinks {
			return fail(syscall.ELOOP)
		}
		target, err := env.FS.Readlink(next)
		if err != nil {
			return fail(Errno(err))
		}
		if strings.HasPrefix(target, "/") {
			resolved = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return resolved, nil
}

// Errno is what an error of the file system comes down to.
func Errno(err error) error {
	if p, ok := err.(*fs.PathError); ok {
		return p.Err
	}
	return err
}
