// Package network has the tools that talk over the network, or look at it: curl, wget, nc, nslookup,
// dig, ping, netstat, ip and the like.
//
//	programs := network.Tools()
//	kit.Run(ctx, programs["curl"], env)
//
// Names are resolved and connections made by the program's own [kit.Network]; nslookup, dig and host
// speak DNS to the server that /etc/resolv.conf names.
package network

import "github.com/aiopslab/aiopslab/shell/internal/tool"

// Tools returns the tools of this package by name.
func Tools() tool.Set {
	return tool.NewSet(
		curl, wget, nc, nc.As("netcat"), telnet, nslookup, dig, host, getent, ping, traceroute,
		netstat, ss, ifconfig, ip, route, arp,
	)
}
