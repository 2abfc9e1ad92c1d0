package decoy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/record"
)

// By how much the packets of a service are late: enough to be seen in its metrics and traces, where calls
// take a few milliseconds, and far less than users have to complain about, though a request may take several
// packets: grading allows for 300 ms.
const (
	leastDelay = 20 * time.Millisecond
	mostDelay  = 35 * time.Millisecond
)

var errNowhere = errors.New("the problem's faults reach every service")

// slow makes the packets of a service late.
func (d *Decoys) slow(ctx context.Context) ([]record.Decoy, error) {
	r := d.draw(1)
	far := d.far(r)
	if len(far) == 0 {
		return nil, errNowhere
	}
	service, delay := far[0], leastDelay+time.Duration(r.Int64N(int64(mostDelay-leastDelay)))
	late := cloud.Disturbance{
		Selector: cloud.Selector{
			Namespace: d.Env.App.Namespace, Labels: map[string]string{d.Env.App.Label: service},
		},
		Network: &cloud.NetworkChaos{Delay: delay, Direction: cloud.To},
	}
	if why := cloud.Refusal(d.Env.Chaos, late); why != "" {
		return nil, fmt.Errorf("%s; leave it out", why)
	}
	stop, err := d.Env.Chaos.Disturb(ctx, late)
	if err != nil {
		return nil, err
	}
	d.stop = stop
	what := fmt.Sprintf("what %s sends is %v late", service, delay.Round(time.Millisecond))
	return []record.Decoy{{Kind: string(Fault), What: what, Service: service}}, nil
}
