package fault

import (
	"context"

	"github.com/aiopslab/aiopslab/app"
)

func noop() *Kind {
	return Define(Kind{
		Name:  "noop",
		Title: "Nothing is wrong",
		Description: `Nothing is done, so nothing shows and there is nothing to fix. It is for problems that are right to
be found healthy.`,
		Targets: func(a *app.App) []string { return append([]string{""}, AnyService(a)...) },
	}, none{}, func(Target, none) (Fault, error) { return nothing{}, nil }, nil)
}

// nothing is no fault.
type nothing struct{}

func (nothing) Inject(context.Context, *Env) error             { return nil }
func (nothing) Manifest(context.Context, *Env) (string, error) { return "", nil }
func (nothing) Recover(context.Context, *Env) error            { return nil }
