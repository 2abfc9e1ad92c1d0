package cage

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// right is what may be done with the files below a path.
type right int

const (
	list  right = iota // see their names
	read               // read and execute them
	write              // change them, too
)

type grant struct {
	path  string
	right right
}

// system is what programs read of a system. Of /proc it is what tells of the machine, not of processes.
var system = strings.Fields(`/bin /sbin /lib /lib32 /lib64 /libx32 /usr /etc /opt /nix /gnu /snap
	/proc/cpuinfo /proc/meminfo /proc/stat /proc/loadavg /proc/uptime /proc/version /proc/filesystems /proc/sys
	/sys/devices/system /sys/fs/cgroup /sys/kernel/mm
	/run/systemd/resolve /run/resolvconf /run/NetworkManager/resolv.conf /var/lib/ca-certificates`)

// devices are those that programs open.
var devices = strings.Fields(`/dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /dev/shm`)

// homeFiles are what programs read of a home, beside what PATH names.
var homeFiles = strings.Fields(`.local/lib .bashrc .bash_profile .bash_aliases .bash_logout .profile .inputrc .zshrc
	.zshenv .zprofile .config/fish/config.fish`)

// variables name further files that interpreters read.
var variables = strings.Fields(`PYTHONPATH PYTHONHOME VIRTUAL_ENV CONDA_PREFIX PYENV_ROOT NODE_PATH NVM_DIR
	NPM_CONFIG_PREFIX JAVA_HOME GOROOT GEM_HOME GEM_PATH RUSTUP_HOME CARGO_HOME LD_LIBRARY_PATH SSL_CERT_FILE SSL_CERT_DIR
	REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS`)

// histories are where shells keep the commands that were typed, such as the one that began this run.
var histories = strings.Fields(`.bash_history .zsh_history .histfile .local/share/fish .sh_history .ash_history .history`)

// grants are what a command may use.
func (c *Cage) grants(cmd *exec.Cmd, scratch string) []grant {
	g := &granter{hidden: c.hidden()}
	for _, p := range slices.Concat(system, c.Read) {
		g.add(p, read)
	}
	for _, p := range slices.Concat(devices, c.Write) {
		g.add(p, write)
	}
	home, _ := os.UserHomeDir()
	for _, f := range homeFiles {
		g.add(filepath.Join(home, f), read)
	}
	for _, name := range variables {
		for _, p := range filepath.SplitList(os.Getenv(name)) {
			g.add(p, read)
		}
	}
	for _, p := range filepath.SplitList(os.Getenv("PATH")) {
		g.addPrograms(p, home)
	}
	g.add(cmd.Dir, read)
	for i, arg := range append([]string{cmd.Path}, cmd.Args...) {
		g.addNamed(arg, i < 2, home)
	}
	for _, f := range []any{cmd.Stdin, cmd.Stdout, cmd.Stderr} { // Its own terminal, and no other.
		if file, ok := f.(*os.File); ok && file != nil {
			if fi, err := file.Stat(); err == nil && fi.Mode()&fs.ModeCharDevice != 0 {
				g.add(file.Name(), write)
			}
		}
	}
	g.hidden = nil // It is below what is hidden, and its own.
	g.add(scratch, write)
	return g.list
}

// hidden are the real paths of what is hidden.
func (c *Cage) hidden() (paths []string) {
	home, _ := os.UserHomeDir()
	all := slices.Clone(c.Hidden)
	for _, f := range histories {
		all = append(all, filepath.Join(home, f))
	}
	if file := os.Getenv("HISTFILE"); file != "" {
		all = append(all, file)
	}
	for _, p := range all {
		if p == "" {
			continue
		}
		paths = append(paths, realPath(p))
		matches, _ := filepath.Glob(p) // What is no pattern is a path.
		for _, m := range matches {
			paths = append(paths, realPath(m))
		}
	}
	return paths
}

// granter collects grants.
type granter struct {
	hidden []string
	list   []grant
}

// realPath is a path without links, as far as it is there; of a file that is yet to come, its directory's.
func realPath(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real
	}
	if abs == "/" {
		return abs
	}
	return filepath.Join(realPath(filepath.Dir(abs)), filepath.Base(abs))
}

// add grants a right to a path, without what is hidden. An empty path is the working directory.
func (g *granter) add(path string, r right) {
	if _, err := os.Stat(filepath.Clean(path)); err == nil {
		g.addReal(realPath(path), r)
	}
}

// addReal grants a right to what is below a path. Rights cannot be taken back below it, so that where
// something hidden is in a directory, the others in it are granted one by one. Their names can be seen.
func (g *granter) addReal(path string, r right) {
	above := false
	for _, h := range g.hidden {
		if within(path, h) {
			return
		}
		above = above || within(h, path)
	}
	if !above {
		g.list = append(g.list, grant{path, r})
		return
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return
	}
	g.list = append(g.list, grant{path, list})
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink == 0 { // What a link leads to is elsewhere.
			g.addReal(filepath.Join(path, e.Name()), r)
		}
	}
}

// within reports whether a path is a tree's.
func within(path, tree string) bool {
	return path == tree || tree == "/" || strings.HasPrefix(path, tree+"/")
}

// prefixed are directories of programs whose libraries are beside them.
var prefixed = strings.Fields("bin sbin shims libexec")

// addPrograms grants a directory of programs, and the tree of their libraries that it is in, unless that is
// a person's whole home.
func (g *granter) addPrograms(dir, home string) {
	if !filepath.IsAbs(dir) {
		return
	}
	g.add(dir, read)
	for _, d := range []string{dir, realPath(dir)} {
		tree := realPath(filepath.Dir(d))
		if slices.Contains(prefixed, filepath.Base(d)) && !within(realPath(home), tree) &&
			tree != realPath(filepath.Join(home, ".local")) {
			g.add(tree, read)
		}
	}
}

// addNamed grants what an argument names: the file's directory, since a program comes with its parts. Of
// the program itself also its tree, where its libraries are, by each name that links give it.
func (g *granter) addNamed(arg string, program bool, home string) {
	fi, err := os.Stat(arg)
	if err != nil {
		return
	}
	if fi.IsDir() {
		g.add(arg, read)
		return
	}
	dir := filepath.Dir(arg)
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	g.add(dir, read)
	g.add(filepath.Dir(realPath(arg)), read)
	if program {
		g.addPrograms(dir, home)
		g.addPrograms(filepath.Dir(realPath(arg)), home)
	}
}
