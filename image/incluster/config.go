// Package incluster lets a program in a pod talk to the API server of its cluster, as client-go's
// rest.InClusterConfig does, but through the program's own world.
package incluster

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/aiopslab/aiopslab/kit"
)

// dir is where a pod's service account is mounted.
const dir = "/var/run/secrets/kubernetes.io/serviceaccount"

// Config returns a configuration with the identity of the pod's service account. The token is read
// anew for each request, because the kubelet renews it.
func Config(env *kit.Env) (*rest.Config, error) {
	host, port := env.Getenv("KUBERNETES_SERVICE_HOST"), env.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, errors.New("unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and " +
			"KUBERNETES_SERVICE_PORT must be defined")
	}
	ca, err := env.ReadFile(dir + "/ca.crt")
	if err != nil {
		return nil, fmt.Errorf("read the cluster's certificate authority: %w", err)
	}
	if _, err := token(env); err != nil {
		return nil, fmt.Errorf("read the service account's token: %w", err)
	}
	cfg := &rest.Config{
		Host:            "https://" + net.JoinHostPort(host, port),
		TLSClientConfig: rest.TLSClientConfig{CAData: ca},
		Dial:            env.Net.DialContext,
		// The machine's proxies are not the pod's. Besides, client-go keeps all transports by their dialers unless it
		// cannot tell them apart, as those with a proxy: it would keep this program, and the node that it was on.
		Proxy:     func(*http.Request) (*url.URL, error) { return nil, nil },
		UserAgent: env.Args[0],
		// The line is a copy in memory.
		DisableCompression: true,
	}
	cfg.Wrap(transport.TokenSourceWrapTransport(tokenSource{env}))
	return cfg, nil
}

// Namespace returns the pod's namespace.
func Namespace(env *kit.Env) string {
	b, err := env.ReadFile(dir + "/namespace")
	if err != nil {
		return "default"
	}
	return strings.TrimSpace(string(b))
}

func token(env *kit.Env) (string, error) {
	b, err := env.ReadFile(dir + "/token")
	return strings.TrimSpace(string(b)), err
}
