package shell

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/shelltest"
)

// FuzzShell runs scripts, most of which are nonsense, and wants no panic and no end of patience.
func FuzzShell(f *testing.F) {
	for _, s := range []string{
		`for i in 1 2; do echo $i; done | sort -r`, `x=$(echo a); case $x in a) echo ${x:-b};; esac`, `f() { local y=$1; return $((y+1)); }; f 3 || echo $?`,
		`a=(1 2 3); echo ${a[@]:1} ${#a[@]}; declare -A m=([k]=v)`, `cat <<E; echo <(true); trap 'echo x' EXIT`, `[[ a =~ (.) && -f /etc/passwd ]] || exit 3`,
		`exec 3>&1; echo x >&3; read -t 0 y <<<z; set -- a b; shift; echo "$@"`, `(sleep 0 & wait $!); kill -0 $$; printf '%s %d\n' a 1 b`,
		`while read a b; do echo $b; break; done </etc/passwd; until true; do :; done; time true; eval 'let z=1'`, `set -eu; echo ${1?no}; unset x; alias l=ls; l /`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, script string) {
		for _, name := range []string{"sh", "bash"} {
			m := shelltest.New(t, Tools())
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			env := m.Env(name, "-c", script)
			p, err := m.Procs.Start(ctx, env)
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan int, 1)
			go func() { done <- p.Wait() }()
			select {
			case code := <-done:
				if errs := env.Stderr.(*shelltest.Buffer).String(); code == kit.ExitPanic && strings.Contains(errs, "panic:") {
					t.Fatalf("%s -c %q: %s", name, script, errs)
				}
			case <-time.After(shelltest.Patience):
				t.Fatalf("%s -c %q goes on", name, script)
			}
			cancel()
		}
	})
}
