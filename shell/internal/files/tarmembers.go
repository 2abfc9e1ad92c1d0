package files

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// create writes the members and what is below them to the archive.
func (t *archiver) create() error {
	if len(t.names) == 0 {
		return t.c.Fail(1, "empty archive")
	}
	w, done, err := t.output()
	if err != nil {
		return err
	}
	tw := tar.NewWriter(w)
	accounts := tool.ReadAccounts(t.c.Env)
	links := map[uint64]string{}
	for _, m := range t.names {
		if err := t.add(tw, m.name, m.dir, accounts, links); err != nil {
			return err
		}
	}
	return errors.Join(tw.Close(), done())
}

// stored is the name of a file in the archive: never absolute.
func (t *archiver) stored(name string) string {
	if t.absolute {
		return name
	}
	trimmed := strings.TrimLeft(name, "/")
	for strings.HasPrefix(trimmed, "../") {
		trimmed = trimmed[3:]
	}
	if trimmed == "" {
		return "."
	}
	return trimmed
}

func (t *archiver) add(tw *tar.Writer, name, dir string, accounts *tool.Accounts, links map[uint64]string) error {
	tool.Stopped(t.c.Context())
	env := *t.c.Env
	env.Dir = dir
	file := env.Path(name)
	if t.excluded(name) {
		return nil
	}
	fi, err := env.FS.Lstat(file)
	if t.follow && err == nil {
		fi, err = env.FS.Stat(file)
	}
	if err != nil {
		t.c.Warn("%s: %s", name, tool.Reason(err))
		return nil
	}
	target := ""
	if fi.Mode()&fs.ModeSymlink != 0 {
		target, _ = env.FS.Readlink(file)
	}
	h, err := tar.FileInfoHeader(plainInfo{fi}, target)
	if err != nil {
		return nil // A socket or the like, which archives do not hold.
	}
	owner := tool.Owner(fi)
	h.Uid, h.Gid = owner.UID, owner.GID
	h.Uname, h.Gname = accounts.UserName(owner.UID), accounts.GroupName(owner.GID)
	if h.Name = t.stored(name); fi.IsDir() {
		h.Name = strings.TrimSuffix(h.Name, "/") + "/"
	} else if first, ok := links[owner.Inode]; ok && owner.Links > 1 {
		h.Typeflag, h.Linkname, h.Size = tar.TypeLink, first, 0
	} else if owner.Links > 1 {
		links[owner.Inode] = h.Name
	}
	if t.verbose {
		t.list(h.Name)
	}
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	if h.Typeflag == tar.TypeReg {
		if err := t.content(tw, &env, file, h.Size); err != nil {
			return t.c.Fail(1, "%s: %s", name, tool.Reason(err))
		}
	}
	if !fi.IsDir() {
		return nil
	}
	entries, err := env.FS.ReadDir(file)
	if err != nil {
		t.c.Warn("%s: %s", name, tool.Reason(err))
		return nil
	}
	for _, e := range entries {
		if err := t.add(tw, tool.Join(name, e.Name()), dir, accounts, links); err != nil {
			return err
		}
	}
	return nil
}

// plainInfo hides what a file system adds, which archive/tar would take for the host's.
type plainInfo struct{ fs.FileInfo }

func (plainInfo) Sys() any { return nil }

// content copies a file. One that has shrunk meanwhile is filled up, since its size is written.
func (t *archiver) content(w io.Writer, env *kit.Env, file string, size int64) error {
	f, err := env.FS.OpenFile(file, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := io.Copy(w, io.LimitReader(f, size))
	if err == nil && n < size {
		_, err = w.Write(make([]byte, size-n))
	}
	return err
}

// list prints a name where it does not get into the archive.
func (t *archiver) list(name string) {
	if t.mode == 'c' && t.file == "-" || t.toStdout {
		t.c.Note("%s\n", name)
	} else {
		t.c.Out.Line(name)
	}
}

// read lists or extracts the archive.
func (t *archiver) read() error {
	r, done, err := t.input()
	if err != nil {
		return err
	}
	defer done()
	wanted := map[string]bool{}
	var later []func() // Directories get their time when they are full.
	for {
		tool.Stopped(t.c.Context())
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return t.c.Fail(1, "invalid tar magic")
		}
		if !t.wanted(h.Name, wanted) || t.excluded(h.Name) {
			continue
		}
		if t.mode == 't' {
			t.show(h)
			continue
		}
		name := t.stripped(h.Name)
		if name == "" {
			continue
		}
		if t.verbose {
			t.list(name)
		}
		if finish := t.extract(r, h, name); finish != nil {
			later = append(later, finish)
		}
	}
	for _, f := range later {
		f()
	}
	for _, m := range t.names {
		if !wanted[m.name] {
			t.c.Warn("%s: not found in archive", m.name)
		}
	}
	return nil
}

