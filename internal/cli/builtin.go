package cli

import (
	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/app/social"
	"github.com/aiopslab/aiopslab/image/alpine"
	"github.com/aiopslab/aiopslab/image/busybox"
	"github.com/aiopslab/aiopslab/image/consul"
	"github.com/aiopslab/aiopslab/image/coredns"
	"github.com/aiopslab/aiopslab/image/curl"
	"github.com/aiopslab/aiopslab/image/e2e/agnhost"
	"github.com/aiopslab/aiopslab/image/e2e/dnsutils"
	"github.com/aiopslab/aiopslab/image/e2e/nonewprivs"
	"github.com/aiopslab/aiopslab/image/e2e/nonroot"
	"github.com/aiopslab/aiopslab/image/e2e/resourceconsumer"
	"github.com/aiopslab/aiopslab/image/httpd"
	"github.com/aiopslab/aiopslab/image/httpecho"
	"github.com/aiopslab/aiopslab/image/jaeger"
	"github.com/aiopslab/aiopslab/image/kubestatemetrics"
	"github.com/aiopslab/aiopslab/image/memcached"
	"github.com/aiopslab/aiopslab/image/metricsserver"
	"github.com/aiopslab/aiopslab/image/mongo"
	"github.com/aiopslab/aiopslab/image/netshoot"
	"github.com/aiopslab/aiopslab/image/nginx"
	"github.com/aiopslab/aiopslab/image/pause"
	"github.com/aiopslab/aiopslab/image/prometheus"
	"github.com/aiopslab/aiopslab/image/redis"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell"
)

// builtinImages are the images an environment can run.
func builtinImages() *kit.Registry {
	tools := shell.Tools()
	return kit.NewRegistry(
		coredns.Image(),
		metricsserver.Image(),
		kubestatemetrics.Image(),
		prometheus.Image(tools),
		jaeger.Image(),
		pause.Image(),
		busybox.Image(tools),
		alpine.Image(tools),
		curl.Image(tools),
		netshoot.Image(shell.Workstation()),
		nginx.Image(tools),
		httpd.Image(tools),
		httpecho.Image(),
		agnhost.Image(tools),
		agnhost.Nautilus(tools),
		agnhost.Kitten(tools),
		nonewprivs.Image(tools),
		nonroot.Image(tools),
		dnsutils.Image(tools),
		resourceconsumer.Image(tools),
		consul.Image(tools),
		mongo.Image(tools),
		memcached.Image(tools),
		redis.Image(tools),
		hotel.Image(tools),
		hotel.GeoImage(tools),
		social.Image(tools),
	)
}

// builtinCommands are what the nodes of an environment have of their own.
func builtinCommands() map[string]kit.Program { return shell.Node() }
