package agnhost

import (
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/aiopslab/aiopslab/image/incluster"
	"github.com/aiopslab/aiopslab/kit"
)

// inClusterClient returns an HTTP client that reaches the API server as the pod's service account. It uses
// neither the process's proxy nor connections of other programs: a proxy function, even one that never
// proxies, keeps client-go from sharing a transport.
func inClusterClient(env *kit.Env) (*http.Client, error) {
	config, err := incluster.Config(env)
	if err != nil {
		return nil, err
	}
	config.Proxy = http.ProxyURL(nil)
	return rest.HTTPClientFor(config)
}

// closeIdle closes a client's idle connections, however its transport is wrapped.
func closeIdle(client *http.Client) { utilnet.CloseIdleConnectionsFor(client.Transport) }
