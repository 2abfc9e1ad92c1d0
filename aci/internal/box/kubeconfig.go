package box

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/aiopslab/aiopslab/kit"
)

// kubeconfigFlags are the values of --kubeconfig.
func kubeconfigFlags(args []string) (files []string) {
	for i, a := range args {
		if v, ok := strings.CutPrefix(a, "--kubeconfig="); ok {
			files = append(files, v)
		} else if a == "--kubeconfig" && i+1 < len(args) {
			files = append(files, args[i+1])
		}
	}
	return files
}

// maxConfig is the largest kubeconfig that is looked at, in bytes.
const maxConfig = 4 << 20

// checkConfigs refuses kubeconfigs that have a program run. Confinement would too, where there is
// any. `kubectl config` runs nothing and can repair them.
func (m *machine) checkConfigs(env *kit.Env, files []string) error {
	if verb(env.Args, kubectlValues) == "config" {
		return nil
	}
	for _, file := range files {
		name := env.Path(file)
		if fi, err := m.fs.Stat(name); err != nil || fi.Size() > maxConfig {
			continue // Whoever reads it will say so.
		}
		data, err := m.fs.root.ReadFile(local(name))
		if err != nil {
			continue
		}
		config, err := clientcmd.Load(data)
		if err != nil {
			continue
		}
		for user, info := range config.AuthInfos {
			if info.Exec != nil || info.AuthProvider != nil {
				return fmt.Errorf("user %q of %s runs a program for its credentials, which is not allowed here. "+
					"Remove it: kubectl config delete-user %s --kubeconfig %s", user, name, user, name)
			}
		}
	}
	return nil
}

// pluginFlags are those of `kubectl config set-credentials` that have a program run.
var pluginFlags = []string{
	"--exec-command", "--exec-api-version", "--exec-arg", "--exec-env", "--auth-provider",
	"--auth-provider-arg",
}

// judgeConfig refuses to write a kubeconfig that has a program run.
func judgeConfig(args []string) verdict {
	runs := slices.ContainsFunc(args, func(a string) bool {
		name, _, _ := strings.Cut(a, "=")
		return slices.Contains(pluginFlags, name)
	})
	if runs {
		return verdict{
			refuse: "Error: Cannot use credentials that a program makes: nothing can be run for them here. " +
				"Use `kubectl config set-credentials NAME --token=TOKEN` instead.",
		}
	}
	return verdict{args: args}
}
