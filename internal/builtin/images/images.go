// Package images lists the built-in images, for programs that need nothing else of what is built in: what runs in a
// real container has no problems in it, nor their answers.
package images

import (
	"slices"

	"github.com/aiopslab/aiopslab/image/alpine"
	"github.com/aiopslab/aiopslab/image/busybox"
	"github.com/aiopslab/aiopslab/image/consul"
	"github.com/aiopslab/aiopslab/image/coredns"
	"github.com/aiopslab/aiopslab/image/curl"
	"github.com/aiopslab/aiopslab/image/flagd"
	"github.com/aiopslab/aiopslab/image/httpd"
	"github.com/aiopslab/aiopslab/image/httpecho"
	"github.com/aiopslab/aiopslab/image/jaeger"
	"github.com/aiopslab/aiopslab/image/kafka"
	"github.com/aiopslab/aiopslab/image/kubestatemetrics"
	"github.com/aiopslab/aiopslab/image/memcached"
	"github.com/aiopslab/aiopslab/image/metricsserver"
	"github.com/aiopslab/aiopslab/image/mongo"
	"github.com/aiopslab/aiopslab/image/netshoot"
	"github.com/aiopslab/aiopslab/image/nginx"
	"github.com/aiopslab/aiopslab/image/otelcollector"
	"github.com/aiopslab/aiopslab/image/pause"
	"github.com/aiopslab/aiopslab/image/postgres"
	"github.com/aiopslab/aiopslab/image/prometheus"
	"github.com/aiopslab/aiopslab/image/rabbitmq"
	"github.com/aiopslab/aiopslab/image/redis"
	"github.com/aiopslab/aiopslab/image/tidb"
	"github.com/aiopslab/aiopslab/image/tidb/mysql"
	"github.com/aiopslab/aiopslab/image/tidboperator"
	"github.com/aiopslab/aiopslab/internal/builtin/apps"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell"
	"github.com/aiopslab/aiopslab/workload/remote"
)

// All are what the containers of an environment can run.
func All() []kit.Image {
	tools := shell.Tools()
	list := []kit.Image{
		// What every cluster has.
		coredns.Image(),
		metricsserver.Image(),
		kubestatemetrics.Image(),
		prometheus.Image(tools),
		jaeger.Image(),
		pause.Image(),

		// What people run by hand.
		busybox.Image(tools),
		alpine.Image(tools),
		curl.Image(tools),
		netshoot.Image(shell.Workstation()),
		nginx.Image(tools),
		httpd.Image(tools),
		httpecho.Image(),

		// What sends load.
		remote.Image(),

		// What applications are made of.
		consul.Image(tools),
		mongo.Image(tools),
		memcached.Image(tools),
		redis.Image(tools),
		redis.Valkey(tools),
		postgres.Image(tools),
		mysql.Image(tools),
		kafka.Image(tools),
		otelcollector.Image(tools),
		flagd.Image(tools),
		flagd.UI(tools),
		tidboperator.Image(),
	}
	return slices.Concat(list, rabbitmq.Images(tools), tidb.Images(tools), apps.Images(tools))
}
