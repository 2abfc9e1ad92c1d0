package network

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var nslookup = tool.Tool{
	Name: "nslookup", Raw: true, Args: "[-type=QUERY_TYPE] [-debug] HOST [DNS_SERVER]",
	Help: "Query DNS about HOST\n" +
		"\n" +
		"QUERY_TYPE: soa,ns,a,aaaa,cname,mx,txt,ptr,srv,any",
	Run: func(ctx context.Context, c *tool.Call) error {
		l := &lookup{c: c, cfg: readResolverConfig(c.Env), port: "53"}
		operands, err := l.options(c.Args)
		if err != nil {
			return c.Fail(1, "%v", err)
		}
		if len(operands) == 0 || len(operands) > 2 {
			return c.Usage()
		}
		servers := l.cfg.servers
		if len(operands) == 2 {
			servers = operands[1:]
		}
		for _, name := range servers {
			s, err := server(ctx, c.Env, name, l.port)
			if err != nil {
				return c.Fail(1, "%v", err)
			}
			done, err := l.ask(ctx, s, operands[0])
			if done || err != nil {
				return err
			}
		}
		tool.Stopped(ctx)
		c.Out.WriteString(";; connection timed out; no servers could be reached\n\n")
		return kit.Exit(1)
	},
}

// lookup is an nslookup under way.
type lookup struct {
	c     *tool.Call
	cfg   resolverConfig
	types []uint16
	port  string
}

func (l *lookup) options(args []string) (operands []string, err error) {
	for _, a := range args {
		name, value, _ := strings.Cut(strings.TrimPrefix(a, "-"), "=")
		if !strings.HasPrefix(a, "-") || a == "-" {
			operands = append(operands, a)
			continue
		}
		switch {
		case strings.HasPrefix("type", name) && name != "t", strings.HasPrefix("querytype", name):
			kind, ok := dns.StringToType[strings.ToUpper(value)]
			if !ok {
				return nil, fmt.Errorf("invalid query type \"%s\"", value)
			}
			l.types = append(l.types, kind)
		case name == "port":
			l.port = value
		case name == "timeout" || name == "t":
			d, err := tool.ParseDuration(value)
			if err != nil {
				return nil, err
			}
			l.cfg.timeout = d
		case name == "retry":
			fmt.Sscan(value, &l.cfg.attempts)
		case name == "debug" || name == "search" || name == "nosearch" || name == "vc":
		default:
			return nil, fmt.Errorf("unrecognized option: %s", name)
		}
	}
	return operands, nil
}

// ask asks one server. It reports whether that answered at all.
func (l *lookup) ask(ctx context.Context, s dnsServer, name string) (answered bool, err error) {
	types := l.types
	names := l.cfg.candidates(name)
	if len(types) == 0 {
		types = []uint16{dns.TypeA, dns.TypeAAAA}
		if reverse, ok := reverseName(name); ok {
			types, names = []uint16{dns.TypePTR}, []string{reverse}
		}
	}
	headed := false
	for i, candidate := range names {
		var replies []*dns.Msg
		for _, kind := range types {
			timeout := l.cfg.timeout / time.Duration(l.cfg.attempts)
			q := question{name: candidate, kind: kind, timeout: timeout, tries: l.cfg.attempts}
			reply, _, err := ask(ctx, l.c.Env, s, q, nil)
			if err != nil {
				tool.Stopped(ctx)
				if !errors.Is(err, errNoAnswer) {
					l.c.Warn("write to '%s': %s", s.name, tool.Reason(err))
				}
				return headed, nil
			}
			replies = append(replies, reply)
		}
		if !headed {
			l.c.Out.Printf("Server:\t\t%s\nAddress:\t%s\n\n", s.name, s.addr)
			headed = true
		}
		// The search goes on until a name exists.
		if last := i == len(names)-1; !last && !exists(replies) {
			continue
		}
		return true, l.print(name, replies)
	}
	return headed, nil
}

// exists reports whether one of the answers knows the name.
func exists(replies []*dns.Msg) bool {
	for _, r := range replies {
		if r.Rcode == dns.RcodeSuccess {
			return true
		}
	}
	return false
}

func (l *lookup) print(name string, replies []*dns.Msg) error {
	failed := true
	for _, r := range replies {
		if r.Rcode != dns.RcodeSuccess {
			l.c.Out.Printf("** server can't find %s: %s\n\n", name, dns.RcodeToString[r.Rcode])
			continue
		}
		failed = false
		if !r.Authoritative {
			l.c.Out.Line("Non-authoritative answer:")
		}
		for _, rr := range r.Answer {
			l.record(rr)
		}
		if len(r.Answer) == 0 && len(replies) == 1 {
			l.c.Out.Printf("*** Can't find %s: No answer\n", name)
		}
		l.c.Out.WriteByte('\n')
	}
	if failed {
		return kit.Exit(1)
	}
	return nil
}

func (l *lookup) record(rr dns.RR) {
	name := strings.TrimSuffix(rr.Header().Name, ".")
	plain := func(s string) string { return strings.TrimSuffix(s, ".") }
	out := l.c.Out
	switch r := rr.(type) {
	case *dns.A:
		out.Printf("Name:\t%s\nAddress: %s\n", name, r.A)
	case *dns.AAAA:
		out.Printf("Name:\t%s\nAddress: %s\n", name, r.AAAA)
	case *dns.CNAME:
		out.Printf("%s\tcanonical name = %s\n", name, plain(r.Target))
	case *dns.NS:
		out.Printf("%s\tnameserver = %s\n", name, plain(r.Ns))
	case *dns.PTR:
		out.Printf("%s\tname = %s\n", name, plain(r.Ptr))
	case *dns.MX:
		out.Printf("%s\tmail exchanger = %d %s\n", name, r.Preference, plain(r.Mx))
	case *dns.TXT:
		out.Printf("%s\ttext = \"%s\"\n", name, strings.Join(r.Txt, ""))
	case *dns.SRV:
		out.Printf("%s\tservice = %d %d %d %s\n", name, r.Priority, r.Weight, r.Port, plain(r.Target))
	case *dns.SOA:
		out.Printf("%s\n\torigin = %s\n\tmail addr = %s\n\tserial = %d\n"+
			"\trefresh = %d\n\tretry = %d\n\texpire = %d\n\tminimum = %d\n", name, plain(r.Ns), plain(r.Mbox), r.Serial,
			r.Refresh, r.Retry, r.Expire, r.Minttl)
	}
}
