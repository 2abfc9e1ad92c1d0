package policy

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// readers are programs that only read, whatever their arguments.
var readers = strings.Fields(`cat cut date df dig du echo egrep fgrep free getent grep head hostname id jq ls md5sum
	netstat nslookup pgrep pidof ping printenv printf ps pwd readlink realpath sha256sum ss stat strings tail test true
	uname uniq uptime wc whoami which [`)

// searchers are programs that only read, unless an argument is one of these or begins with it.
var searchers = map[string][]string{
	"awk":  {"-i", "--", "-f"},
	"find": {"-delete", "-exec", "-ok", "-fprint", "-fls"},
	"ip":   {"add", "del", "set", "flush", "change", "replace"},
	"sort": {"-o", "--output"},
	"curl": {"-X", "-d", "-F", "-T", "-o", "-O", "-K", "-c", "-D", "-Q", "--"},
	"wget": {"-O", "-o", "-P", "-i", "--"},
}

// fetching are long arguments of curl and wget that change nothing.
var fetching = strings.Fields(`--silent --show-error --fail --head --include --max-time --verbose --location --insecure
	--connect-timeout --quiet --spider --timeout --header --write-out`)

// discarded are arguments that say where output goes, with the only places where it changes nothing.
var discarded = map[string]string{
	"-o": "/dev/null", "-so": "/dev/null", "-sSo": "/dev/null", "--output": "/dev/null", "-O": "-", "-qO": "-",
}

// ReadOnly reports whether a command in a container certainly changes nothing there. Servers that it asks may have an
// opinion of their own on what a plain request is.
func ReadOnly(command []string) bool {
	if len(command) == 0 {
		return false
	}
	name, args := path.Base(command[0]), command[1:]
	switch name {
	case "sh", "ash", "bash", "dash":
		return len(args) == 2 && args[0] == "-c" && readOnlyScript(args[1])
	case "env":
		return len(args) == 0
	case "tar": // as kubectl cp reads with
		return len(args) == 3 && args[0] == "cf" && args[1] == "-"
	case "awk":
		program := strings.Join(args, " ")
		if strings.ContainsAny(program, ">|") || strings.Contains(program, "system") {
			return false
		}
	}
	if slices.Contains(readers, name) {
		return true
	}
	bad, ok := searchers[name]
	for i := 0; ok && i < len(args); i++ {
		if to, known := discarded[args[i]]; known && i+1 < len(args) && args[i+1] == to {
			i++
			continue
		}
		long, _, _ := strings.Cut(args[i], "=")
		fetches := slices.Contains(fetching, long) || args[i] == "-O-" || args[i] == "-qO-"
		ok = fetches || !slices.ContainsFunc(bad, func(b string) bool { return harms(args[i], b) })
	}
	return ok
}

// harms reports whether an argument is a harmful one, or has its letter among others: -sX is -s and -X.
func harms(arg, bad string) bool {
	if len(bad) == 2 && bad[0] == '-' && bad[1] != '-' {
		return len(arg) > 1 && arg[0] == '-' && arg[1] != '-' && strings.ContainsRune(arg[1:], rune(bad[1]))
	}
	return strings.HasPrefix(arg, bad)
}

var (
	// silenced are redirections that write nothing.
	silenced = regexp.MustCompile(`\s[12]?>\s*/dev/null\b|\s2>&1`)
	// variables are those of a script.
	variables = regexp.MustCompile(`\$[A-Za-z_]\w*`)
	// between stands between the commands of a script.
	between = regexp.MustCompile(`\|\||&&|[;|\n]`)
	quotes  = strings.NewReplacer(`'`, "", `"`, "")
)

// readOnlyScript reports whether a script is plain commands in a row that only read. Anything beyond that, such as a
// loop or a substitution, does not count: quotes are not understood, so what is in them may be taken for more commands,
// never for fewer.
func readOnlyScript(script string) bool {
	script = variables.ReplaceAllString(silenced.ReplaceAllString(script, " "), "\x01")
	commands := between.Split(script, -1)
	if strings.ContainsAny(strings.Join(commands, ""), "><$`&(){}\\!") {
		return false
	}
	n := 0
	for _, c := range commands {
		words := strings.Fields(quotes.Replace(c))
		if len(words) == 0 {
			continue
		}
		if n++; !ReadOnly(words) {
			return false
		}
	}
	return n > 0
}
