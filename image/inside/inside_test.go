package inside

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// says is a program that prints its name and arguments.
func says(name string) kit.Program {
	return func(_ context.Context, env *kit.Env) error {
		fmt.Fprintln(env.Stdout, name, env.Args)
		return kit.Exit(3)
	}
}

// container is the process of a container that has the files of an image.
func container(t *testing.T, i kit.Image, args ...string) (env *kit.Env, out *bytes.Buffer) {
	t.Helper()
	out = &bytes.Buffer{}
	env = kittest.New(t).Machine("box", "10.0.0.1").Env(args...)
	env.Vars = map[string]string{"PATH": "/sbin:/bin"}
	env.Dir, env.Stdout, env.Stderr = "/bin", out, out
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(env.MkdirAll(Home, 0o755))
	check(env.MkdirAll("/tmp", 0o755))
	check(env.WriteFile(Marker, []byte(i.Names[0]+"\n"), 0o644))
	check(env.WriteFile(Program, nil, 0o755))
	for name := range i.Programs {
		check(env.MkdirAll(path.Dir(name), 0o755))
		check(env.FS.Symlink(Program, name))
	}
	return env, out
}

func TestInside(t *testing.T) {
	i := kit.Image{Names: []string{"example/box"}, Tags: "v1", Programs: map[string]kit.Program{
		"/bin/sh": says("sh"), "/bin/geo": says("geo"), "/opt/geo": says("other geo"), "/entry.sh": says("entry"),
	}}
	registry := kit.NewRegistry(i, kit.Image{Names: []string{"example/secret"}, Programs: map[string]kit.Program{
		"/bin/secret": says("secret"),
	}})
	for _, tt := range []struct {
		name string
		args []string
		want string
		code int
	}{
		{"in PATH", []string{"geo", "-v"}, "geo [geo -v]\n", 3},
		{"by its path", []string{"/opt/geo"}, "other geo [/opt/geo]\n", 3},
		{"in the working directory", []string{"./sh", "-c", "x"}, "sh [./sh -c x]\n", 3},
		{"in the root", []string{"../entry.sh"}, "entry [../entry.sh]\n", 3},
		{"a link to a program", []string{"/tmp/link"}, "geo [/tmp/link]\n", 3},
		{"a link to a link", []string{"/tmp/chain"}, "geo [/tmp/chain]\n", 3},
		{"a copy of a program", []string{"/tmp/sh"}, "sh [/tmp/sh]\n", 3},
		{"links that go round", []string{"/tmp/round"}, "/tmp/round: not found\n", kit.ExitNotFound},
		{"nothing that the image has", []string{"/tmp/copy"}, "/tmp/copy: not found\n", kit.ExitNotFound},
		// Nothing but the image's programs runs in a container, whatever the binary is called by.
		{"the lab itself", []string{"aiopslab", "problems"}, "aiopslab: not found\n", kit.ExitNotFound},
		{"the binary itself", []string{Program, "problems"}, Program + ": not found\n", kit.ExitNotFound},
		{"a program of another image", []string{"secret"}, "secret: not found\n", kit.ExitNotFound},
		{"a name with a trick", []string{"/bin/../../../secret"}, "/bin/../../../secret: not found\n", kit.ExitNotFound},
		{"no name", []string{""}, ": not found\n", kit.ExitNotFound},
	} {
		t.Run(tt.name, func(t *testing.T) {
			env, out := container(t, i, tt.args...)
			for name, target := range map[string]string{
				"/tmp/link": "/bin/geo", "/tmp/chain": "link", "/tmp/round": "round", "/tmp/plain": Program,
			} {
				if err := env.FS.Symlink(target, name); err != nil {
					t.Fatal(err)
				}
			}
			for _, copied := range []string{"/tmp/sh", "/tmp/copy"} {
				if err := env.WriteFile(copied, nil, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			name, ok := Image(env)
			if name != "example/box" || !ok {
				t.Fatalf("inside %q, %v", name, ok)
			}
			if code := Main(t.Context(), env, registry, name); code != tt.code || out.String() != tt.want {
				t.Errorf("exit %d, %q", code, out)
			}
		})
	}
}

func TestOutside(t *testing.T) {
	env := kittest.New(t).Machine("laptop", "10.0.0.1").Env("aiopslab")
	if name, ok := Image(env); ok {
		t.Errorf("inside %q", name)
	}
}

// TestUnknownImage runs a binary that lacks the image it was put into.
func TestUnknownImage(t *testing.T) {
	i := kit.Image{Names: []string{"example/box"}, Programs: map[string]kit.Program{"/bin/sh": says("sh")}}
	env, out := container(t, i, "sh")
	code := Main(t.Context(), env, kit.NewRegistry(), "example/box")
	if code != kit.ExitNotRunnable || !strings.HasPrefix(out.String(), "example/box: this program has no such image") {
		t.Errorf("exit %d, %q", code, out)
	}
}
