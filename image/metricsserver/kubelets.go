package metricsserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// kubelets reads the figures of nodes.
type kubelets struct{ client *http.Client }

func newKubelets(config *rest.Config) (*kubelets, error) {
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return &kubelets{c}, nil
}

// summary asks a node.
func (k *kubelets) summary(ctx context.Context, node *v1.Node) (*statsapi.Summary, error) {
	var host string
	for _, a := range node.Status.Addresses {
		if a.Type == v1.NodeInternalIP {
			host = a.Address
		}
	}
	url := "https://" + net.JoinHostPort(host, strconv.Itoa(int(node.Status.DaemonEndpoints.KubeletEndpoint.Port))) +
		"/stats/summary"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := k.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("request failed, status: %q", res.Status)
	}
	s := &statsapi.Summary{}
	return s, json.NewDecoder(res.Body).Decode(s)
}
