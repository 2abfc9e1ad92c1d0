package tool

import (
	"io/fs"
	"slices"

	"github.com/aiopslab/aiopslab/kit"
)

// Owner returns the owner of a file. If the file system does not tell, that is root.
func Owner(fi fs.FileInfo) kit.Owner {
	if o, ok := fi.Sys().(*kit.Owner); ok {
		return *o
	}
	return kit.Owner{Links: 1}
}

// Permitted reports whether a user may do with a file what the bits of want say: 4 read, 2 write,
// 1 execute. Root may do everything, except execute what nobody may.
func Permitted(fi fs.FileInfo, u kit.User, want fs.FileMode) bool {
	mode, owner := fi.Mode().Perm(), Owner(fi)
	switch {
	case u.UID == 0:
		return want&1 == 0 || fi.IsDir() || mode&0o111 != 0
	case u.UID == owner.UID:
		mode >>= 6
	case u.GID == owner.GID || slices.Contains(u.Groups, owner.GID):
		mode >>= 3
	}
	return mode&want == want
}

// FileTest evaluates one of the file operators of test(1), such as "-f". dir is what names are
// relative to.
func FileTest(env *kit.Env, op, name string) bool {
	if name == "" {
		return false
	}
	file := env.Path(name)
	if op == "-L" || op == "-h" {
		fi, err := env.FS.Lstat(file)
		return err == nil && fi.Mode()&fs.ModeSymlink != 0
	}
	fi, err := env.FS.Stat(file)
	if err != nil {
		return false
	}
	mode := fi.Mode()
	switch op {
	case "-f":
		return mode.IsRegular()
	case "-d":
		return mode.IsDir()
	case "-s":
		return fi.Size() > 0
	case "-b":
		return mode&fs.ModeDevice != 0 && mode&fs.ModeCharDevice == 0
	case "-c":
		return mode&fs.ModeCharDevice != 0
	case "-p":
		return mode&fs.ModeNamedPipe != 0
	case "-S":
		return mode&fs.ModeSocket != 0
	case "-u":
		return mode&fs.ModeSetuid != 0
	case "-g":
		return mode&fs.ModeSetgid != 0
	case "-k":
		return mode&fs.ModeSticky != 0
	case "-O":
		return Owner(fi).UID == env.User.UID
	case "-G":
		return Owner(fi).GID == env.User.GID
	case "-r":
		return Permitted(fi, env.User, 4)
	case "-w":
		info, err := env.FS.StatFS(file)
		return Permitted(fi, env.User, 2) && (err != nil || !info.ReadOnly)
	case "-x":
		return Permitted(fi, env.User, 1)
	}
	return true // -e, -a and -N
}

// CompareFiles evaluates -nt, -ot and -ef.
func CompareFiles(env *kit.Env, a, op, b string) bool {
	x, errX := env.FS.Stat(env.Path(a))
	y, errY := env.FS.Stat(env.Path(b))
	switch op {
	case "-nt":
		return errX == nil && (errY != nil || x.ModTime().After(y.ModTime()))
	case "-ot":
		return errY == nil && (errX != nil || x.ModTime().Before(y.ModTime()))
	}
	return errX == nil && errY == nil && SameFile(x, y)
}

// SameFile reports whether two descriptions are of one file.
func SameFile(x, y fs.FileInfo) bool {
	a, b := Owner(x), Owner(y)
	return a.Inode != 0 && a == b && x.Size() == y.Size() && x.ModTime().Equal(y.ModTime())
}

// LookPath finds an executable in PATH, or by its own path if it has a slash.
func LookPath(env *kit.Env, name string) (string, bool) {
	executable := func(file string) bool {
		fi, err := env.FS.Stat(env.Path(file))
		return err == nil && fi.Mode().IsRegular() && Permitted(fi, env.User, 1)
	}
	if name == "" {
		return "", false
	}
	for _, r := range name {
		if r == '/' {
			return name, executable(name)
		}
	}
	for _, dir := range PathDirs(env) {
		if file := Join(dir, name); executable(file) {
			return file, true
		}
	}
	return "", false
}
