package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// digVersion is what dig says it is.
const digVersion = "9.18.30"

var dig = tool.Tool{
	Name: "dig", Raw: true, Args: "[@server] [-x addr] [-t type] [name] [type] [+option...]",
	Run: func(ctx context.Context, c *tool.Call) error {
		d := &digger{
			c: c, cfg: readResolverConfig(c.Env), port: "53",
			show: map[string]bool{"edns": true, "recurse": true},
		}
		d.showAll(true)
		d.tries, d.timeout = 3, 5*time.Second
		if err := d.options(c.Args); err != nil {
			c.Note("%v\n", err)
			return kit.Exit(1)
		}
		return d.run(ctx)
	},
}

// digError is an error in dig's own words.
type digError string

func (e digError) Error() string { return string(e) }

// digger is a dig under way.
type digger struct {
	c       *tool.Call
	cfg     resolverConfig
	server  string
	port    string
	names   []digQuestion
	show    map[string]bool
	short   bool
	tcp     bool
	search  bool
	tries   int
	timeout time.Duration
}

type digQuestion struct {
	name string
	kind uint16
}

func (d *digger) options(args []string) error {
	var kind uint16
	add := func(name string) { d.names = append(d.names, digQuestion{name, kind}) }
	for i := 0; i < len(args); i++ {
		arg := args[i]
		next := func() (string, error) {
			if i++; i >= len(args) {
				return "", fmt.Errorf("dig: option requires an argument: %s", arg)
			}
			return args[i], nil
		}
		switch {
		case strings.HasPrefix(arg, "@"):
			d.server = arg[1:]
		case strings.HasPrefix(arg, "+"):
			if err := d.plus(arg[1:]); err != nil {
				return err
			}
		case arg == "-x":
			addr, err := next()
			if err != nil {
				return err
			}
			reverse, ok := reverseName(addr)
			if !ok {
				return fmt.Errorf("dig: Invalid IP address %s", addr)
			}
			d.names = append(d.names, digQuestion{reverse, dns.TypePTR})
		case arg == "-t" || arg == "-q" || arg == "-p" || arg == "-c" || arg == "-b" || arg == "-f":
			value, err := next()
			if err != nil {
				return err
			}
			switch arg {
			case "-t":
				k, ok := dns.StringToType[strings.ToUpper(value)]
				if !ok {
					return fmt.Errorf(";; Warning, ignoring invalid type %s", value)
				}
				d.setType(&kind, k)
			case "-q":
				add(value)
			case "-p":
				d.port = value
			}
		case arg == "-4" || arg == "-6" || arg == "-u" || arg == "-r":
		case strings.HasPrefix(arg, "-") && len(arg) > 1:
			return digError("Invalid option: " + arg +
				"\nUsage:  dig [@global-server] [domain] [q-type] [q-class] {q-opt}")
		default:
			if k, ok := dns.StringToType[strings.ToUpper(arg)]; ok {
				d.setType(&kind, k)
				continue
			}
			if _, ok := dns.StringToClass[strings.ToUpper(arg)]; ok {
				continue
			}
			add(arg)
		}
	}
	if len(d.names) == 0 {
		d.names = []digQuestion{{".", dns.TypeNS}}
	}
	return nil
}

// setType applies to the last name if that has none yet, and to the ones after it.
func (d *digger) setType(kind *uint16, k uint16) {
	if n := len(d.names); n > 0 && d.names[n-1].kind == 0 {
		d.names[n-1].kind = k
	}
	*kind = k
}

// showAll turns all parts of the output on or off.
func (d *digger) showAll(on bool) {
	for _, part := range []string{"comments", "question", "answer", "authority", "additional", "stats", "cmd"} {
		d.show[part] = on
	}
}

func (d *digger) plus(option string) error {
	name, value, _ := strings.Cut(option, "=")
	on := true
	if strings.HasPrefix(name, "no") {
		name, on = name[2:], false
	}
	switch name {
	case "all":
		d.showAll(on)
	case "short":
		d.short = on
	case "tcp", "vc":
		d.tcp = on
	case "search":
		d.search = on
	case "rec", "recurse":
		d.show["recurse"] = on
	case "time", "timeout", "tries", "retry":
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			return fmt.Errorf("invalid number '%s'", value)
		}
		switch name {
		case "tries":
			d.tries = max(n, 1)
		case "retry":
			d.tries = n + 1
		default:
			d.timeout = time.Duration(max(n, 1)) * time.Second
		}
	case "cmd", "comments", "question", "answer", "authority", "additional", "stats", "edns":
		d.show[name] = on
	case "multiline", "trace", "dnssec", "do", "nssearch", "identify", "ttlid", "class", "cookie", "cdflag",
		"adflag", "ndots", "domain", "bufsize", "qr", "ignore", "defname", "ttlunits", "crypto":
	default:
		return digError("Invalid option: +" + option)
	}
	return nil
}

func (d *digger) run(ctx context.Context) error {
	name := d.server
	if name == "" {
		name = d.cfg.servers[0]
	}
	s, err := server(ctx, d.c.Env, name, d.port)
	if err != nil {
		d.c.Note("dig: couldn't get address for '%s': not found\n", name)
		return kit.Exit(10)
	}
	for _, q := range d.names {
		if q.kind == 0 {
			q.kind = dns.TypeA
		}
		if err := d.query(ctx, s, q); err != nil {
			return err
		}
	}
	return nil
}

