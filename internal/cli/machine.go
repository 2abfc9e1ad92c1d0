package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/aiopslab/aiopslab/agent/cage"
	"github.com/aiopslab/aiopslab/cloud/kube"
	"github.com/aiopslab/aiopslab/session/process"
)

// usualMemory is what an environment takes at most, unless an agent makes it take more.
const usualMemory = process.DefaultCeiling / 4

// examineMachine looks whether an embedded cloud, and an agent, can run here. Root is the machine's files.
func examineMachine(s *State, root fs.FS) []kube.Finding {
	return []kube.Finding{
		checkSpace(tempDir(s)), checkMemory(availableMemory(root)), checkProcessors(processors()),
		checkConfinement((&cage.Cage{}).Gap()), checkWorlds(worldsDir(s)),
	}
}

func checkSpace(dir string) kube.Finding {
	const check = "temporary"
	err := checkTemp(dir)
	if err == nil {
		return kube.Finding{Check: check, Level: kube.OK, Text: fmt.Sprintf("%s has room for environments", dir)}
	}
	found := kube.Finding{Check: check, Level: kube.Problem, Text: err.Error()}
	if f, ok := errors.AsType[*failure](err); ok {
		found.Do = f.hint
	}
	return found
}

func checkMemory(bytes int64, known bool) kube.Finding {
	found := kube.Finding{Check: "memory", Level: kube.OK, Text: fmt.Sprintf("%d MB can be had", bytes>>20)}
	switch {
	case !known:
		found.Level, found.Text = kube.Warning, "how much memory can be had is not known"
	case bytes < minMemory:
		found.Level = kube.Problem
		found.Text += fmt.Sprintf(", and an environment takes more than %d", minMemory>>20)
		found.Do = "End other programs, or raise the limit of this container."
	case bytes < usualMemory:
		found.Level = kube.Warning
		found.Text += fmt.Sprintf(", and an environment may take %d", usualMemory>>20)
		found.Do = "Run one at a time."
	}
	return found
}

func checkProcessors(n int) kube.Finding {
	found := kube.Finding{
		Check: "processors", Level: kube.OK, Text: fmt.Sprintf("%d, for about as many runs side by side", n),
	}
	if n < 2 {
		found.Level, found.Text = kube.Warning, "there is one: a run takes longer to start"
		found.Do = "Run one at a time."
	}
	return found
}

// checkConfinement looks whether agents that are programs can be confined. Gap is why not, or not wholly.
func checkConfinement(gap string) kube.Finding {
	found := kube.Finding{Check: "confinement", Level: kube.OK, Text: "agents that are programs can be confined"}
	if gap != "" {
		found.Level, found.Text = kube.Warning, "agents that are programs: "+gap
		found.Do = "Their verdicts say so; for the rest it makes no difference."
	}
	return found
}

// checkWorlds looks whether applications can be kept. The directory is made when it is needed, so what counts is the
// nearest one that is there.
func checkWorlds(dir string) kube.Finding {
	found := kube.Finding{Check: "worlds", Level: kube.OK, Text: "deployed applications are kept in " + dir}
	if dir == "" {
		found.Text = "deployed applications are not kept: each run deploys its own"
		return found
	}
	at := dir
	_, err := os.Stat(at)
	for ; errors.Is(err, fs.ErrNotExist) && at != path.Dir(at); _, err = os.Stat(at) {
		at = path.Dir(at)
	}
	if err == nil {
		err = unix.Access(at, unix.W_OK|unix.X_OK)
	}
	if err != nil {
		found.Level, found.Text = kube.Warning, fmt.Sprintf("deployed applications cannot be kept in %s: %v", dir, err)
		found.Do = "Name another directory with " + worldsVariable + "; without one a run takes longer to start."
	}
	return found
}

// availableMemory is how much memory a new process can have: what the machine has left, or what the limits of this
// process' control groups leave.
func availableMemory(root fs.FS) (bytes int64, known bool) {
	bytes = math.MaxInt64
	if kilobytes, ok := field(root, "proc/meminfo", "MemAvailable:"); ok {
		bytes, known = kilobytes<<10, true
	}
	b, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(b)) {
		group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/")
		for ; ok; group = path.Dir(group) {
			dir := path.Join("sys/fs/cgroup", group)
			limit, limited := field(root, path.Join(dir, "memory.max"), "")
			used, _ := field(root, path.Join(dir, "memory.current"), "")
			cached, _ := field(root, path.Join(dir, "memory.stat"), "inactive_file ") // It can be had as well.
			if limited {
				bytes, known = min(bytes, max(0, limit-used+cached)), true
			}
			ok = group != "" && group != "."
		}
	}
	return bytes, known
}

// field is the number behind a word of a file, or the file's first.
func field(root fs.FS, file, word string) (int64, bool) {
	b, err := fs.ReadFile(root, file)
	if err != nil {
		return 0, false
	}
	_, rest, ok := strings.Cut(string(b), word)
	words := strings.Fields(rest)
	if !ok || len(words) == 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(words[0], 10, 64)
	return n, err == nil
}
