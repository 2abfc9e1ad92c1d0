package coredns

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// request is a question on its way through the plug-ins.
type request struct {
	name     string // lower case, possibly rewritten
	original string // as it was asked
	kind     uint16
	msg      *dns.Msg
	answered bool
	err      error // for the log
}

// add answers with a record.
func (r *request) add(rr dns.RR) {
	rr.Header().Name = r.original
	r.msg.Answer = append(r.msg.Answer, rr)
}

func (r *request) done(rcode int) bool {
	r.msg.Rcode, r.answered = rcode, true
	return true
}

// plugin handles a question; it reports whether no other should.
type plugin func(*request) bool

// order is in which the plug-ins of a block are asked, whatever their order in the file.
var order = []string{"rewrite", "template", "hosts", "kubernetes", "whoami", "forward"}

var errNoUpstream = errors.New("dial udp: connect: network is unreachable")

func (s *server) build(b block) (*site, error) {
	st := &site{block: b}
	for _, name := range order {
		for _, d := range b.directives {
			if d.name != name {
				continue
			}
			p, err := s.plugin(st, d)
			if err != nil {
				return nil, fmt.Errorf("%s:%d - Error during parsing: plugin/%s: %w", s.file, d.line, d.name, err)
			}
			st.plugins = append(st.plugins, p)
		}
	}
	st.logs = slices.ContainsFunc(b.directives, func(d directive) bool { return d.name == "log" })
	return st, nil
}

func (s *server) plugin(st *site, d directive) (plugin, error) {
	switch d.name {
	case "rewrite":
		return rewrite(d)
	case "template":
		return template(d)
	case "hosts":
		return s.hosts(d)
	case "kubernetes":
		c, err := s.newCluster(d)
		if err != nil {
			return nil, err
		}
		st.cluster = c
		return c.serve, nil
	case "forward":
		return func(r *request) bool {
			r.err = errNoUpstream
			return r.done(dns.RcodeServerFailure)
		}, nil
	}
	return func(r *request) bool { return r.done(dns.RcodeSuccess) }, nil // whoami
}

// rewrite changes the name that is looked up: rewrite [stop|continue] name [exact|suffix|prefix|substring|regex] FROM TO.
func rewrite(d directive) (plugin, error) {
	args := slices.Clone(d.args)
	if len(args) > 0 && (args[0] == "stop" || args[0] == "continue") {
		args = args[1:]
	}
	if len(args) < 3 || args[0] != "name" {
		return nil, errors.New("only the rewriting of names is supported")
	}
	how, args := "exact", args[1:]
	if len(args) > 2 && slices.Contains([]string{"exact", "suffix", "prefix", "substring", "regex"}, args[0]) {
		how, args = args[0], args[1:]
	}
	from, to := strings.ToLower(args[0]), strings.ToLower(args[1])
	if how == "regex" {
		re, err := regexp.Compile(args[0])
		if err != nil {
			return nil, err
		}
		return func(r *request) bool {
			r.name = dns.Fqdn(re.ReplaceAllString(r.name, regexp.MustCompile(`\{(\d+)\}`).ReplaceAllString(to, "$${$1}")))
			return false
		}, nil
	}
	return func(r *request) bool {
		switch how {
		case "exact":
			if r.name == dns.Fqdn(from) {
				r.name = dns.Fqdn(to)
			}
		case "suffix":
			if s, ok := strings.CutSuffix(r.name, dns.Fqdn(from)); ok {
				r.name = dns.Fqdn(s + to)
			}
		case "prefix":
			if s, ok := strings.CutPrefix(r.name, from); ok {
				r.name = to + s
			}
		case "substring":
			r.name = strings.ReplaceAll(r.name, from, to)
		}
		return false
	}, nil
}

// template answers by rule: template CLASS TYPE [ZONE...] { match RE; answer ...; rcode CODE; fallthrough }.
func template(d directive) (plugin, error) {
	if len(d.args) < 2 {
		return nil, errors.New("wrong argument count or unexpected line ending")
	}
	kind, zones := strings.ToUpper(d.args[1]), d.args[2:]
	var matches []*regexp.Regexp
	var answers []string
	rcode, pass := dns.RcodeSuccess, false
	for _, line := range d.body {
		switch line[0] {
		case "match":
			for _, m := range line[1:] {
				re, err := regexp.Compile(m)
				if err != nil {
					return nil, err
				}
				matches = append(matches, re)
			}
		case "answer":
			answers = append(answers, strings.Join(line[1:], " "))
		case "rcode":
			code, ok := dns.StringToRcode[strings.ToUpper(strings.Join(line[1:], ""))]
			if !ok {
				return nil, fmt.Errorf("unknown rcode %s", strings.Join(line[1:], " "))
			}
			rcode = code
		case "fallthrough":
			pass = true
		}
	}
	return func(r *request) bool {
		inZone := len(zones) == 0 || slices.ContainsFunc(zones, func(z string) bool { return dns.IsSubDomain(dns.Fqdn(strings.ToLower(z)), r.name) })
		inMatch := len(matches) == 0 || slices.ContainsFunc(matches, func(re *regexp.Regexp) bool { return re.MatchString(r.name) })
		if !inZone || kind != "ANY" && kind != dns.TypeToString[r.kind] {
			return false
		}
		if !inMatch {
			return !pass && len(matches) > 0 && r.done(dns.RcodeServerFailure)
		}
		for _, a := range answers {
			rr, err := dns.NewRR(strings.NewReplacer("{{ .Name }}", r.name, "{{.Name}}", r.name).Replace(a))
			if err != nil {
				r.err = err
				return r.done(dns.RcodeServerFailure)
			}
			r.add(rr)
		}
		return r.done(rcode)
	}, nil
}

// hosts answers from a list of addresses and names.
func (s *server) hosts(d directive) (plugin, error) {
	table := map[string][]netip.Addr{}
	pass, ttl := false, uint32(3600)
	lines := d.body
	if len(d.args) > 0 {
		b, err := s.env.ReadFile(d.args[0])
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > 0 {
				lines = append(lines, f)
			}
		}
	}
	for _, line := range lines {
		switch line[0] {
		case "fallthrough":
			pass = true
		case "ttl":
			if n, err := strconv.ParseUint(strings.Join(line[1:], ""), 10, 32); err == nil {
				ttl = uint32(n)
			}
		default:
			addr, err := netip.ParseAddr(line[0])
			if err != nil {
				continue
			}
			for _, name := range line[1:] {
				name = dns.Fqdn(strings.ToLower(name))
				table[name] = append(table[name], addr)
			}
		}
	}
	return func(r *request) bool {
		addrs, ok := table[r.name]
		if !ok {
			return !pass && len(table) > 0 && r.done(dns.RcodeNameError)
		}
		for _, a := range addrs {
			if r.kind == dns.TypeA && a.Is4() {
				r.add(&dns.A{Hdr: header(dns.TypeA, ttl), A: a.AsSlice()})
			}
		}
		return r.done(dns.RcodeSuccess)
	}, nil
}

func header(kind uint16, ttl uint32) dns.RR_Header {
	return dns.RR_Header{Rrtype: kind, Class: dns.ClassINET, Ttl: ttl}
}