func (d *digger) query(ctx context.Context, s dnsServer, q digQuestion) error {
	names := []string{dns.Fqdn(q.name)}
	if d.search {
		names = d.cfg.candidates(q.name)
	}
	if d.show["cmd"] && !d.short {
		d.c.Out.Printf("\n; <<>> DiG %s <<>> %s\n;; global options: +cmd\n", digVersion, strings.Join(d.c.Args, " "))
	}
	hostPort := func() string {
		host, port, _ := net.SplitHostPort(s.addr)
		return host + "#" + port
	}
	var reply *dns.Msg
	var took time.Duration
	for _, name := range names {
		var err error
		reply, took, err = ask(ctx, d.c.Env, s, question{
			name: name, kind: q.kind, tcp: d.tcp, norec: !d.show["recurse"], edns: d.show["edns"],
			timeout: d.timeout, tries: d.tries,
		}, func(err error) {
			text := "timed out"
			if !errors.Is(err, errNoAnswer) {
				text = strings.ToLower(tool.Reason(err))
			}
			d.c.Out.Printf(";; communications error to %s: %s\n", hostPort(), text)
			d.c.Out.Flush()
		})
		if err != nil {
			tool.Stopped(ctx)
			if d.show["cmd"] {
				d.c.Out.WriteByte('\n')
			}
			d.c.Out.Line(";; no servers could be reached")
			return kit.Exit(9)
		}
		if reply.Rcode != dns.RcodeNameError {
			break
		}
	}
	if d.short {
		for _, rr := range reply.Answer {
			d.c.Out.Line(recordData(rr))
		}
		return nil
	}
	d.print(reply, took, s, hostPort())
	return nil
}

func (d *digger) print(m *dns.Msg, took time.Duration, s dnsServer, hostPort string) {
	out := d.c.Out
	opt := m.IsEdns0()
	if d.show["comments"] {
		out.Line(";; Got answer:")
		out.Printf(";; ->>HEADER<<- opcode: %s, status: %s, id: %d\n",
			dns.OpcodeToString[m.Opcode], dns.RcodeToString[m.Rcode], m.Id)
		flags := ""
		for _, f := range []struct {
			on   bool
			name string
		}{
			{m.Response, "qr"},
			{m.Authoritative, "aa"},
			{m.Truncated, "tc"},
			{m.RecursionDesired, "rd"},
			{m.RecursionAvailable, "ra"},
			{m.AuthenticatedData, "ad"},
		} {
			if f.on {
				flags += " " + f.name
			}
		}
		out.Printf(";; flags:%s; QUERY: %d, ANSWER: %d, AUTHORITY: %d, ADDITIONAL: %d\n",
			flags, len(m.Question), len(m.Answer), len(m.Ns), len(m.Extra))
		if m.RecursionDesired && !m.RecursionAvailable {
			out.Line(";; WARNING: recursion requested but not available")
		}
		out.WriteByte('\n')
		if opt != nil {
			out.Printf(";; OPT PSEUDOSECTION:\n; EDNS: version: %d, flags:; udp: %d\n", opt.Version(), opt.UDPSize())
		}
	}
	if d.show["question"] {
		if d.show["comments"] {
			out.Line(";; QUESTION SECTION:")
		}
		for _, q := range m.Question {
			out.Printf(";%s\t\t%s\t%s\n", q.Name, dns.ClassToString[q.Qclass], dns.TypeToString[q.Qtype])
		}
		out.WriteByte('\n')
	}
	d.section("answer", "ANSWER", m.Answer)
	d.section("authority", "AUTHORITY", m.Ns)
	var extra []dns.RR
	for _, rr := range m.Extra {
		if rr.Header().Rrtype != dns.TypeOPT {
			extra = append(extra, rr)
		}
	}
	d.section("additional", "ADDITIONAL", extra)
	if d.show["stats"] {
		protocol := "UDP"
		if d.tcp {
			protocol = "TCP"
		}
		out.Printf(";; Query time: %d msec\n;; SERVER: %s(%s) (%s)\n;; WHEN: %s\n;; MSG SIZE  rcvd: %d\n\n",
			took.Milliseconds(), hostPort, s.name, protocol,
			time.Now().In(tool.Location(d.c.Env)).Format("Mon Jan 02 15:04:05 MST 2006"), m.Len())
	}
}

func (d *digger) section(name, title string, records []dns.RR) {
	if !d.show[name] || len(records) == 0 {
		return
	}
	if d.show["comments"] {
		d.c.Out.Printf(";; %s SECTION:\n", title)
	}
	for _, rr := range records {
		h := rr.Header()
		d.c.Out.Printf("%s\t%d\t%s\t%s\t%s\n",
			h.Name, h.Ttl, dns.ClassToString[h.Class], dns.TypeToString[h.Rrtype], recordData(rr))
	}
	if d.show["comments"] {
		d.c.Out.WriteByte('\n')
	}
}
