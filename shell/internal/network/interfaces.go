package network

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// nic is a network interface. A container has a loopback and one Ethernet interface, on a network of
// 256 addresses with the router at the first, as the common network plug-ins set it up.
type nic struct {
	index int
	name  string
	ip    net.IP
	mac   string
	loop  bool
}

func interfaces(env *kit.Env) []nic {
	list := []nic{{index: 1, name: "lo", ip: net.IPv4(127, 0, 0, 1), loop: true}}
	for i, ip := range env.Net.Addrs() {
		if v4 := ip.To4(); v4 != nil {
			mac := fmt.Sprintf("02:42:%02x:%02x:%02x:%02x", v4[0], v4[1], v4[2], v4[3])
			list = append(list, nic{index: i + 2, name: fmt.Sprintf("eth%d", i), ip: v4, mac: mac})
		}
	}
	return list
}

func (n nic) network() string {
	v4 := n.ip.To4()
	return fmt.Sprintf("%d.%d.%d.0", v4[0], v4[1], v4[2])
}

func (n nic) broadcast() string { return strings.TrimSuffix(n.network(), "0") + "255" }

func (n nic) gateway() string {
	v4 := n.ip.To4()
	return fmt.Sprintf("%d.%d.%d.1", v4[0], v4[1], v4[2])
}

var ifconfig = tool.Tool{
	Name: "ifconfig", Options: "a", Args: "[-a] [INTERFACE]", Help: "Configure a network interface",
	Run: func(_ context.Context, c *tool.Call) error { return showInterfaces(c, c.Args) },
}

func showInterfaces(c *tool.Call, names []string) error {
	list := interfaces(c.Env)
	if len(names) > 1 {
		return c.Fail(1, "SIOCSIFADDR: Operation not permitted")
	}
	found := false
	for i := len(list) - 1; i >= 0; i-- { // eth0 comes before lo.
		n := list[i]
		if len(names) == 1 && names[0] != n.name {
			continue
		}
		found = true
		if n.loop {
			c.Out.Printf("%-9s Link encap:Local Loopback  \n", n.name)
			c.Out.Printf("          inet addr:%s  Mask:255.0.0.0\n", n.ip)
			c.Out.WriteString("          UP LOOPBACK RUNNING  MTU:65536  Metric:1\n\n")
			continue
		}
		c.Out.Printf("%-9s Link encap:Ethernet  HWaddr %s  \n", n.name, strings.ToUpper(n.mac))
		c.Out.Printf("          inet addr:%s  Bcast:%s  Mask:255.255.255.0\n", n.ip, n.broadcast())
		c.Out.WriteString("          UP BROADCAST RUNNING MULTICAST  MTU:1450  Metric:1\n\n")
	}
	if !found {
		return c.Fail(1, "%s: error fetching interface information: Device not found", names[0])
	}
	return nil
}

var ip = tool.Tool{
	Name: "ip", Raw: true, Args: "[OPTIONS] address|route|link|neigh [ARGS]",
	Help: "Show addresses, routes and links",
	Run: func(_ context.Context, c *tool.Call) error {
		args, brief := c.Args, false
		for len(args) > 0 && strings.HasPrefix(args[0], "-") {
			brief = brief || strings.HasPrefix("-brief", args[0]) && len(args[0]) > 2
			args = args[1:]
		}
		if len(args) == 0 {
			return c.Usage()
		}
		object, rest := args[0], args[1:]
		for len(rest) > 0 && (strings.HasPrefix("show", rest[0]) || strings.HasPrefix("list", rest[0])) {
			rest = rest[1:]
		}
		if len(rest) > 0 && slices.Contains([]string{"add", "del", "set", "replace", "flush"}, rest[0]) {
			c.Note("ip: RTNETLINK answers: Operation not permitted\n")
			return kit.Exit(2)
		}
		device := ""
		if len(rest) > 0 {
			if device = rest[len(rest)-1]; device == "up" || device == "dev" {
				device = ""
			}
		}
		switch {
		case strings.HasPrefix("address", object):
			return showAddresses(c, device, brief, true)
		case strings.HasPrefix("link", object):
			return showAddresses(c, device, brief, false)
		case strings.HasPrefix("route", object):
			return showRoute(c, rest)
		case strings.HasPrefix("neighbour", object), object == "neighbor", object == "rule":
			return nil
		}
		c.Note("ip: Object \"%s\" is unknown, try \"ip help\".\n", object)
		return kit.Exit(1)
	},
}

