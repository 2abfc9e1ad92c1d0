package embedded

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/aiopslab/aiopslab/cloud/embedded/cri"
	"github.com/aiopslab/aiopslab/cloud/embedded/vfs"
	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
	"github.com/aiopslab/aiopslab/kit"
)

// openNetwork makes the cluster's network, and opens the API's port on the host if it has one there.
func (c *Cloud) openNetwork() error {
	var err error
	if !c.opts.Inward {
		if c.listen, err = net.Listen("tcp", c.opts.Listen); err != nil {
			return fmt.Errorf("listen for the Kubernetes API: %w", err)
		}
	}
	c.network = vnet.New(vnet.Config{
		Subnets: []netip.Prefix{nodeSubnet, podSubnet},
		Virtual: []netip.Prefix{serviceSubnet},
	})
	c.network.SetRouter(noServices{})
	if c.server, err = c.network.AddHost(serverAddr); err != nil {
		return err
	}
	c.stack = c.server.NewStack()
	files := vfs.NewTree(vfs.Options{})
	env := &kit.Env{FS: files.Root(), Dir: "/"}
	if err := env.MkdirAll("/etc", 0o755); err != nil {
		return err
	}
	conf := fmt.Sprintf("nameserver %s\nsearch svc.%s %s\noptions ndots:5\n", dnsService, clusterDomain, clusterDomain)
	if err := env.WriteFile("/etc/resolv.conf", []byte(conf), 0o644); err != nil {
		return err
	}
	c.names = cri.NewNetwork(c.stack, files.Root())
	return nil
}

// noServices routes until there is a kube-proxy. An API server that starts from a snapshot asks at
// once for the APIs that pods serve, and is not ready before it knows that they do not answer.
type noServices struct{}

func (noServices) Route(_ netip.Addr, _ string, dst netip.AddrPort) (netip.AddrPort, error) {
	if serviceSubnet.Contains(dst.Addr()) {
		return dst, vnet.ErrReject
	}
	return dst, nil
}
