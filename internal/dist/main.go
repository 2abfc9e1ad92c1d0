// Command dist makes what people install, of programs that are built already: archives and Debian packages with
// completions and manual pages, real container images, lists of what is linked in, and checksums. `make dist` builds
// the programs and calls it.
//
//	go run ./internal/dist -programs dist/programs -out dist
//
// Programs are below a directory for each architecture: programs/amd64/aiopslab, programs/amd64/labapp. What version
// they are, and of when, is what is stamped into them. The same programs give the same bytes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
)

// The programs of a release: the lab, and what its containers run.
const (
	product   = "aiopslab"
	container = "labapp"
)

func main() {
	root := flag.String("root", ".", "`directory` of the repository")
	programs := flag.String("programs", "dist/programs", "`directory` of the programs, by architecture")
	out := flag.String("out", "dist", "`directory` for what is made")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *root, *programs, *out); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, programs, out string) error {
	r, err := readRelease(programs)
	if err != nil {
		return err
	}
	lab := filepath.Join(programs, runtime.GOARCH, product)
	if runtime.GOOS != "linux" || r.builds[runtime.GOARCH] == nil {
		return errors.New("completions and manual pages are written by the program itself: " +
			"run this on Linux for one of the architectures that are built")
	}
	docs, err := os.MkdirTemp("", "dist-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(docs)
	if err := describe(ctx, lab, docs); err != nil {
		return err
	}
	list, err := write(r, files{root: root, programs: programs, docs: docs}, out)
	if err != nil {
		return err
	}
	images := fmt.Sprintf("%s_%s_images.tar", product, r.number())
	args := []string{"images", "build", "-o", filepath.Join(out, images)}
	for _, arch := range r.architectures() {
		args = append(args, "--binary", filepath.Join(programs, arch, container))
	}
	if _, err := output(ctx, lab, args...); err != nil {
		return err
	}
	if err := writeSums(out, append(list, images)); err != nil {
		return err
	}
	fmt.Printf("%s: %d files are in %s.\n", r.version, len(list)+2, out)
	return nil
}

// describe has the program write its manual pages and completions.
func describe(ctx context.Context, lab, dir string) error {
	if _, err := output(ctx, lab, "man", filepath.Join(dir, "man")); err != nil {
		return err
	}
	for _, shell := range shells {
		text, err := output(ctx, lab, "completion", shell.name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, shell.file), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// shells are those that the program has completions for, with the names that their files have.
var shells = []struct{ name, file, installed string }{
	{"bash", "aiopslab.bash", "usr/share/bash-completion/completions/aiopslab"},
	{"zsh", "_aiopslab", "usr/share/zsh/vendor-completions/_aiopslab"},
	{"fish", "aiopslab.fish", "usr/share/fish/vendor_completions.d/aiopslab.fish"},
}

func output(ctx context.Context, program string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, program, args...)
	c.Env = []string{} // What a variable says here is the default of a flag nowhere else.
	c.Stderr = os.Stderr
	text, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", filepath.Base(program), args[0], err)
	}
	return text, nil
}
