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
	// Marker is the file that has the ID of the image.
	Marker = Home + "/image"
)

// Image returns the ID of the image if the process of env is in a container of one.
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
	image := registry.ByID(name)
	if image == nil {
		fmt.Fprintf(env.Stderr, "%s: this program has no such image\n", name)
		return kit.ExitNotRunnable
	}
	p := program(env, image)
	if p == nil {
		fmt.Fprintf(env.Stderr, "%s: not found\n", env.Args[0])
		return kit.ExitNotFound
	}
	env.Procs = newProcesses(env, image)
	defer terminal(env)()
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
	if p := linked(env, image, file); p != nil {
		return p
	}
	return byName(image, file)
}

// linked is the program that a file is, or is a link to; nil if there is none.
func linked(env *kit.Env, image *kit.Image, file string) kit.Program {
	for range maxLinks {
		target, err := env.FS.Readlink(file)
		if err != nil {
			return nil
		}
		if target == Program { // Otherwise somebody has put another file there.
			return image.Programs[file]
		}
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(file), target)
		}
		file = path.Clean(target)
	}
	return nil
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
