package kit_test

import (
	"context"
	"fmt"
	"os"

	"github.com/aiopslab/aiopslab/kit"
)

// hello is a program: its arguments, variables, files and network are those of its environment.
func hello(_ context.Context, env *kit.Env) error {
	if len(env.Args) < 2 {
		fmt.Fprintln(env.Stderr, "hello: say to whom")
		return kit.Exit(2)
	}
	fmt.Fprintf(env.Stdout, "%s, %s!\n", env.Getenv("GREETING"), env.Args[1])
	return nil
}

// An image is programs and files under the names that manifests use.
func ExampleRegistry() {
	images := kit.NewRegistry(kit.Image{
		Names: []string{"example/hello"}, Tags: `v1|latest`, Entrypoint: []string{"/bin/hello"},
		Programs: map[string]kit.Program{"/bin/hello": hello},
	})
	full, image, err := images.Resolve("example/hello:v1")
	fmt.Println(full, image.Entrypoint, err)
	_, _, err = images.Resolve("example/hello:v2")
	fmt.Println(err != nil)
	// Output:
	// docker.io/example/hello:v1 [/bin/hello] <nil>
	// true
}

// A program runs with an environment, and ends with a code.
func ExampleRun() {
	env := kit.HostEnv()
	env.Args, env.Vars = []string{"hello", "geo"}, map[string]string{"GREETING": "Good morning"}
	env.Stdout, env.Stderr = os.Stdout, os.Stdout
	fmt.Println("exit code", kit.Run(context.Background(), hello, env))
	env.Args = []string{"hello"}
	fmt.Println("exit code", kit.Run(context.Background(), hello, env))
	// Output:
	// Good morning, geo!
	// exit code 0
	// hello: say to whom
	// exit code 2
}
