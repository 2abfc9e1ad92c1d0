package agnhost

import (
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/aiopslab/aiopslab/image/incluster"
	"github.com/aiopslab/aiopslab/kit"
)

// inClusterConfig returns how to reach the API server as the pod's service account. Neither the
// process's proxy nor connections of other programs are used: a proxy function, even one that never
// proxies, keeps client-go from sharing a transport.
func inClusterConfig(env *kit.Env) (*rest.Config, error) {
	config, err := incluster.Config(env)
	if err != nil {
		return nil, err
	}
	config.Proxy = http.ProxyURL(nil)
	return config, nil
}

// inClusterClient returns an HTTP client that trusts the cluster and authenticates to it, and the
// URL of its API server.
func inClusterClient(env *kit.Env) (client *http.Client, url string, err error) {
	config, err := inClusterConfig(env)
	if err != nil {
		return nil, "", err
	}
	client, err = rest.HTTPClientFor(config)
	return client, config.Host, err
}

// closeIdle closes a client's idle connections, however its transport is wrapped.
func closeIdle(client *http.Client) { utilnet.CloseIdleConnectionsFor(client.Transport) }
