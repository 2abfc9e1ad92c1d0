package box

import (
	"context"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// verdict is what the policy says to a command.
type verdict struct {
	args   []string // to run, if it is not refused
	note   string   // what was changed, for the agent
	refuse string   // why it is not run, and what to do instead
}

// judge applies the policy to a command that is about to run. left is how long it may take.
func judge(args []string, left time.Duration) verdict {
	name := path.Base(args[0])
	if why, ok := refused[name]; ok {
		return verdict{refuse: "Error: Cannot use `" + name + "`" + why}
	}
	if alternative, ok := absent[name]; ok {
		if name == "docker" && follows(args[1:], "logs") {
			return verdict{refuse: "Error: Cannot use `docker logs -f`. Use `docker logs` instead. There is no " +
				"Docker here, though: use `kubectl logs`."}
		}
		return verdict{refuse: fmt.Sprintf("Error: There is no `%s` here. %s", name, alternative)}
	}
	switch name {
	case "kubectl":
		return judgeKubectl(args, left)
	case "helm":
		return judgeHelm(args)
	case "sleep":
		return judgeSleep(args, left)
	case "tail":
		return drop(args, []string{"f", "F", "follow", "retry"}, "tail -f")
	case "ping":
		if !hasFlag(args[1:], "c") {
			return verdict{
				args: append([]string{args[0], "-c", "4"}, args[1:]...),
				note: "`ping` without -c never ends; it was run with -c 4.",
			}
		}
	}
	return verdict{args: args}
}

// refused are commands that need a terminal or never end.
var refused = map[string]string{
	"watch": " because it never ends. Run the command itself, or repeat it: for i in 1 2 3; do COMMAND; sleep 2; done",
	"top":   " because it needs a terminal. Use `ps`, or `kubectl top pods` and `kubectl top nodes`.",
	"htop":  " because it needs a terminal. Use `kubectl top pods` and `kubectl top nodes`.",
	"vi":    editors, "vim": editors, "nano": editors, "emacs": editors, "ed": editors,
}

const editors = " because it needs a terminal. Use `cat > FILE <<'EOF'` to write a file and `sed -i` to change one."

// absent are commands that people try, with what there is instead.
var absent = map[string]string{
	"docker":     containers,
	"podman":     containers,
	"crictl":     containers,
	"nerdctl":    containers,
	"ssh":        "Nodes cannot be logged in to. Use `kubectl exec`, `kubectl logs` and `kubectl describe node`.",
	"scp":        "Use `kubectl cp` to copy files from and to pods.",
	"telnet":     "Use `nc -zv HOST PORT` or `curl`.",
	"systemctl":  "The services run in Kubernetes. Use `kubectl get pods` and `kubectl rollout restart`.",
	"journalctl": "The services run in Kubernetes. Use `kubectl logs` and `kubectl get events`.",
	"python":     interpreters,
	"python3":    interpreters,
	"perl":       interpreters,
	"node":       interpreters,
	"apt":        packages, "apt-get": packages, "apk": packages, "yum": packages, "pip": packages, "pip3": packages,
	"npm": packages,
}

const (
	containers   = "The containers run in Kubernetes. Use `kubectl logs`, `kubectl exec` and `kubectl describe pod`."
	interpreters = "Use the shell itself with `jq`, `awk`, `sed` and `grep`."
	packages     = "Nothing can be installed; `ls /bin` shows what there is."
)

// maxSleep is what must be left of the time limit when a sleep ends.
const maxSleep = 500 * time.Millisecond

func judgeSleep(args []string, left time.Duration) verdict {
	var total time.Duration
	for _, a := range args[1:] {
		n, err := strconv.ParseFloat(a, 64)
		switch {
		case err == nil && math.IsInf(n, 1):
			a = "1000000h"
		case err == nil:
			a = strconv.FormatFloat(n, 'f', -1, 64) + "s"
		}
		d, err := time.ParseDuration(a)
		if err != nil {
			return verdict{args: args} // It has more to say about that.
		}
		total += d
	}
	if total+maxSleep > left {
		return verdict{refuse: fmt.Sprintf(
			"Error: Cannot sleep for %s: %s of the time limit are left. Sleep less, or call exec_shell(command, "+
				"timeout=...) with a larger timeout in seconds.", total, left.Round(time.Second))}
	}
	return verdict{args: args}
}

// judgeHelm refuses what would start programs.
func judgeHelm(args []string) verdict {
	for _, a := range args[1:] {
		if strings.HasPrefix(a, "--post-renderer") {
			return verdict{refuse: "Error: Cannot use `helm --post-renderer`. Use `helm template`, `sed` and " +
				"`kubectl apply -f -` instead."}
		}
	}
	if verb(args, helmValues) == "plugin" {
		return verdict{refuse: "Error: Cannot use `helm plugin`: there are no plugins here."}
	}
	return verdict{args: args}
}

// drop takes flags from a command that would never end with them. names are letters and
// words.
func drop(args, names []string, what string) verdict {
	kept, dropped := without(args[1:], names)
	if !dropped {
		return verdict{args: args}
	}
	plain, _, _ := strings.Cut(what, " -")
	return verdict{
		args: append([]string{args[0]}, kept...),
		note: fmt.Sprintf("Cannot use `%s`, which never ends; `%s` was used instead.", what, plain),
	}
}

// without removes boolean flags, up to "--".
func without(args, names []string) (kept []string, dropped bool) {
	letters := ""
	words := map[string]bool{}
	for _, n := range names {
		if len(n) == 1 {
			letters += n
		} else {
			words[n] = true
		}
	}
	for i, a := range args {
		if a == "--" {
			return append(kept, args[i:]...), dropped
		}
		if word, ok := strings.CutPrefix(a, "--"); ok {
			word, value, _ := strings.Cut(word, "=")
			if words[word] {
				dropped = dropped || value != "false"
				continue
			}
		} else if rest, found := withoutLetters(a, letters); found {
			dropped = true
			if rest != "-" {
				kept = append(kept, rest)
			}
			continue
		}
		kept = append(kept, a)
	}
	return kept, dropped
}

// withoutLetters removes boolean flags from letters that share a dash: those in front, as f in -fn 5,
// and those among other boolean flags, as t in -it. What may be the value of a flag is left alone.
func withoutLetters(a, letters string) (rest string, found bool) {
	if len(a) < 2 || a[0] != '-' || a[1] == '-' {
		return a, false
	}
	flags := strings.TrimLeft(a[1:], letters)
	if strings.Trim(flags, letters+"ipqtwAR") == "" {
		flags = strings.Map(func(r rune) rune {
			if strings.ContainsRune(letters, r) {
				return -1
			}
			return r
		}, flags)
	}
	return "-" + flags, "-"+flags != a
}

// hasFlag reports whether a flag with a letter is among arguments.
func hasFlag(args []string, letter string) bool {
	for _, a := range args {
		if strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.Contains(a, letter) {
			return true
		}
	}
	return false
}

// follows reports whether a command with a verb follows its output.
func follows(args []string, verb string) bool {
	_, dropped := without(args, []string{"f", "follow"})
	return dropped && len(args) > 0 && args[0] == verb
}

// apply judges the command of a process and tells the agent.
func (m *machine) apply(ctx context.Context, env *kit.Env) (code int, refused bool) {
	if path.Base(env.Args[0]) == "kubectl" {
		args, err := m.preferred(env)
		if err != nil {
			fmt.Fprintln(env.Stderr, err)
			return 1, true
		}
		env.Args = args
	}
	v := judge(env.Args, left(ctx))
	if v.refuse != "" {
		fmt.Fprintln(env.Stderr, v.refuse)
		return 1, true
	}
	if v.note != "" {
		fmt.Fprintln(env.Stderr, "Note: "+v.note)
	}
	env.Args = v.args
	return 0, false
}

// left is how long a command may take.
func left(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return time.Until(deadline)
	}
	return time.Hour
}
