package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/internal/term"
)

type kernelParams struct {
	Call          string  `yaml:"call" doc:"the call into the kernel that fails, such as connect, accept, write, mmap"`
	Errno         string  `yaml:"errno" doc:"what it fails with"`
	Percent       float64 `yaml:"percent" doc:"of the calls that fail, 0 to 100"`
	disturbParams `yaml:",inline"`
}

// Validate implements the check of parameters.
func (p kernelParams) Validate() error {
	switch {
	case p.Call == "" || p.Errno == "":
		return errors.New(`"call" and "errno" must not be empty`)
	case p.Percent <= 0 || p.Percent > 100:
		return errors.New(`"percent" must be more than 0 and at most 100`)
	}
	return p.disturbParams.Validate()
}

func kernelFault() *Kind {
	return disturbing(Kind{
		Name:  "kernel_fault",
		Title: "Calls of a service into the kernel fail",
		Description: `A call into the kernel fails in the containers of a service, and its pods are replaced, so that they have
to make it. A service that cannot connect does not reach its database: it says so in its log and never
becomes ready, or its calls fail. Only where it is bound to a node can an operator help: by moving the pods off it.`,
		Cause: Cause{term.OperatingSystem, term.DependencyProblem},
		Targets: func(a *app.App) []string {
			return services(a, func(s app.Service) bool { return s.Kind == "service" && callsStore(a, s) })
		},
		MayFix: moved,
	}, kernelParams{Call: "connect", Errno: "ENOMEM", Percent: 100}, func(p kernelParams) disturbParams {
		return p.disturbParams
	},
		func(_ Target, p kernelParams) (cloud.Disturbance, error) {
			return cloud.Disturbance{Kernel: &cloud.KernelChaos{Call: p.Call, Errno: p.Errno, Percent: p.Percent}}, nil
		}, func(kernelParams) probe { return kernelProbe }, true)
}

// failing is the part of all requests that may fail without a reason to worry.
const failing = 0.01

// kernelProbe looks at the service first. One that starts all the same fails its users.
func kernelProbe(ctx context.Context, e *Env, service string) (string, error) {
	if symptom, err := healthProbe(ctx, e, service); symptom != "" || err != nil {
		return symptom, err
	}
	return usersFail(ctx, e)
}

// usersFail says that users are not served at the moment, or "".
func usersFail(ctx context.Context, e *Env) (string, error) {
	if e.Load == nil {
		return "", nil
	}
	s, err := e.Load(ctx)
	if err != nil {
		return "", err
	}
	w := s.Window("10s")
	if float64(w.Total.Failed) > failing*float64(w.Total.Requests) {
		return fmt.Sprintf("%d of %d requests of users failed in the last 10s", w.Total.Failed, w.Total.Requests), nil
	}
	return "", nil
}

// callsStore reports whether a service has a MongoDB server to connect to.
func callsStore(a *app.App, s app.Service) bool {
	return slices.ContainsFunc(s.Calls, func(name string) bool {
		c, _ := a.Service(name)
		return c.Kind == "mongodb"
	})
}
