package coredns

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/miekg/dns"
)

// request is a question on its way through the plug-ins.
type request struct {
	name     string // lower case, possibly rewritten
	original string // as it was asked
	kind     uint16
	msg      *dns.Msg
	fixed    bool  // no more rewriting
	err      error // for the log
	// resolve answers for another name, to complete an alias.
	resolve func(name string) []dns.RR
}

// add answers with a record.
func (r *request) add(rr dns.RR) {
	rr.Header().Name = r.original
	r.msg.Answer = append(r.msg.Answer, rr)
}

func (r *request) done(rcode int) bool {
	r.msg.Rcode = rcode
	return true
}

// plugin handles a question; it reports whether no other should.
type plugin func(*request) bool

// order is in which the plug-ins of a block are asked, whatever their order in the file.
var order = []string{"rewrite", "template", "hosts", "kubernetes", "whoami", "forward"}

var (
	errNoUpstream = errors.New("dial udp: connect: network is unreachable")
	errNoPlugin   = errors.New("no next plugin found")
)

// build makes the plug-ins of a block.
func (s *server) build(b block) (*site, error) {
	st := &site{block: b}
	for _, name := range order {
		for _, d := range b.directives {
			if d.name != name {
				continue
			}
			p, err := s.plugin(st, d)
			if err != nil {
				st.stop()
				return nil, fmt.Errorf("%s:%d - Error during parsing: plugin/%s: %w", s.file, d.line, d.name, err)
			}
			st.plugins = append(st.plugins, p)
		}
	}
	st.logs, st.errors = b.has("log"), b.has("errors")
	return st, nil
}

func (s *server) plugin(st *site, d directive) (plugin, error) {
	switch d.name {
	case "rewrite":
		return rewrite(d)
	case "template":
		return templates(d)
	case "hosts":
		return s.hosts(d)
	case "kubernetes":
		c, err := s.newCluster(d, st.zones)
		if err != nil {
			return nil, err
		}
		st.clusters = append(st.clusters, c)
		return c.serve, nil
	case "forward":
		return func(r *request) bool {
			r.err = errNoUpstream
			return r.done(dns.RcodeServerFailure)
		}, nil
	}
	return func(r *request) bool { return r.done(dns.RcodeSuccess) }, nil // whoami
}

// group is how CoreDNS refers to what a regular expression captured.
var group = regexp.MustCompile(`\{(\d+)\}`)

// rewrite changes the name that is looked up: rewrite [stop|continue] name
// [exact|suffix|prefix|substring|regex] FROM TO. The first rule that matches is the last, unless it
// says continue.
func rewrite(d directive) (plugin, error) {
	args, last := d.args, true
	if len(args) > 0 && (args[0] == "stop" || args[0] == "continue") {
		args, last = args[1:], args[0] == "stop"
	}
	if len(args) < 3 || args[0] != "name" {
		return nil, errors.New("only the rewriting of names is supported")
	}
	how, args := "exact", args[1:]
	if len(args) > 2 {
		how, args = args[0], args[1:]
	}
	change, err := renaming(how, args[0], strings.ToLower(args[1]))
	if err != nil {
		return nil, err
	}
	return func(r *request) bool {
		if r.fixed {
			return false
		}
		if name := dns.Fqdn(change(r.name)); name != r.name {
			r.name, r.fixed = name, last
		}
		return false
	}, nil
}

// renaming returns a function that changes the names a rule applies to.
func renaming(how, from, to string) (func(string) string, error) {
	lower := strings.ToLower(from)
	switch how {
	case "exact":
		return func(name string) string {
			if name == dns.Fqdn(lower) {
				return to
			}
			return name
		}, nil
	case "suffix":
		return func(name string) string {
			if rest, ok := strings.CutSuffix(name, dns.Fqdn(lower)); ok {
				return rest + to
			}
			return name
		}, nil
	case "prefix":
		return func(name string) string {
			if rest, ok := strings.CutPrefix(name, lower); ok {
				return to + rest
			}
			return name
		}, nil
	case "substring":
		return func(name string) string { return strings.ReplaceAll(name, lower, to) }, nil
	case "regex":
		re, err := regexp.Compile(from)
		if err != nil {
			return nil, err
		}
		to = group.ReplaceAllString(to, "$${$1}")
		return func(name string) string { return re.ReplaceAllString(name, to) }, nil
	}
	return nil, fmt.Errorf("unknown match type '%s' of a name rule", how)
}

// rule is the configuration of a template.
type rule struct {
	kind    string
	zones   []string
	matches []*regexp.Regexp
	answers []*template.Template
	rcode   int
	pass    bool
}

