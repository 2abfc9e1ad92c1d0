package box

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// judgeKubectl is the policy for kubectl.
func judgeKubectl(args []string, left time.Duration) verdict {
	switch v := verb(args, kubectlValues); v {
	case "edit":
		return verdict{refuse: "Error: Cannot use `kubectl edit`. Use `kubectl patch` instead."}
	case "port-forward":
		return verdict{refuse: "Error: Cannot use `kubectl port-forward` because it is an interactive command. " +
			"Services and pods can be reached from here directly: curl http://SERVICE.NAMESPACE:PORT"}
	case "proxy":
		return verdict{refuse: "Error: Cannot use `kubectl proxy` because it is an interactive command. Use `kubectl " +
			"get --raw PATH` instead."}
	case "attach":
		return verdict{refuse: "Error: Cannot use `kubectl attach` because it is an interactive command. Use " +
			"`kubectl logs`, or `kubectl exec POD -- COMMAND`."}
	case "diff":
		return verdict{refuse: "Error: Cannot use `kubectl diff` because it starts other programs. " +
			"Use `diff <(kubectl get -f FILE -o yaml) <(kubectl apply -f FILE --dry-run=server -o yaml)`."}
	case "exec", "run", "debug":
		return withoutTerminal(args, v)
	case "logs":
		return drop(args, []string{"f", "follow"}, "kubectl logs -f")
	case "get", "events":
		return drop(args, []string{"w", "watch", "watch-only"}, "kubectl "+v+" -w")
	case "config":
		return judgeConfig(args)
	case "rollout":
		return boundRollout(args, left)
	case "create", "apply", "set":
		if slices.Contains(args, "--edit") || slices.Contains(args, "--edit=true") {
			return verdict{refuse: "Error: Cannot use `kubectl " + v +
				" --edit`. Write the manifest to a file and use `kubectl apply -f FILE` instead."}
		}
	}
	return verdict{args: args}
}

// withoutTerminal drops -t, which would have the other side expect one. -i stays, for what is piped.
func withoutTerminal(args []string, verb string) verdict {
	kept, dropped := without(args[1:], []string{"t", "tty"})
	if !dropped {
		return verdict{args: args}
	}
	return verdict{
		args: append([]string{args[0]}, kept...),
		note: fmt.Sprintf("There is no terminal; `kubectl %s` was run without -t. Give the whole command: kubectl %s "+
			"... -- sh -c 'COMMAND'", verb, verb),
	}
}

// rolloutReserve is what is left for kubectl to say that a roll-out did not end.
const rolloutReserve = 2 * time.Second

// boundRollout gives rollout status a limit within the call's.
func boundRollout(args []string, left time.Duration) verdict {
	bounded := slices.ContainsFunc(args, func(a string) bool {
		return a == "--timeout" || strings.HasPrefix(a, "--timeout=") || a == "--watch=false" || a == "-w=false"
	})
	if bounded || !slices.Contains(args, "status") || left <= 2*rolloutReserve {
		return verdict{args: args}
	}
	limit := (left - rolloutReserve).Truncate(time.Second)
	at := slices.Index(args, "status") + 1
	return verdict{args: slices.Insert(slices.Clone(args), at, "--timeout="+limit.String())}
}

// kubectlValues are the flags that take a value and may come before kubectl's verb.
var kubectlValues = []string{
	"-n", "--namespace", "-s", "--server", "-v", "--v", "--vmodule", "--context", "--cluster", "--user", "--kubeconfig",
	"--token", "--as", "--as-group", "--as-uid", "--as-user-extra", "--cache-dir", "--certificate-authority",
	"--client-certificate", "--client-key", "--tls-server-name", "--request-timeout", "--username", "--password",
	"--profile", "--profile-output", "--log-flush-frequency", "--kuberc",
}

// helmValues are the flags that take a value and may come before helm's verb.
var helmValues = []string{
	"-n", "--namespace", "--kube-context", "--kubeconfig", "--kube-apiserver", "--kube-as-group", "--kube-as-user",
	"--kube-ca-file", "--kube-tls-server-name", "--kube-token", "--registry-config", "--repository-cache",
	"--repository-config", "--burst-limit", "--qps", "--color", "--colour",
}

// verb is the first operand of a command.
func verb(args, values []string) string {
	for i := 1; i < len(args); i++ {
		switch a := args[i]; {
		case slices.Contains(values, a):
			i++ // Its value follows.
		case !strings.HasPrefix(a, "-"):
			return a
		}
	}
	return ""
}
