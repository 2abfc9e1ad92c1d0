package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// environment is a running `aiopslab up`. It is found by its directory, which holds a locked file
// for as long as the process lives, however it dies.
type environment struct {
	Dir        string    `json:"-"`
	PID        int       `json:"pid"`
	Kubeconfig string    `json:"kubeconfig"`
	Control    string    `json:"control"` // socket
	Started    time.Time `json:"started"`
}

const (
	envPrefix = "aiopslab-"
	lockFile  = "lock"
	infoFile  = "environment.json"
)

// errRunning is what a locked directory says of itself.
var errRunning = errors.New("the environment is running")

// announce makes an environment findable. The lock is held until the process ends.
func announce(e environment) error {
	if err := lock(filepath.Join(e.Dir, lockFile)); err != nil {
		return err
	}
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(e.Dir, infoFile), b, 0o600)
}

// environments lists the running environments below a temporary directory, and removes what is left
// of those that were killed.
func environments(tmp string) ([]environment, error) {
	dirs, err := filepath.Glob(filepath.Join(tmp, envPrefix+"*"))
	if err != nil {
		return nil, err
	}
	var list []environment
	for _, dir := range dirs {
		switch err := tryLock(filepath.Join(dir, lockFile)); {
		case errors.Is(err, errRunning):
			b, err := os.ReadFile(filepath.Join(dir, infoFile))
			if err != nil {
				continue // It is just starting.
			}
			e := environment{Dir: dir}
			if json.Unmarshal(b, &e) == nil {
				list = append(list, e)
			}
		case err == nil:
			_ = os.RemoveAll(dir)
		}
	}
	return list, nil
}

// theEnvironment returns the one environment that runs.
func theEnvironment(s *State) (environment, error) {
	list, err := environments(tempDir(s))
	if err != nil {
		return environment{}, err
	}
	switch len(list) {
	case 1:
		return list[0], nil
	case 0:
		return environment{}, fail(ExitError, errors.New("no environment is running"), "Start one with 'aiopslab up', or set KUBECONFIG.")
	}
	var b strings.Builder
	for _, e := range list {
		fmt.Fprintf(&b, " KUBECONFIG=%s", e.Kubeconfig)
	}
	return environment{}, fail(ExitError, fmt.Errorf("%d environments are running", len(list)), "Say which one you mean with one of"+b.String())
}

// tempDir is where environments live.
func tempDir(s *State) string {
	if d := s.Env("AIOPSLAB_TMPDIR"); d != "" {
		return d
	}
	return os.TempDir()
}
