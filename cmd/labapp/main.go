// Command labapp runs any service of the lab's applications as an ordinary process: it is the entry
// point of their container images on a real cluster.
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
	"os/signal"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/aiopslab/aiopslab/internal/builtin/apps"
	"github.com/aiopslab/aiopslab/kit"
)

func main() {
	env := kit.HostEnv()
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
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() { cancel(kit.Killed{Signal: (<-signals).(syscall.Signal)}) }()
	os.Exit(kit.Run(ctx, p, env))
}
