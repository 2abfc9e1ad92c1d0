package network

import (
	"context"
	"net"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// sockets are the container's sockets that the options select.
func sockets(c *tool.Call) (list []kit.Socket) {
	lister, ok := c.Env.Net.(kit.SocketLister)
	if !ok {
		return nil
	}
	tcp, udp := c.Opts.Has("t"), c.Opts.Has("u")
	for _, s := range lister.Sockets() {
		listening := s.State == "LISTEN" || s.Network == "udp" && s.Remote == nil
		switch {
		case (tcp || udp) && !(tcp && s.Network == "tcp" || udp && s.Network == "udp"):
		case c.Opts.Has("l") && !listening:
		case !c.Opts.Has("l") && !c.Opts.Has("a") && listening:
		default:
			list = append(list, s)
		}
	}
	return list
}

// endpoint writes an address; the wildcard as 0.0.0.0, and none as a star.
func endpoint(a net.Addr) string {
	if a == nil {
		return "0.0.0.0:*"
	}
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() && ip.To4() == nil {
		host = "::"
	}
	return host + ":" + port
}

var netstat = tool.Tool{
	Name:    "netstat",
	Options: "r,route a,all l,listening t,tcp u,udp w x e n,numeric W p,programs i s c 4 6 o v",
	Args:    "[-ral] [-tuwx] [-enWp]",
	Help: "Display networking information\n" +
		"\n" +
		"\t-r\tRouting table\n" +
		"\t-a\tAll sockets\n" +
		"\t-l\tListening sockets\n" +
		"\t\tElse: connected sockets\n" +
		"\t-t\tTCP sockets\n" +
		"\t-u\tUDP sockets\n" +
		"\t-n\tDon't resolve names\n" +
		"\t-p\tShow PID/program name for sockets",
	Run: func(_ context.Context, c *tool.Call) error {
		if c.Opts.Has("r") {
			printRoutes(c)
			return nil
		}
		if c.Opts.Has("i") {
			return showInterfaces(c, nil)
		}
		title := "w/o servers"
		switch {
		case c.Opts.Has("a"):
			title = "servers and established"
		case c.Opts.Has("l"):
			title = "only servers"
		}
		c.Out.Printf("Active Internet connections (%s)\n", title)
		c.Out.Printf("Proto Recv-Q Send-Q %-23s %-23s State       ", "Local Address", "Foreign Address")
		if c.Opts.Has("p") {
			c.Out.WriteString("PID/Program name    ")
		}
		c.Out.WriteByte('\n')
		for _, s := range sockets(c) {
			c.Out.Printf("%-5s %6d %6d %-23s %-23s %-11s ", s.Network, 0, 0, endpoint(s.Local), endpoint(s.Remote),
				s.State)
			if c.Opts.Has("p") {
				c.Out.WriteString("-")
			}
			c.Out.WriteByte('\n')
		}
		return nil
	},
}

var ss = tool.Tool{
	Name: "ss",
	Options: "a,all l,listening t,tcp u,udp n,numeric p,processes e,extended m,memory i,info " +
		"s,summary 4 6 x,unix H,no-header o,options r O,oneline",
	Args: "[-altunpH]", Help: "Show sockets",
	Run: func(_ context.Context, c *tool.Call) error {
		list := sockets(c)
		if c.Opts.Has("s") {
			c.Out.Printf("Total: %d\n", len(list))
			return nil
		}
		both := c.Opts.Has("t") == c.Opts.Has("u")
		netid := func(s string) {
			if both {
				c.Out.Printf("%-6s", s)
			}
		}
		if !c.Opts.Has("H") {
			netid("Netid")
			c.Out.Printf("%-10s %-6s %-6s %24s %24s Process\n",
				"State", "Recv-Q", "Send-Q", "Local Address:Port", "Peer Address:Port")
		}
		for _, s := range list {
			state, queue := s.State, "0"
			switch {
			case state == "LISTEN":
				queue = "4096"
			case state == "ESTABLISHED":
				state = "ESTAB"
			case s.Network == "udp":
				state = "UNCONN"
			}
			netid(s.Network)
			c.Out.Printf("%-10s %-6s %-6s %24s %24s \n", state, "0", queue, endpoint(s.Local), endpoint(s.Remote))
		}
		return nil
	},
}
