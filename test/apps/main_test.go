package apps

import (
	"context"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/app/astronomy"
	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/app/social"
	"github.com/aiopslab/aiopslab/image/busybox"
	"github.com/aiopslab/aiopslab/image/consul"
	"github.com/aiopslab/aiopslab/image/coredns"
	"github.com/aiopslab/aiopslab/image/flagd"
	"github.com/aiopslab/aiopslab/image/jaeger"
	"github.com/aiopslab/aiopslab/image/kafka"
	"github.com/aiopslab/aiopslab/image/kubestatemetrics"
	"github.com/aiopslab/aiopslab/image/memcached"
	"github.com/aiopslab/aiopslab/image/metricsserver"
	"github.com/aiopslab/aiopslab/image/mongo"
	"github.com/aiopslab/aiopslab/image/otelcollector"
	"github.com/aiopslab/aiopslab/image/postgres"
	"github.com/aiopslab/aiopslab/image/prometheus"
	"github.com/aiopslab/aiopslab/image/redis"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/shell"
	"github.com/aiopslab/aiopslab/test/labtest"
)

const (
	patience = labtest.Patience
	poll     = 100 * time.Millisecond
)

// The applications share the cloud and its telemetry, and do not disturb each other.
var (
	lab      labtest.Lab
	observer *observe.Observer
)

func TestMain(m *testing.M) {
	lab.Main(m, labtest.Options{
		Images: []kit.Image{
			coredns.Image(), metricsserver.Image(), kubestatemetrics.Image(), prometheus.Image(nil), jaeger.Image(),
			consul.Image(nil), mongo.Image(nil), memcached.Image(nil), redis.Image(nil), hotel.Image(nil), social.Image(nil),
			astronomy.Image(nil), busybox.Image(shell.Tools()), flagd.Image(nil), flagd.UI(nil), kafka.Image(nil),
			otelcollector.Image(nil), postgres.Image(nil), redis.Valkey(nil),
		},
		Prepare: func(ctx context.Context) (stop func(), err error) {
			if observer, err = observe.New(lab.Config, lab.Cloud.Dial, nil); err != nil {
				return nil, err
			}
			return func() { observer.Close() }, observer.Deploy(ctx, nil)
		},
	})
}
