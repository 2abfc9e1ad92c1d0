package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/internal/term"
)

// networkParams are what all disturbances of the network share.
type networkParams struct {
	Direction     string        `yaml:"direction" doc:"which traffic of the target is disturbed: to is what it sends, from what it receives, or both"`
	Slow          time.Duration `yaml:"slow" doc:"it shows if an answer takes longer"`
	disturbParams `yaml:",inline"`
}

// Validate implements the check of parameters.
func (p networkParams) Validate() error {
	switch cloud.Direction(p.Direction) {
	case cloud.To, cloud.From, cloud.Both:
	default:
		return fmt.Errorf("\"direction\": it is %q, and must be to, from or both", p.Direction)
	}
	if p.Slow <= 0 {
		return fmt.Errorf(`"slow" must be more than 0`)
	}
	return p.disturbParams.Validate()
}

// samples is how many requests are sent at once to see a disturbance that hits some of them, and
// enough is how many of them must fare badly: a single one may have met a busy machine.
const (
	samples = 6
	enough  = 2
)

// probe sees a disturbance by answers that do not come, or come late.
func (p networkParams) probe(ctx context.Context, e *Env, name string) (string, error) {
	if symptom, err := podSymptom(ctx, e, name); symptom != "" || err != nil {
		return symptom, err
	}
	pods, err := podsOf(ctx, e, name)
	if err != nil {
		return "", err
	}
	s, _ := e.App.Service(name)
	errs := make([]error, samples)
	var g errgroup.Group
	for i := range errs {
		g.Go(func() error {
			errs[i] = ask(ctx, e, name, p.Slow)
			if errs[i] == nil && s.Kind == "service" && len(pods) > 0 {
				errs[i] = fetch(ctx, e, name, pods[i%len(pods)].Status.PodIP, p.Slow)
			}
			return nil
		})
	}
	_ = g.Wait()
	bad, last := failures(errs)
	switch {
	case bad >= enough:
	case e.Guest:
		return p.fromAfar(ctx, e, name, pods)
	default:
		return "", ctx.Err()
	}
	return fmt.Sprintf("%d of %d requests to %s failed: %v", bad, samples, name, last), ctx.Err()
}

// network makes the kind of a disturbance of the network.
func network[P any](k Kind, defaults P, shared func(P) networkParams, what func(P) cloud.NetworkChaos) *Kind {
	k.Cause = Cause{term.Virtualization, term.NetworkStorage}
	k.Description += ` Only where it is bound to a node can an operator help: by moving the pods off it.`
	k.MayFix = moved
	return disturbing(k, defaults, func(p P) disturbParams { return shared(p).disturbParams },
		func(_ Target, p P) (cloud.Disturbance, error) {
			n := what(p)
			n.Direction = cloud.Direction(shared(p).Direction)
			return cloud.Disturbance{Network: &n}, nil
		}, func(p P) probe { return shared(p).probe }, false)
}

// What shows: the least part of the packets, the least delay, and the most bytes a second that are less
// than what a service sends.
const (
	leastShare    = 0.05
	leastDelay    = 20 * time.Millisecond
	mostBandwidth = 1_000_000
)

// share checks a part of all.
func share(name string, v float64) error {
	switch {
	case v > 1:
		return fmt.Errorf("%q is a part of all: at most 1, and 0.5 is 50 %%", name)
	case v < leastShare:
		return fmt.Errorf("%q must be at least %g: less does not show", name, leastShare)
	}
	return nil
}

func defaultNetwork(slow time.Duration) networkParams {
	return networkParams{Direction: string(cloud.To), Slow: slow}
}

type lossParams struct {
	Loss          float64 `yaml:"loss" doc:"the part of the packets that are lost, 0 to 1"`
	networkParams `yaml:",inline"`
}

// Validate implements the check of parameters.
func (p lossParams) Validate() error {
	if err := share("loss", p.Loss); err != nil {
		return err
	}
	return p.networkParams.Validate()
}

func networkLoss() *Kind {
	return network(Kind{
		Name:  "network_loss",
		Title: "Packets of a service are lost",
		Description: `Part of the packets of a service's pods are lost. TCP sends them again after a while, ever more rarely, so
calls take long or time out.`,
	}, lossParams{0.99, defaultNetwork(500 * time.Millisecond)}, func(p lossParams) networkParams {
		return p.networkParams
	},
		func(p lossParams) cloud.NetworkChaos { return cloud.NetworkChaos{Loss: p.Loss} })
}

type delayParams struct {
	Delay         time.Duration `yaml:"delay" doc:"how much later packets arrive"`
	Jitter        time.Duration `yaml:"jitter" doc:"by how much the delay varies either way"`
	networkParams `yaml:",inline"`
}

// Validate implements the check of parameters.
func (p delayParams) Validate() error {
	switch {
	case p.Delay < leastDelay:
		return fmt.Errorf(`"delay" must be at least %v: less does not show beside what a busy machine takes`,
			leastDelay)
	case p.Jitter < 0 || p.Jitter > p.Delay:
		return errors.New(`"jitter" must not be negative, and at most as much as "delay"`)
	}
	return p.networkParams.Validate()
}