// wanted reports whether a member is among the names, or below one of them.
func (t *archiver) wanted(name string, seen map[string]bool) bool {
	if len(t.names) == 0 {
		return true
	}
	clean := strings.TrimSuffix(name, "/")
	for _, m := range t.names {
		want := strings.TrimSuffix(m.name, "/")
		if clean == want || strings.HasPrefix(clean, want+"/") || tool.Glob(want, clean, false) {
			seen[m.name] = true
			return true
		}
	}
	return false
}

// stripped is the name to extract to: without leading elements, and never out of the directory.
func (t *archiver) stripped(name string) string {
	parts := strings.Split(strings.TrimLeft(name, "/"), "/")
	if t.strip > 0 {
		if len(parts) <= t.strip {
			return ""
		}
		parts = parts[t.strip:]
	}
	if slices.Contains(parts, "..") {
		t.c.Warn("name with '..' skipped: '%s'", name)
		return ""
	}
	return strings.Join(parts, "/")
}

func (t *archiver) show(h *tar.Header) {
	if !t.verbose {
		t.c.Out.Line(h.Name)
		return
	}
	line := modeString(h.FileInfo().Mode()) + " " + h.Uname + "/" + h.Gname
	when := h.ModTime.In(tool.Location(t.c.Env)).Format("2006-01-02 15:04:05")
	t.c.Out.Printf("%s %9d %s %s", line, h.Size, when, h.Name)
	if h.Linkname != "" {
		t.c.Out.Printf(" -> %s", h.Linkname)
	}
	t.c.Out.WriteByte('\n')
}

// extract writes one member. It may return something to do when everything is extracted.
func (t *archiver) extract(r io.Reader, h *tar.Header, name string) func() {
	env := *t.c.Env
	env.Dir = t.dir
	if t.toStdout {
		if h.Typeflag == tar.TypeReg {
			io.Copy(t.c.Out, r)
		}
		return nil
	}
	file := env.Path(name)
	fail := func(err error) func() {
		t.c.Warn("can't create '%s': %s", name, tool.Reason(err))
		return nil
	}
	if err := env.MkdirAll(path.Dir(file), 0o755); err != nil {
		return fail(err)
	}
	mode := h.FileInfo().Mode()
	switch h.Typeflag {
	case tar.TypeDir:
		if err := env.MkdirAll(file, 0o755); err != nil {
			return fail(err)
		}
		return func() { t.restore(file, h, mode) }
	case tar.TypeSymlink:
		env.FS.Remove(file)
		if err := env.FS.Symlink(h.Linkname, file); err != nil {
			return fail(err)
		}
		return nil
	case tar.TypeLink:
		env.FS.Remove(file)
		if err := env.FS.Link(env.Path(t.stripped(h.Linkname)), file); err != nil {
			return fail(err)
		}
		return nil
	case tar.TypeReg:
		if _, err := env.FS.Lstat(file); err == nil {
			if t.keep {
				t.c.Warn("can't open '%s': File exists", name)
				return nil
			}
			env.FS.Remove(file)
		}
		f, err := env.FS.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode.Perm())
		if err != nil {
			return fail(err)
		}
		_, err = io.Copy(f, r)
		f.Close()
		if err != nil {
			t.c.Warn("write error: %s", tool.Reason(err))
			return nil
		}
		t.restore(file, h, mode)
	}
	return nil
}

// restore sets mode, time and, for root, the owner.
func (t *archiver) restore(file string, h *tar.Header, mode fs.FileMode) {
	env := t.c.Env
	if env.User.UID == 0 && t.sameOwner {
		env.FS.Chown(file, h.Uid, h.Gid)
	}
	if err := env.FS.Chmod(file, mode); err != nil {
		t.c.Warn("can't change mode of '%s': %s", file, tool.Reason(err))
	}
	if !t.noTime {
		env.FS.Chtimes(file, h.ModTime)
	}
}
