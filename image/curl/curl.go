// Package curl is the image curlimages/curl.
package curl

import (
	"context"
	"errors"
	"strings"

	"github.com/aiopslab/aiopslab/kit"
)

// Image returns the image with the given tools, curl among them, under /usr/bin.
func Image(tools map[string]kit.Program) kit.Image {
	programs := map[string]kit.Program{"/entrypoint.sh": entrypoint}
	for name, p := range tools {
		programs["/usr/bin/"+name] = p
	}
	return kit.Image{
		Names:      []string{"curlimages/curl"},
		Tags:       `latest|[78]\.\d{1,2}\.\d`,
		Entrypoint: []string{"/entrypoint.sh"},
		Cmd:        []string{"curl"},
		User:       "100",
		Programs:   programs,
		Files: map[string]string{"/etc/passwd": "root:x:0:0:root:/root:/bin/sh\n" +
			"curl_user:x:100:101:curl_user:/home/curl_user:/bin/sh\n", "/home/curl_user/": ""},
		Memory: 2 << 20,
		Size:   9_500_000,
	}
}

// entrypoint runs its arguments; those that are not a command are curl's.
func entrypoint(ctx context.Context, env *kit.Env) error {
	args := env.Args[1:]
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		args = append([]string{"curl"}, args...)
	}
	p, err := env.Procs.Start(ctx, env.Child(args...))
	if exec, ok := errors.AsType[*kit.ExecError](err); ok && exec.ExitCode() == kit.ExitNotFound {
		p, err = env.Procs.Start(ctx, env.Child(append([]string{"curl"}, args...)...))
	}
	if err != nil {
		return err
	}
	return kit.Exit(p.Wait())
}
