package kube

import (
	"context"
	"net"
	"strconv"
)

// ForwardedRate is how many requests a second Dial is good for. The API server of a cluster on two processors carried
// 1,105 a second of the smallest page at most, at which each waits 50 ms: docs/clusters.md has the figures. With this
// rate, four runs side by side get through.
const ForwardedRate = 250

// Dial implements cloud.Cloud. Addresses of nodes are dialled from this machine, all others through the API server.
func (c *Cloud) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	switch network {
	case "tcp", "tcp4", "tcp6":
	default:
		return nil, &net.OpError{Op: "dial", Net: network, Err: net.UnknownNetworkError(network)}
	}
	to := name(address)
	t, err := c.names.resolve(ctx, address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: to, Err: err}
	}
	if t.pod == "" {
		var d net.Dialer
		return d.DialContext(ctx, network, net.JoinHostPort(t.host, strconv.Itoa(t.port)))
	}
	conn, err := c.pool.dial(ctx, t, to)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: to, Err: err}
	}
	return conn, nil
}

// DialPod implements cloud.PodDialer: it connects to a port of a pod's loopback, through the API server.
func (c *Cloud) DialPod(ctx context.Context, namespace, pod string, port int) (net.Conn, error) {
	to := name(net.JoinHostPort(pod+"."+namespace, strconv.Itoa(port)))
	conn, err := c.pool.dial(ctx, target{namespace: namespace, pod: pod, port: port}, to)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: to, Err: err}
	}
	return conn, nil
}

// name is an address as it was dialled.
type name string

func (name) Network() string { return "tcp" }

func (n name) String() string { return string(n) }
