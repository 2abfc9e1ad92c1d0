package box

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// pathFlags are the flags of kubectl and helm whose value is a file or a directory.
var pathFlags = map[string][]string{
	"kubectl": {
		"-f", "--filename", "-k", "--kustomize", "--from-env-file", "--cert", "--key", "--kubeconfig", "--patch-file",
		"--cache-dir", "--certificate-authority", "--client-certificate", "--client-key", "--profile-output",
		"--output-directory", "--kuberc", "--template", "--custom", "--env-file",
	},
	"helm": {
		"-f", "--values", "--kubeconfig", "-d", "--destination", "--output-dir", "--ca-file", "--cert-file",
		"--key-file", "--keyring", "--kube-ca-file", "--registry-config", "--repository-cache", "--repository-config",
		"--untardir", "--app-readme", "--starter", "-p", "--content-cache",
	},
}

// keyedFlags are those whose value is [KEY=]PATH.
var keyedFlags = map[string][]string{"kubectl": {"--from-file"}, "helm": {"--set-file"}}

// outputFiles are the output formats that name a file: -o jsonpath-file=PATH.
var outputFiles = []string{"jsonpath-file=", "go-template-file=", "templatefile=", "custom-columns-file="}

// rewriter turns the agent's paths into paths of the host.
type rewriter struct {
	tool string
	dir  string                           // the scratch directory on the host
	cwd  string                           // the agent's
	open func(name string) (string, bool) // replaces a name of an open descriptor by that of a file
}

// host is a path of the agent's on the host. Only what is absolute or climbs is changed: the rest is
// relative to a directory that stands for the agent's.
func (r *rewriter) host(name string) string {
	if isURL(name) || name == "-" || name == "" {
		return name
	}
	if name == "/dev/stdin" {
		return "-"
	}
	if strings.HasPrefix(name, "/dev/fd/") {
		if file, ok := r.open(name); ok {
			name = file
		}
	}
	if !path.IsAbs(name) && !slices.Contains(strings.Split(name, "/"), "..") {
		return name
	}
	if !path.IsAbs(name) {
		name = path.Join(r.cwd, name)
	}
	file := filepath.Join(r.dir, filepath.FromSlash(clean(name)))
	if strings.HasSuffix(name, "/") && !strings.HasSuffix(file, "/") {
		file += "/" // kubectl cp tells a directory by it.
	}
	return file
}

// isURL reports whether kubectl and helm would take a name for an address.
func isURL(name string) bool {
	return slices.ContainsFunc([]string{"http://", "https://", "oci://"}, func(p string) bool {
		return strings.HasPrefix(name, p)
	})
}

// list is host for the files of a list.
func (r *rewriter) list(value string) string {
	parts := strings.Split(value, ",")
	for i, p := range parts {
		parts[i] = r.host(p)
	}
	return strings.Join(parts, ",")
}

// keyed is host for a value behind a key.
func (r *rewriter) keyed(value string) string {
	if key, name, ok := strings.Cut(value, "="); ok {
		return key + "=" + r.host(name)
	}
	return r.host(value)
}

// args rewrites a command line, the program's name included. What follows -- is for a container.
func (r *rewriter) args(args []string) []string {
	out := []string{args[0]}
	verb := verb(args, map[string][]string{"kubectl": kubectlValues, "helm": helmValues}[r.tool])
	for i := 1; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			return append(out, args[i:]...)
		}
		if len(a) > 2 && a[0] == '-' && a[1] != '-' {
			if a, apart := r.letters(a, verb); !apart {
				out = append(out, a)
				continue
			}
		}
		name, value, joined := strings.Cut(a, "=")
		if len(a) > 2 && a[0] == '-' && a[1] != '-' {
			name, joined = "-"+a[len(a)-1:], false // -Rf FILE
		}
		rewrite := r.kind(name, verb)
		switch {
		case rewrite == nil && strings.HasPrefix(a, "-"):
			out = append(out, a)
		case rewrite == nil:
			out = append(out, r.operand(a, verb))
		case joined:
			out = append(out, name+"="+rewrite(value))
		case i+1 < len(args):
			out = append(out, a, rewrite(args[i+1]))
			i++
		default:
			out = append(out, a)
		}
	}
	return out
}

// valueLetters are the one-letter flags of kubectl and helm that take a value which is no path.
const valueLetters = "nlsvcpLig"

// letters rewrites letters behind one dash: flags without a value, and maybe one with it, as in
// -fFILE, -f=FILE and -Rf FILE. apart says that the value is the next argument and has to be rewritten.
func (r *rewriter) letters(a, verb string) (rewritten string, apart bool) {
	for i := 1; i < len(a); i++ {
		if rewrite := r.kind("-"+a[i:i+1], verb); rewrite != nil {
			if i == len(a)-1 {
				return a, true
			}
			value, equals := strings.CutPrefix(a[i+1:], "=")
			if equals {
				return a[:i+1] + "=" + rewrite(value), false
			}
			return a[:i+1] + rewrite(value), false
		}
		if strings.IndexByte(valueLetters, a[i]) >= 0 || a[i] == '=' {
			break // The rest is its value.
		}
	}
	return a, false
}

// kind returns how the value of a flag is rewritten, or nil if it is no path.
func (r *rewriter) kind(flag, verb string) func(string) string {
	switch {
	case flag == "-o" || flag == "--output":
		return r.output
	case slices.Contains(keyedFlags[r.tool], flag):
		return r.keyed
	case r.tool == "kubectl" && verb == "logs" && flag == "-f", // follow
		r.tool == "kubectl" && verb == "patch" && flag == "-p",
		r.tool == "kubectl" && flag == "--template": // mostly the template itself
		return nil
	case slices.Contains(pathFlags[r.tool], flag):
		if r.tool == "helm" && flag == "-p" || r.tool == "helm" && flag == "-d" && verb != "pull" && verb != "package" {
			return nil
		}
		return r.list
	}
	return nil
}

// output rewrites the value of -o.
func (r *rewriter) output(value string) string {
	for _, format := range outputFiles {
		if name, ok := strings.CutPrefix(value, format); ok {
			return format + r.host(name)
		}
	}
	return value
}

// operand rewrites an argument that is no flag.
func (r *rewriter) operand(a, verb string) string {
	switch {
	case r.tool == "kubectl" && verb == "cp":
		if strings.Contains(a, ":") {
			return a // in a container
		}
		return r.host(a)
	case r.tool == "kubectl" && verb == "kustomize", r.tool == "kubectl" && verb == "cluster-info":
		return r.host(a)
	case r.tool == "helm" && path.IsAbs(a), r.tool == "helm" && strings.HasPrefix(a, ".."):
		return r.host(a) // a chart
	}
	return a
}
