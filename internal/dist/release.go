package main

import (
	"cmp"
	"debug/buildinfo"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// release is what is stamped into the programs.
type release struct {
	version string    // "v1.2.3"
	at      time.Time // of the commit
	builds  map[string]map[string]*debug.BuildInfo
}

// readRelease reads what is stamped into the programs, and refuses what is not all of one commit.
func readRelease(programs string) (*release, error) {
	dirs, err := os.ReadDir(programs)
	if err != nil {
		return nil, err
	}
	r := &release{builds: map[string]map[string]*debug.BuildInfo{}}
	for _, dir := range dirs {
		for _, name := range []string{product, container} {
			info, err := buildinfo.ReadFile(filepath.Join(programs, dir.Name(), name))
			if err != nil {
				return nil, err
			}
			if err := r.add(dir.Name(), name, info); err != nil {
				return nil, fmt.Errorf("%s for %s: %w", name, dir.Name(), err)
			}
		}
	}
	if len(r.builds) == 0 {
		return nil, fmt.Errorf("%s has no programs", programs)
	}
	return r, nil
}

func (r *release) add(arch, program string, info *debug.BuildInfo) error {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	at, err := time.Parse(time.RFC3339, settings["vcs.time"])
	switch {
	case settings["GOARCH"] != arch || settings["GOOS"] != "linux":
		return fmt.Errorf("it is for %s/%s", settings["GOOS"], settings["GOARCH"])
	case err != nil:
		return errors.New("nothing says of which commit it is; build it with -buildvcs=true")
	case settings["vcs.modified"] == "true":
		return errors.New("it has changes that are not committed; commit them, so that others can build the same")
	case settings["-trimpath"] != "true":
		return errors.New("it has names of this machine's directories in it; build it with -trimpath")
	case r.version != "" && (info.Main.Version != r.version || !at.Equal(r.at)):
		return fmt.Errorf("it is %s of %v, and another is %s of %v", info.Main.Version, at, r.version, r.at)
	}
	r.version, r.at = info.Main.Version, at
	if r.builds[arch] == nil {
		r.builds[arch] = map[string]*debug.BuildInfo{}
	}
	r.builds[arch][program] = info
	return nil
}

// architectures are those that are built, sorted.
func (r *release) architectures() []string { return slices.Sorted(maps.Keys(r.builds)) }

// number is the version as files have it in their names: "1.2.3".
func (r *release) number() string { return strings.TrimPrefix(r.version, "v") }

// debian is the version as Debian orders it: what comes before a release is older than it.
func (r *release) debian() string {
	base, before, has := strings.Cut(r.number(), "-")
	if !has {
		return base
	}
	return base + "~" + strings.ReplaceAll(before, "-", ".")
}

// modules are all that the programs for an architecture have in them, without the lab's own.
func (r *release) modules(arch string) []*debug.Module {
	found := map[string]*debug.Module{}
	for _, info := range r.builds[arch] {
		for _, m := range info.Deps {
			for m.Replace != nil {
				m = m.Replace
			}
			found[m.Path+"@"+m.Version] = m
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b *debug.Module) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Version, b.Version))
	})
}