// templates answers by rule: template CLASS TYPE [ZONE...] { match RE; answer ...; rcode CODE;
// fallthrough }.
func templates(d directive) (plugin, error) {
	if len(d.args) < 2 {
		return nil, errors.New("wrong argument count or unexpected line ending")
	}
	rule := rule{kind: strings.ToUpper(d.args[1])}
	for _, z := range d.args[2:] {
		rule.zones = append(rule.zones, dns.Fqdn(strings.ToLower(z)))
	}
	for _, line := range d.body {
		rest := strings.Join(line[1:], " ")
		switch line[0] {
		case "match":
			for _, m := range line[1:] {
				re, err := regexp.Compile(m)
				if err != nil {
					return nil, err
				}
				rule.matches = append(rule.matches, re)
			}
		case "answer":
			t, err := template.New("answer").Parse(rest)
			if err != nil {
				return nil, err
			}
			rule.answers = append(rule.answers, t)
		case "rcode":
			code, ok := dns.StringToRcode[strings.ToUpper(rest)]
			if !ok {
				return nil, fmt.Errorf("unknown rcode %s", rest)
			}
			rule.rcode = code
		case "fallthrough":
			rule.pass = true
		default:
			return nil, fmt.Errorf("unknown property '%s'", line[0])
		}
	}
	if len(rule.matches) == 0 {
		rule.matches = []*regexp.Regexp{regexp.MustCompile("")}
	}
	return rule.serve, nil
}

func (t *rule) serve(r *request) bool {
	inZone := len(t.zones) == 0 || slices.ContainsFunc(t.zones, func(z string) bool {
		return dns.IsSubDomain(z, r.name)
	})
	if !inZone || t.kind != "ANY" && t.kind != dns.TypeToString[r.kind] {
		return false
	}
	for _, re := range t.matches {
		match := re.FindStringSubmatch(r.name)
		if match == nil {
			continue
		}
		groups := map[string]string{}
		for i, name := range re.SubexpNames() {
			groups[strconv.Itoa(i)], groups[name] = match[i], match[i]
		}
		if err := t.answer(r, match, groups); err != nil {
			r.err = err
			return r.done(dns.RcodeServerFailure)
		}
		return r.done(t.rcode)
	}
	return !t.pass && r.done(dns.RcodeServerFailure)
}

// answer adds the records of a rule that applies.
func (t *rule) answer(r *request, match []string, groups map[string]string) error {
	data := map[string]any{
		"Name": r.name, "Type": dns.TypeToString[r.kind], "Class": "IN", "Match": match, "Group": groups,
	}
	r.msg.Authoritative = true
	for _, a := range t.answers {
		var text strings.Builder
		if err := a.Execute(&text, data); err != nil {
			return err
		}
		rr, err := dns.NewRR(text.String())
		if err != nil {
			return err
		}
		r.add(rr)
	}
	return nil
}

// hosts answers from a list of addresses and names: hosts [FILE [ZONE...]] { ADDRESS NAME...; ttl
// SECONDS; fallthrough }.
func (s *server) hosts(d directive) (plugin, error) {
	table := map[string][]netip.Addr{}
	names := map[string][]string{} // by the name of the reverse look-up
	pass, ttl := false, uint32(3600)
	file, zones := "/etc/hosts", []string(nil)
	if len(d.args) > 0 {
		file, zones = d.args[0], d.args[1:]
	}
	lines := d.body
	// Without a file only the lines of the block count.
	if b, err := s.env.ReadFile(file); err == nil {
		for line := range strings.Lines(string(b)) {
			line, _, _ = strings.Cut(line, "#")
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
			n, err := strconv.ParseUint(strings.Join(line[1:], " "), 10, 16)
			if err != nil || n == 0 {
				return nil, fmt.Errorf("ttl provided is invalid: %s", strings.Join(line[1:], " "))
			}
			ttl = uint32(n)
		case "no_reverse", "reload":
		default:
			addr, err := netip.ParseAddr(line[0])
			if err != nil {
				continue
			}
			back, _ := dns.ReverseAddr(line[0])
			for _, name := range line[1:] {
				name = dns.Fqdn(strings.ToLower(name))
				table[name] = append(table[name], addr)
				names[back] = append(names[back], name)
			}
		}
	}
	return func(r *request) bool {
		if r.kind == dns.TypePTR {
			for _, name := range names[r.name] {
				r.add(&dns.PTR{Hdr: header(dns.TypePTR, ttl), Ptr: name})
			}
			return len(names[r.name]) > 0 && r.done(dns.RcodeSuccess)
		}
		inZone := len(zones) == 0 || slices.ContainsFunc(zones, func(z string) bool {
			return dns.IsSubDomain(dns.Fqdn(z), r.name)
		})
		addrs, found := table[r.name]
		switch {
		case !inZone, !found && pass:
			return false
		case !found:
			return r.done(dns.RcodeServerFailure) // There is no SOA to say NXDOMAIN with.
		}
		r.msg.Authoritative = true
		for _, a := range addrs {
			r.address(a, ttl)
		}
		return r.done(dns.RcodeSuccess)
	}, nil
}

// address answers with an address, if it is of the kind that was asked for.
func (r *request) address(a netip.Addr, ttl uint32) {
	switch {
	case r.kind == dns.TypeA && a.Is4():
		r.add(&dns.A{Hdr: header(dns.TypeA, ttl), A: a.AsSlice()})
	case r.kind == dns.TypeAAAA && a.Is6():
		r.add(&dns.AAAA{Hdr: header(dns.TypeAAAA, ttl), AAAA: a.AsSlice()})
	}
}

func header(kind uint16, ttl uint32) dns.RR_Header {
	return dns.RR_Header{Rrtype: kind, Class: dns.ClassINET, Ttl: ttl}
}
