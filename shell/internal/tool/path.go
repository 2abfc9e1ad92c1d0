package tool

import (
	"strings"

	"github.com/aiopslab/aiopslab/kit"
)

// PathDirs returns the directories of PATH. An empty one is the working directory.
func PathDirs(env *kit.Env) []string {
	list, ok := env.Vars["PATH"]
	if !ok {
		list = kit.DefaultPath
	}
	dirs := strings.Split(list, ":")
	for i, d := range dirs {
		if d == "" {
			dirs[i] = "."
		}
	}
	return dirs
}
