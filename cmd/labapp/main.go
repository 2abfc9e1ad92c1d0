// Command labapp is what real containers of the lab's images run: `aiopslab images build` makes the images of it. It
// has their programs and nothing else: no problem, and no answer.
//
// Anywhere else it runs any service of the lab's applications as an ordinary process:
//
//	labapp frontend                   # of HotelReservation
//	labapp text-service               # of SocialNetwork
//	labapp astronomy-shop/frontend    # of the Astronomy Shop: the plain name is taken
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
	programs := services(apps.Images(nil))
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

// services are the programs of images by name. The first image that has a name keeps it; another's is behind the
// image's.
func services(images []kit.Image) map[string]kit.Program {
	all := map[string]kit.Program{}
	for _, image := range images {
		for file, p := range image.Programs {
			name, of := path.Base(file), path.Base(image.Names[0])
			switch {
			case all[name] == nil:
				all[name] = p
			case of != name: // It is no build of that one alone.
				all[of+"/"+name] = p
			}
		}
	}
	return all
}
