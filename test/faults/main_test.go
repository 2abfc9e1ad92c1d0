package faults

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/app/astronomy"
	"github.com/aiopslab/aiopslab/app/flightticket"
	"github.com/aiopslab/aiopslab/app/flower"
	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/app/social"
	"github.com/aiopslab/aiopslab/app/sockshop"
	bank "github.com/aiopslab/aiopslab/app/tidb"
	"github.com/aiopslab/aiopslab/app/trainticket"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/image/busybox"
	"github.com/aiopslab/aiopslab/image/consul"
	"github.com/aiopslab/aiopslab/image/coredns"
	"github.com/aiopslab/aiopslab/image/curl"
	"github.com/aiopslab/aiopslab/image/flagd"
	"github.com/aiopslab/aiopslab/image/jaeger"
	"github.com/aiopslab/aiopslab/image/kafka"
	"github.com/aiopslab/aiopslab/image/memcached"
	"github.com/aiopslab/aiopslab/image/metricsserver"
	"github.com/aiopslab/aiopslab/image/mongo"
	"github.com/aiopslab/aiopslab/image/otelcollector"
	"github.com/aiopslab/aiopslab/image/postgres"
	"github.com/aiopslab/aiopslab/image/rabbitmq"
	"github.com/aiopslab/aiopslab/image/redis"
	"github.com/aiopslab/aiopslab/image/tidb"
	"github.com/aiopslab/aiopslab/image/tidb/mysql"
	"github.com/aiopslab/aiopslab/image/tidboperator"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell"
	"github.com/aiopslab/aiopslab/test/labtest"
)

const (
	patience = labtest.Patience
	poll     = 200 * time.Millisecond
)

var (
	lab   labtest.Lab
	empty cloud.Snapshot // of the cloud: each test starts from it
)

func TestMain(m *testing.M) {
	tools := shell.Tools()
	lab.Main(m, labtest.Options{
		Images: slices.Concat(tidb.Images(tools), flower.Images(tools), flightticket.Images(tools), rabbitmq.Images(tools),
			sockshop.Images(tools, mongo.Image(tools), mysql.Image(tools)), []kit.Image{
				curl.Image(tools), coredns.Image(), metricsserver.Image(), jaeger.Image(), consul.Image(tools), mongo.Image(tools), memcached.Image(tools),
				redis.Image(tools), hotel.Image(tools), hotel.GeoImage(tools), social.Image(tools),
				astronomy.Image(tools), busybox.Image(shell.Tools()), flagd.Image(tools), flagd.UI(tools), kafka.Image(tools),
				otelcollector.Image(tools), postgres.Image(tools), redis.Valkey(tools),
				tidboperator.Image(), bank.Image(tools), trainticket.Image(tools),
			}),
		Prepare: func(ctx context.Context) (func(), error) {
			var err error
			empty, err = lab.Cloud.Snapshot(ctx)
			return nil, err
		},
	})
}
