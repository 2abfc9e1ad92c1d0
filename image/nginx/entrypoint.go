package nginx

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/aiopslab/aiopslab/kit"
)

const (
	templateDir = confDir + "/templates"
	templateExt = ".template"
)

// entrypoint is the image's entry script: it fills templates in and becomes the command it is given.
func entrypoint(ctx context.Context, env *kit.Env) error {
	command := env.Args[1:]
	if len(command) == 0 {
		return nil
	}
	if command[0] != "nginx" && command[0] != "nginx-debug" {
		return run(ctx, env, command)
	}
	say := func(format string, args ...any) {
		if env.Getenv("NGINX_ENTRYPOINT_QUIET_LOGS") == "" {
			fmt.Fprintf(env.Stdout, format+"\n", args...)
		}
	}
	const script, templates = "/docker-entrypoint.sh", "20-envsubst-on-templates.sh"
	say("%s: /docker-entrypoint.d/ is not empty, will attempt to perform configuration", script)
	say("%s: Looking for shell scripts in /docker-entrypoint.d/", script)
	say("%s: Launching /docker-entrypoint.d/%s", script, templates)
	if err := fillTemplates(env, func(from, to string) {
		say("%s: Running envsubst on %s to %s", templates, from, to)
	}); err != nil {
		return err
	}
	say("%s: Configuration complete; ready for start up", script)
	e := *env // It stays the same process.
	e.Args = command
	return Main(ctx, &e)
}

// run starts another command of the image and ends as it does.
func run(ctx context.Context, env *kit.Env, command []string) error {
	p, err := env.Procs.Start(ctx, env.Child(command...))
	if err != nil {
		fmt.Fprintf(env.Stderr, "/docker-entrypoint.sh: %v\n", err)
		return kit.Exit(kit.ExitNotFound)
	}
	return kit.Exit(p.Wait())
}

var reference = regexp.MustCompile(`\$\{(\w+)\}|\$(\w+)`)

// fillTemplates writes each template to conf.d with the variables of the environment replaced.
// References to others are nginx's own and stay.
func fillTemplates(env *kit.Env, say func(from, to string)) error {
	entries, err := env.FS.ReadDir(templateDir)
	if err != nil {
		return nil // There need not be any.
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), templateExt)
		if !ok {
			continue
		}
		from, to := path.Join(templateDir, e.Name()), path.Join(confDir, "conf.d", name)
		data, err := env.ReadFile(from)
		if err != nil {
			return err
		}
		say(from, to)
		filled := reference.ReplaceAllStringFunc(string(data), func(r string) string {
			if value, ok := env.Vars[strings.Trim(r, "${}")]; ok {
				return value
			}
			return r
		})
		if err := env.WriteFile(to, []byte(filled), 0o644); err != nil {
			return err
		}
	}
	return nil
}
