// Command labapp is what real containers of the lab's images run: `aiopslab images build` makes the images of it. It
// has their programs and nothing else: no problem, and no answer.
//
// Anywhere else it runs any service of the lab's applications as an ordinary process:
//
//	labapp frontend          # of HotelReservation
//	labapp text-service      # of SocialNetwork
//
// Called by another name (a link), it runs the service of that name.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/image/inside"
	"github.com/aiopslab/aiopslab/internal/builtin/apps"
	"github.com/aiopslab/aiopslab/internal/builtin/images"
	"github.com/aiopslab/aiopslab/kit"
)

func main() {
	env := kit.HostEnv()
	if image, ok := inside.Image(env); ok {
		os.Exit(inside.Main(context.Background(), env, kit.NewRegistry(images.All()...), image))
	}
	programs := map[string]kit.Program{}
	for _, image := range apps.Images(nil) {
		for file, p := range image.Programs {
			programs[path.Base(file)] = p
		}
	}
	name := path.Base(env.Args[0])
	if programs[name] == nil && len(env.Args) > 1 {
		env.Args = env.Args[1:]
		name = env.Args[0]
	}
	p := programs[name]
	if p == nil {
		fmt.Fprintf(os.Stderr, "labapp: no service %q; there are: %s\n", name,
			strings.Join(slices.Sorted(maps.Keys(programs)), ", "))
		os.Exit(2)
	}
	os.Exit(kit.RunHost(context.Background(), p, env))
}
