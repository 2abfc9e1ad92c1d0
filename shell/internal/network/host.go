package network

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/miekg/dns"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var host = tool.Tool{
	Name: "host", Options: "t: a v T 4 6 W: R: r C l w N:", Args: "[-t type] name [server]",
	Run: func(ctx context.Context, c *tool.Call) error {
		if len(c.Args) == 0 || len(c.Args) > 2 {
			return c.Usage()
		}
		cfg := readResolverConfig(c.Env)
		at := cfg.servers[0]
		if len(c.Args) == 2 {
			at = c.Args[1]
		}
		s, err := server(ctx, c.Env, at, "53")
		if err != nil {
			c.Out.Printf("host: couldn't get address for '%s': not found\n", at)
			return kit.Exit(1)
		}
		if len(c.Args) == 2 {
			ip, port, _ := net.SplitHostPort(s.addr)
			c.Out.Printf("Using domain server:\nName: %s\nAddress: %s#%s\nAliases: \n\n", at, ip, port)
		}
		name := c.Args[0]
		kinds := []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeMX}
		names := cfg.candidates(name)
		if reverse, ok := reverseName(name); ok {
			kinds, names, name = []uint16{dns.TypePTR}, []string{reverse}, reverse
		}
		if t := c.Opts.Get("t", ""); t != "" {
			kind, ok := dns.StringToType[strings.ToUpper(t)]
			if !ok {
				return c.Fail(2, "invalid type: %s", t)
			}
			kinds = []uint16{kind}
		}
		return hostLookup(ctx, c, s, cfg, name, names, kinds)
	},
}

func hostLookup(
	ctx context.Context, c *tool.Call, s dnsServer, cfg resolverConfig, name string, names []string, kinds []uint16,
) error {
	code := dns.RcodeNameError
	for _, candidate := range names {
		found := false
		for _, kind := range kinds {
			q := question{name: candidate, kind: kind, timeout: cfg.timeout, tries: cfg.attempts}
			reply, _, err := ask(ctx, c.Env, s, q, nil)
			if err != nil {
				tool.Stopped(ctx)
				c.Out.Line(";; connection timed out; no servers could be reached")
				return kit.Exit(1)
			}
			if code = reply.Rcode; code != dns.RcodeSuccess {
				break
			}
			found = true
			for _, rr := range reply.Answer {
				c.Out.Line(hostLine(rr))
			}
			if len(reply.Answer) == 0 && len(kinds) == 1 {
				c.Out.Printf("%s has no %s record\n", strings.TrimSuffix(candidate, "."), dns.TypeToString[kind])
			}
		}
		if found {
			return nil
		}
	}
	c.Out.Printf("Host %s not found: %d(%s)\n", strings.TrimSuffix(name, "."), code, dns.RcodeToString[code])
	return kit.Exit(1)
}

func hostLine(rr dns.RR) string {
	name := strings.TrimSuffix(rr.Header().Name, ".")
	switch r := rr.(type) {
	case *dns.A:
		return fmt.Sprintf("%s has address %s", name, r.A)
	case *dns.AAAA:
		return fmt.Sprintf("%s has IPv6 address %s", name, r.AAAA)
	case *dns.CNAME:
		return fmt.Sprintf("%s is an alias for %s", name, r.Target)
	case *dns.PTR:
		return fmt.Sprintf("%s domain name pointer %s", name, r.Ptr)
	case *dns.MX:
		return fmt.Sprintf("%s mail is handled by %d %s", name, r.Preference, r.Mx)
	case *dns.NS:
		return fmt.Sprintf("%s name server %s", name, r.Ns)
	case *dns.TXT:
		return fmt.Sprintf("%s descriptive text \"%s\"", name, strings.Join(r.Txt, ""))
	case *dns.SRV:
		return fmt.Sprintf("%s has SRV record %d %d %d %s", name, r.Priority, r.Weight, r.Port, r.Target)
	}
	return fmt.Sprintf("%s has %s record %s", name, dns.TypeToString[rr.Header().Rrtype], recordData(rr))
}

var getent = tool.Tool{
	Name: "getent", Raw: true, Args: "DATABASE [KEY]...",
	Help: "Get entries from an administrative database: hosts, ahosts, passwd, group",
	Run: func(ctx context.Context, c *tool.Call) error {
		if len(c.Args) == 0 {
			return c.Usage()
		}
		switch database, keys := c.Args[0], c.Args[1:]; database {
		case "hosts", "ahosts", "ahostsv4":
			for _, key := range keys {
				addrs, err := c.Env.Net.LookupHost(ctx, key)
				if err != nil || len(addrs) == 0 {
					return kit.Exit(2)
				}
				for _, a := range addrs {
					if database == "hosts" {
						c.Out.Printf("%-16s  %s\n", a, key)
					} else {
						c.Out.Printf("%-15s STREAM %s\n%-15s DGRAM  \n%-15s RAW    \n", a, key, a, a)
					}
				}
			}
		case "passwd", "group":
			data, err := c.Env.ReadFile("/etc/" + database)
			if err != nil {
				return kit.Exit(2)
			}
			found := len(keys) == 0
			for line := range strings.Lines(string(data)) {
				fields := strings.Split(strings.TrimSpace(line), ":")
				for _, key := range keys {
					if len(fields) > 2 && (fields[0] == key || fields[2] == key) {
						c.Out.WriteString(line)
						found = true
					}
				}
				if len(keys) == 0 {
					c.Out.WriteString(line)
				}
			}
			if !found {
				return kit.Exit(2)
			}
		default:
			c.Note("Unknown database: %s\n", database)
			return kit.Exit(1)
		}
		return nil
	},
}
