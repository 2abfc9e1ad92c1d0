package box

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/aiopslab/aiopslab/kit"
)

// Preferences applies the kuberc file that a command line of kubectl names to it. What it returns says
// by itself what is to be run. Warnings go to stderr.
type Preferences func(args []string, stderr io.Writer) ([]string, error)

const (
	kubercVar  = "KUBERC"
	kubercGate = "KUBECTL_KUBERC" // turns the feature off
	kubercFlag = "--kuberc"
	kubercOff  = "off"
)

// preferred is what a command line of kubectl amounts to. kubectl itself applies no preferences: what
// an alias stands for, and flags that have a default, must be judged like all else.
func (m *machine) preferred(env *kit.Env) ([]string, error) {
	if m.preferences == nil || len(env.Args) < 2 || strings.EqualFold(env.Getenv(kubercGate), "false") {
		return env.Args, nil
	}
	name, chosen, err := kubercName(env)
	if err != nil || name == "" {
		return env.Args, err
	}
	data, err := m.readKuberc(env, name)
	switch {
	case errors.Is(err, os.ErrNotExist) && !chosen:
		return env.Args, nil
	case err != nil && !chosen:
		fmt.Fprintf(env.Stderr, "kuberc: no preferences loaded from %s: %v\n", name, err)
		return env.Args, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", kubercFailed, err)
	}
	// What is read is a copy: the file may be a link, or another one by the time it is opened again.
	file, err := m.save(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kubercFailed, err)
	}
	defer func() { _ = m.fs.Remove(file) }()
	return m.expand(env, name, m.prefix+file, chosen)
}

// kubercFailed is how kubectl begins to tell that it cannot load preferences that one chose.
const kubercFailed = "error occurred while applying preferences kuberc error kuberc"

// expand applies the preferences in a file of the host, which is called by name to the agent.
func (m *machine) expand(env *kit.Env, name, file string, chosen bool) ([]string, error) {
	flag := kubercFlag + "=" + file
	var words strings.Builder
	args, err := m.preferences(append([]string{env.Args[0], flag}, env.Args[1:]...), &words)
	if words.Len() > 0 {
		fmt.Fprintln(env.Stderr, strings.TrimRight(strings.ReplaceAll(words.String(), file, name), "\n"))
	}
	if err != nil {
		text := strings.ReplaceAll(err.Error(), file, name)
		if why, load := strings.CutPrefix(text, kubercFailed+": "); load && !chosen {
			fmt.Fprintf(env.Stderr, "kuberc: no preferences loaded from %s: %s\n", name, why)
			return env.Args, nil
		}
		return nil, errors.New(text)
	}
	kept := args[:0]
	for _, a := range args {
		if a != flag {
			kept = append(kept, a)
		}
	}
	return kept, nil
}

// kubercName is the kuberc file of a command, if preferences are not turned off, and whether it was
// chosen.
func kubercName(env *kit.Env) (name string, chosen bool, err error) {
	name, chosen = kubercArg(env.Args)
	variable := env.Getenv(kubercVar)
	switch {
	case chosen && name == "":
		return "", true, errors.New("error occurred while applying preferences kuberc file is not found")
	case chosen && variable == kubercOff:
		return "", true, errors.New("error occurred while applying preferences kuberc error " +
			"disabling kuberc via KUBERC=off and passing kuberc flag are mutually exclusive")
	case chosen:
		return name, true, nil
	case variable == kubercOff:
		return "", false, nil
	case variable != "":
		return variable, true, nil
	}
	return env.Getenv("HOME") + "/.kube/kuberc", false, nil
}

// kubercArg is the first value of --kuberc.
func kubercArg(args []string) (name string, given bool) {
	for i, a := range args {
		if a == "--" {
			break
		}
		if value, joined := strings.CutPrefix(a, kubercFlag+"="); joined {
			return value, true
		}
		if a == kubercFlag {
			return strings.Join(args[i+1:min(i+2, len(args))], ""), true
		}
	}
	return "", false
}

// readKuberc reads a file of the agent's.
func (m *machine) readKuberc(env *kit.Env, name string) ([]byte, error) {
	f, err := env.FS.OpenFile(env.Path(name), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err == nil && len(data) > maxConfig {
		err = fmt.Errorf("%s is larger than %d bytes", name, maxConfig)
	}
	return data, err
}
