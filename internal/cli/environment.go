package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// environment is a running `aiopslab up`. Other commands of the same user find it by its directory.
type environment struct {
	dir        string
	PID        int       `json:"pid"`
	Started    time.Time `json:"started"`
	Server     string    `json:"server"` // URL of the Kubernetes API
	Kubeconfig string    `json:"kubeconfig"`
	Control    string    `json:"control"` // socket

	restore func() error // takes it out of the user's kubeconfig; nil if it is in none
}

// leave takes the environment out of the user's kubeconfig.
func (e *environment) leave() error {
	if e.restore == nil {
		return nil
	}
	return e.restore()
}

const infoFile = "environment.json"

// announce makes an environment findable.
func announce(e environment) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(e.dir, infoFile), b, 0o600)
}

// environments lists the running environments below a temporary directory, and removes what is left
// of those that were killed.
func environments(tmp string) ([]environment, error) {
	dirs, err := filepath.Glob(filepath.Join(tmp, envPattern))
	if err != nil {
		return nil, err
	}
	var list []environment
	for _, dir := range dirs {
		if !sweep(dir) {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, infoFile))
		if err != nil {
			continue // It is just starting or ending.
		}
		e := environment{dir: dir}
		if json.Unmarshal(b, &e) == nil {
			list = append(list, e)
		}
	}
	return list, nil
}

// theEnvironment returns the environment that KUBECONFIG points to, or else the only one there is.
func theEnvironment(s *State) (environment, error) {
	tmp := tempDir(s)
	list, err := environments(tmp)
	if err != nil {
		return environment{}, err
	}
	if config := s.Env("KUBECONFIG"); config != "" {
		server, err := serverOf(config)
		if err != nil {
			return environment{}, fmt.Errorf("KUBECONFIG: %w", err)
		}
		for _, e := range list {
			if e.Server == server {
				return e, nil
			}
		}
		return environment{}, fail(ExitError,
			fmt.Errorf("KUBECONFIG=%s does not point to a running environment", config),
			"Unset KUBECONFIG to use the one that runs.")
	}
	switch len(list) {
	case 1:
		return list[0], nil
	case 0:
		return environment{}, fail(ExitError, fmt.Errorf("no environment is running in %s", tmp),
			"Start one with 'aiopslab up', or set KUBECONFIG.")
	}
	var choices []string
	for _, e := range list {
		choices = append(choices, "export KUBECONFIG="+e.Kubeconfig)
	}
	return environment{}, fail(ExitError, fmt.Errorf("%d environments are running", len(list)),
		"Say which one you mean with one of: "+strings.Join(choices, "; "))
}

// serverOf returns the server that a kubeconfig's current context points to.
func serverOf(kubeconfig string) (string, error) {
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(kubeconfig)}
	c, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return "", err
	}
	return c.Host, nil
}

// tempDir is where environments live.
func tempDir(s *State) string {
	if d := s.Env("AIOPSLAB_TMPDIR"); d != "" {
		return d
	}
	return os.TempDir()
}

// newDir makes the directory of a new environment below tmp, which is this process' until it ends.
func newDir(tmp string) (string, error) {
	for {
		dir, err := os.MkdirTemp(tmp, envPattern)
		if err != nil {
			return "", err
		}
		switch err := hold(dir); {
		case err == nil:
			return dir, nil
		case !errors.Is(err, errHeld):
			return "", fmt.Errorf("lock %s: %w", dir, err)
		}
	}
}