// network is what a delay shares with other disturbances. Slow is never more than what a delay must cause,
// since no answer comes without two packets.
func (p delayParams) network() networkParams {
	n := p.networkParams
	n.Slow = min(n.Slow, max(2*(p.Delay-p.Jitter), p.Delay/2))
	return n
}

func (p delayParams) chaos() cloud.NetworkChaos {
	return cloud.NetworkChaos{Delay: p.Delay, Jitter: p.Jitter}
}

func networkDelay() *Kind {
	return network(Kind{
		Name:  "network_delay",
		Title: "Packets of a service are late",
		Description: `All packets of a service's pods arrive later. Calls take long, and time out if the delay is more than their
callers wait for.`,
	}, delayParams{Delay: 10 * time.Second, networkParams: defaultNetwork(time.Second)}, delayParams.network,
		delayParams.chaos)
}

func networkJitter() *Kind {
	return network(Kind{
		Name:  "network_jitter",
		Title: "Packets of a service are late, now more, now less",
		Description: `All packets of a service's pods arrive later, each by another time. Calls take long, and how long differs
from one to the next.`,
	}, delayParams{Delay: 2 * time.Second, Jitter: 2 * time.Second, networkParams: defaultNetwork(time.Second)},
		delayParams.network, delayParams.chaos)
}

type bandwidthParams struct {
	Rate          int `yaml:"rate" doc:"bytes a second"`
	networkParams `yaml:",inline"`
}

// Validate implements the check of parameters.
func (p bandwidthParams) Validate() error {
	if p.Rate <= 0 || p.Rate > mostBandwidth {
		return fmt.Errorf(`"rate" must be more than 0 and at most %d bytes a second: services send less than more`,
			mostBandwidth)
	}
	return p.networkParams.Validate()
}

func networkBandwidth() *Kind {
	return network(Kind{
		Name:  "network_bandwidth",
		Title: "A service can send little",
		Description: `A service's pods can send only so many bytes a second. What they send waits for what they sent before, so
calls take ever longer.`,
	}, bandwidthParams{1000, defaultNetwork(time.Second)}, func(p bandwidthParams) networkParams {
		return p.networkParams
	},
		func(p bandwidthParams) cloud.NetworkChaos { return cloud.NetworkChaos{Bandwidth: int64(p.Rate)} })
}

type corruptParams struct {
	Corrupt       float64 `yaml:"corrupt" doc:"the part of the packets that arrive damaged, 0 to 1"`
	networkParams `yaml:",inline"`
}

// Validate implements the check of parameters.
func (p corruptParams) Validate() error {
	if err := share("corrupt", p.Corrupt); err != nil {
		return err
	}
	return p.networkParams.Validate()
}

func networkCorrupt() *Kind {
	return network(Kind{
		Name:  "network_corrupt",
		Title: "Packets of a service arrive damaged",
		Description: `Part of the packets of a service's pods arrive damaged. Their checksums are wrong, so they are dropped, and
TCP sends them again after a while: calls take long or time out.`,
	}, corruptParams{0.95, defaultNetwork(500 * time.Millisecond)}, func(p corruptParams) networkParams {
		return p.networkParams
	},
		func(p corruptParams) cloud.NetworkChaos { return cloud.NetworkChaos{Corrupt: p.Corrupt} })
}

func networkPartition() *Kind {
	defaults := defaultNetwork(time.Second)
	defaults.Direction = string(cloud.Both)
	return network(Kind{
		Name:        "network_partition",
		Title:       "A service is cut off",
		Description: `Nothing passes between a service's pods and anybody else. Calls to the service, and its own, time out.`,
	}, defaults, func(p networkParams) networkParams { return p },
		func(networkParams) cloud.NetworkChaos { return cloud.NetworkChaos{Partition: true} })
}

type duplicateParams struct {
	Duplicate     float64 `yaml:"duplicate" doc:"the part of the packets that arrive twice, 0 to 1"`
	networkParams `yaml:",inline"`
}

// Validate implements the check of parameters.
func (p duplicateParams) Validate() error {
	if err := share("duplicate", p.Duplicate); err != nil {
		return err
	}
	return p.networkParams.Validate()
}

func networkDuplicate() *Kind {
	k := network(Kind{
		Name:  "network_duplicate",
		Title: "Packets of a service arrive twice",
		Description: `Part of the packets of a service's pods arrive twice. TCP throws the second away, so it shows only with
services that answer over UDP, as those for names do: one question gets two answers.`,
		Targets: func(a *app.App) []string {
			o, err := read(a)
			if err != nil {
				return nil
			}
			return services(a, func(s app.Service) bool { return o.datagrams(s.Name) > 0 })
		},
	}, duplicateParams{0.99, defaultNetwork(time.Second)}, func(p duplicateParams) networkParams {
		return p.networkParams
	},
		func(p duplicateParams) cloud.NetworkChaos { return cloud.NetworkChaos{Duplicate: p.Duplicate} })
	bind := k.Bind
	k.Bind = func(t Target, params any) (Fault, error) {
		f, err := bind(t, params)
		if d, ok := f.(*disturbed); ok {
			d.probe = duplicateProbe
		}
		return f, err
	}
	return k
}
