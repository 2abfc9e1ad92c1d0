package campaign

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/aiopslab/aiopslab/kit"
)

// volume is a directory that many pods may have mounted.
type volume struct {
	env *kit.Env
	dir string
}

// openVolume makes the directory if it is not there.
func openVolume(env *kit.Env, dir string) (*volume, error) {
	if err := env.MkdirAll(dir, 0o775); err != nil {
		return nil, fmt.Errorf("the volume cannot be written to: %w", err)
	}
	return &volume{env, env.Path(dir)}, nil
}

// Put writes a file under another name first, and links it to its own when it is whole and on the disk. A link is made
// only if the name is free.
func (v *volume) Put(_ context.Context, name string, data []byte) (fresh bool, err error) {
	draft := v.dir + "/." + name + "-" + rand.Text()
	defer v.remove(draft)
	if err := v.write(draft, data); err != nil {
		return false, err
	}
	err = v.env.FS.Link(draft, v.dir+"/"+name)
	if noLinks(err) { // Of two that are as quick as each other, the later file stays: whole, too.
		if has, herr := v.Has(context.Background(), name); has || herr != nil {
			return false, herr
		}
		err = v.env.FS.Rename(draft, v.dir+"/"+name)
	}
	has := err == nil
	if !has {
		if has, _ = v.Has(context.Background(), name); !has {
			return false, err
		}
	}
	v.sweep(name)
	return err == nil, nil
}

// noLinks reports whether a file system, such as one of a bucket, has no hard links.
func noLinks(err error) bool {
	for _, no := range []error{syscall.EPERM, syscall.ENOTSUP, syscall.ENOSYS, syscall.EMLINK, syscall.EXDEV} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// write writes a new file, and returns when it would outlive the machine.
func (v *volume) write(name string, data []byte) error {
	f, err := v.env.FS.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o664)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// sweep removes the drafts of a file that is there. Who was killed has left them.
func (v *volume) sweep(name string) {
	entries, err := v.env.FS.ReadDir(v.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "."+name+"-") {
			v.remove(v.dir + "/" + e.Name())
		}
	}
}

// remove removes a file, if it is there and can be removed.
func (v *volume) remove(name string) { _ = v.env.FS.Remove(name) }

func (v *volume) Get(_ context.Context, name string) ([]byte, error) {
	return v.env.ReadFile(v.dir + "/" + name)
}

func (v *volume) Has(_ context.Context, name string) (bool, error) {
	_, err := v.env.FS.Stat(v.dir + "/" + name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (v *volume) List(context.Context) ([]string, error) {
	entries, err := v.env.FS.ReadDir(v.dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
