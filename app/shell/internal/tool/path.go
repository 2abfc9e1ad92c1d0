package tool

import (
	"strings"

	"github.com/aiopslab/aiopslab/app/kit"
)

// DefaultPath is where programs are looked for when PATH is not set.
const DefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// PathDirs returns the directories of PATH. An empty one is the working directory.
func PathDirs(env *kit.Env) []string {
	list, ok := env.Vars["PATH"]
	if !ok {
		list = DefaultPath
	}
	dirs := strings.Split(list, ":")
	for i, d := range dirs {
		if d == "" {
			dirs[i] = "."
		}
	}
	return dirs
}
