package node

import (
	"io/fs"
	"os"
	"path"
	"time"

	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

// nodeOS gives the kubelet's code the node's files in place of the host's. Open files cannot be
// handed out as *os.File; the only ones it asks for, it creates and closes.
type nodeOS struct{ machine *machine }

var _ kubecontainer.OSInterface = nodeOS{}

func (o nodeOS) MkdirAll(name string, perm os.FileMode) error {
	return o.machine.env().MkdirAll(name, perm)
}

func (o nodeOS) Symlink(target, name string) error {
	if err := o.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	return o.machine.env().FS.Symlink(target, name)
}
func (o nodeOS) Stat(name string) (os.FileInfo, error) { return o.machine.env().FS.Stat(name) }
func (o nodeOS) Remove(name string) error              { return o.machine.env().FS.Remove(name) }
func (o nodeOS) RemoveAll(name string) error           { return o.machine.env().RemoveAll(name) }
func (o nodeOS) Chmod(name string, perm os.FileMode) error {
	return o.machine.env().FS.Chmod(name, perm)
}
func (o nodeOS) Hostname() (string, error) { return o.machine.spec.Name, nil }
func (o nodeOS) Chtimes(name string, _, mtime time.Time) error {
	return o.machine.env().FS.Chtimes(name, mtime)
}

func (o nodeOS) Rename(oldname, newname string) error {
	return o.machine.env().FS.Rename(oldname, newname)
}

func (o nodeOS) ReadDir(name string) ([]os.DirEntry, error) { return o.machine.env().FS.ReadDir(name) }

// Create makes an empty file and returns one that swallows what is written.
func (o nodeOS) Create(name string) (*os.File, error) {
	if err := o.machine.env().WriteFile(name, nil, 0o666); err != nil {
		return nil, err
	}
	return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
}

func (o nodeOS) Pipe() (r, w *os.File, err error) { return os.Pipe() }

// Glob finds files in one directory; that is all it is asked for.
func (o nodeOS) Glob(pattern string) (list []string, err error) {
	entries, err := o.ReadDir(path.Dir(pattern))
	if err != nil {
		return nil, nil // As filepath.Glob does.
	}
	for _, e := range entries {
		if ok, err := path.Match(path.Base(pattern), e.Name()); err != nil {
			return nil, err
		} else if ok {
			list = append(list, path.Join(path.Dir(pattern), e.Name()))
		}
	}
	return list, nil
}

func (o nodeOS) Open(name string) (*os.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func (o nodeOS) OpenFile(name string, _ int, _ os.FileMode) (*os.File, error) { return o.Open(name) }
