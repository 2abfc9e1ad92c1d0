package flightticket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/app/flightticket/whisk"
	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	runCost = 300 * time.Microsecond
	// initCost is what it takes to load a function's program.
	initCost = 60 * time.Millisecond
)

// actionMain is the program flight-action: it runs the function that its argument, or the variable ACTION, names.
func actionMain(ctx context.Context, env *kit.Env) error {
	name := env.Getenv("ACTION")
	if len(env.Args) > 1 {
		name = env.Args[1]
	}
	run := actions[name]
	if run == nil {
		fmt.Fprintf(env.Stderr, "there is no function %q; there are %s\n", clip(name),
			strings.Join(slices.Sorted(maps.Keys(actions)), ", "))
		return kit.Exit(2)
	}
	s, err := service.New(ctx, env, service.Config{Name: name})
	if err != nil {
		return err
	}
	defer s.Close()
	f := &function{
		store:  &store{s, s.Redis(cmp.Or(env.Getenv("REDIS_ADDRESS"), "redis:6379"))},
		others: whisk.NewClient(s, cmp.Or(env.Getenv("__OW_API_HOST"), "owdev-controller:"+whisk.Port)),
	}
	if name == keeper {
		s.Recall(f.recall)
	}
	return whisk.Serve(ctx, s, whisk.Program{
		Name: name, Cost: runCost, InitCost: initCost,
		Init: func(ctx context.Context) error {
			_, err := f.fill(ctx)
			return err
		},
		Run: func(ctx context.Context, in *whisk.Input) (any, error) {
			v, err := run(f, ctx, in)
			if err != nil && ctx.Err() != nil {
				err = errors.Join(err, context.Cause(ctx))
			}
			return v, err
		},
	})
}