func showAddresses(c *tool.Call, device string, brief, addresses bool) error {
	found := device == ""
	for _, n := range interfaces(c.Env) {
		if device != "" && device != n.name {
			continue
		}
		found = true
		flags, mtu, prefix := "BROADCAST,MULTICAST,UP,LOWER_UP", 1450, 24
		link, broadcast := "ether "+n.mac, "ff:ff:ff:ff:ff:ff"
		name, state, scope := n.name+"@if1", "UP", "global "+n.name
		if n.loop {
			flags, mtu, prefix = "LOOPBACK,UP,LOWER_UP", 65536, 8
			link, broadcast = "loopback 00:00:00:00:00:00", "00:00:00:00:00:00"
			name, state, scope = n.name, "UNKNOWN", "host lo"
		}
		if brief {
			c.Out.Printf("%-16s %-14s %s/%d \n", n.name, state, n.ip, prefix)
			continue
		}
		c.Out.Printf("%d: %s: <%s> mtu %d qdisc noqueue state %s qlen 1000\n", n.index, name, flags, mtu, state)
		c.Out.Printf("    link/%s brd %s\n", link, broadcast)
		if !addresses {
			continue
		}
		if n.loop {
			c.Out.Printf("    inet %s/%d scope %s\n", n.ip, prefix, scope)
		} else {
			c.Out.Printf("    inet %s/%d brd %s scope %s\n", n.ip, prefix, n.broadcast(), scope)
		}
		c.Out.Line("       valid_lft forever preferred_lft forever")
	}
	if !found {
		c.Note("ip: can't find device '%s'\n", device)
		return kit.Exit(1)
	}
	return nil
}

func showRoute(c *tool.Call, args []string) error {
	for _, n := range interfaces(c.Env) {
		if n.loop {
			continue
		}
		if len(args) > 1 && args[0] == "get" {
			c.Out.Printf("%s via %s dev %s src %s uid %d\n    cache\n", args[1], n.gateway(), n.name, n.ip,
				c.Env.User.UID)
			return nil
		}
		c.Out.Printf("default via %s dev %s \n", n.gateway(), n.name)
		c.Out.Printf("%s/24 dev %s scope link  src %s \n", n.network(), n.name, n.ip)
	}
	return nil
}

var route = tool.Tool{
	Name: "route", Options: "n e A:", Args: "[-n]", Help: "Show the routing table",
	Run: func(_ context.Context, c *tool.Call) error {
		if len(c.Args) > 0 {
			return c.Fail(1, "SIOCADDRT: Operation not permitted")
		}
		printRoutes(c)
		return nil
	},
}

func printRoutes(c *tool.Call) {
	c.Out.Line("Kernel IP routing table")
	c.Out.Line("Destination     Gateway         Genmask         Flags Metric Ref    Use Iface")
	row := func(destination, gateway, mask, flags, device string) {
		c.Out.Printf("%-15s %-15s %-15s %-5s %-6d %-2d %7d %s\n", destination, gateway, mask, flags, 0, 0, 0, device)
	}
	for _, n := range interfaces(c.Env) {
		if n.loop {
			continue
		}
		any := "default"
		if c.Opts.Has("n") {
			any = "0.0.0.0"
		}
		row(any, n.gateway(), "0.0.0.0", "UG", n.name)
		row(n.network(), "0.0.0.0", "255.255.255.0", "U", n.name)
	}
}

var arp = tool.Tool{
	Name: "arp", Options: "a n v", Args: "[-an]", Help: "Show the ARP cache",
	Run: func(context.Context, *tool.Call) error { return nil },
}
