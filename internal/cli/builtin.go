package cli

import (
	"github.com/aiopslab/aiopslab/app/agnhost"
	"github.com/aiopslab/aiopslab/app/alpine"
	"github.com/aiopslab/aiopslab/app/busybox"
	"github.com/aiopslab/aiopslab/app/consul"
	"github.com/aiopslab/aiopslab/app/coredns"
	"github.com/aiopslab/aiopslab/app/curl"
	"github.com/aiopslab/aiopslab/app/dnsutils"
	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/app/httpd"
	"github.com/aiopslab/aiopslab/app/httpecho"
	"github.com/aiopslab/aiopslab/app/jaeger"
	"github.com/aiopslab/aiopslab/app/kit"
	"github.com/aiopslab/aiopslab/app/kubestatemetrics"
	"github.com/aiopslab/aiopslab/app/metricsserver"
	"github.com/aiopslab/aiopslab/app/netshoot"
	"github.com/aiopslab/aiopslab/app/nginx"
	"github.com/aiopslab/aiopslab/app/nonewprivs"
	"github.com/aiopslab/aiopslab/app/nonroot"
	"github.com/aiopslab/aiopslab/app/pause"
	"github.com/aiopslab/aiopslab/app/prometheus"
	"github.com/aiopslab/aiopslab/app/resourceconsumer"
	"github.com/aiopslab/aiopslab/app/shell"
	"github.com/aiopslab/aiopslab/app/social"
	"github.com/aiopslab/aiopslab/app/store/memcached"
	"github.com/aiopslab/aiopslab/app/store/mongo"
	"github.com/aiopslab/aiopslab/app/store/redis"
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
