// Package inside runs the programs of the lab's images in real containers, of images that package oci has made.
//
// In such a container every program is a link to one binary, and a file says which image it is:
//
//	env := kit.HostEnv()
//	if image, ok := inside.Image(env); ok {
//		os.Exit(inside.Main(ctx, env, registry, image))
//	}
package inside

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/kit"
)

// Where an image has what the lab adds to it.
const (
	Home = "/usr/lib/lab"
	// Program is the binary that all programs are links to.
	Program = Home + "/run"
	// Marker is the file that has the name of the image.
	Marker = Home + "/image"
)

// Image returns the name of the image if the process of env is in a container of one.
func Image(env *kit.Env) (name string, ok bool) {
	data, err := env.ReadFile(Marker)
	if err != nil {
		return "", false
	}
	return strings.TrimSpace(string(data)), true
}

// Main runs the program of an image by whose name the process was started, and returns its exit code. It never runs
// anything else: in a container there is nothing of the lab but what the image has.
func Main(ctx context.Context, env *kit.Env, registry *kit.Registry, name string) int {
	_, image, err := registry.Resolve(name)
	if image == nil {
		fmt.Fprintf(env.Stderr, "%s: this program has no such image: %v\n", name, err)
		return kit.ExitNotRunnable
	}
	p := program(env, image)
	if p == nil {
		fmt.Fprintf(env.Stderr, "%s: not found\n", env.Args[0])
		return kit.ExitNotFound
	}
	return kit.RunHost(ctx, p, env)
}

// maxLinks is how many links one may follow another, as the kernel has it.
const maxLinks = 40

// program is what a process was started by: the file that its first argument names, or one that this is a link to, or
// a copy of.
func program(env *kit.Env, image *kit.Image) kit.Program {
	file, err := env.LookPath(env.Args[0])
	if err != nil { // Who starts a process may call it what they like.
		return byName(image, env.Args[0])
	}
	for range maxLinks {
		if p := image.Programs[file]; p != nil {
			return p
		}
		fi, err := env.FS.Lstat(file)
		if err != nil || fi.Mode()&fs.ModeSymlink == 0 {
			break
		}
		target, err := env.FS.Readlink(file)
		if err != nil {
			break
		}
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(file), target)
		}
		file = path.Clean(target)
	}
	return byName(image, file)
}

// byName is the program whose file has the name of another.
func byName(image *kit.Image, file string) kit.Program {
	for _, name := range slices.Sorted(maps.Keys(image.Programs)) {
		if path.Base(name) == path.Base(file) {
			return image.Programs[name]
		}
	}
	return nil
}
