package nginx

import (
	"crypto/tls"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func applyServer(b *builder, f *frame, d *directive) error {
	s := &server{scope: f.scope.child()}
	inner := &frame{place: inServer, scope: &s.scope, server: s}
	if err := b.block(inner, d.block); err != nil {
		return err
	}
	if !s.own["listen"] {
		return b.listen(s, d, "80", nil)
	}
	return nil
}

func applyListen(b *builder, f *frame, d *directive) error {
	f.first("listen")
	return b.listen(f.server, d, d.args[0], d.args[1:])
}

// listen adds a server to an address.
func (b *builder) listen(s *server, d *directive, address string, options []string) error {
	host, port, err := splitListen(address)
	if err != nil {
		return d.errorf("%v in %q of the %q directive", err, address, "listen")
	}
	l := &listen{addr: net.JoinHostPort(host, port), name: net.JoinHostPort(host, port), port: port}
	if host == "" || host == "*" || host == "0.0.0.0" || host == "::" {
		// One socket takes both protocols, so the two wildcards are one address.
		l.addr, l.name = ":"+port, "0.0.0.0:"+port
	}
	if i := slices.IndexFunc(b.cfg.listens, func(o *listen) bool { return o.addr == l.addr }); i >= 0 {
		l = b.cfg.listens[i]
	} else {
		b.cfg.listens = append(b.cfg.listens, l)
	}
	isDefault := false
	for _, o := range options {
		switch name, _, _ := strings.Cut(o, "="); name {
		case "default_server", "default":
			isDefault = true
		case "ssl":
			l.tls = true
			b.later = append(b.later, func() error { return b.needCertificate(s, d) })
		case "http2":
			l.http2 = true
		case "ipv6only", "reuseport", "backlog", "deferred", "so_keepalive", "rcvbuf", "sndbuf", "bind", "fastopen":
			// These are about the socket, of which there is only the name here.
		default:
			return d.errorf("invalid parameter %q", o)
		}
	}
	if isDefault && l.explicit && l.first != s {
		return d.errorf("a duplicate default server for %s", l.name)
	}
	if isDefault || l.first == nil {
		l.first, l.explicit = s, isDefault
	}
	if !slices.Contains(l.servers, s) {
		l.servers = append(l.servers, s)
	}
	return nil
}

// splitListen reads an address, a port, or both.
func splitListen(s string) (host, port string, err error) {
	if _, err := strconv.Atoi(s); err == nil {
		s = ":" + s
	} else if !strings.Contains(s, ":") || strings.HasSuffix(s, "]") {
		s += ":80"
	}
	host, port, err = net.SplitHostPort(s)
	if n, perr := strconv.Atoi(port); err != nil || perr != nil || n < 1 || n > 65535 {
		return "", "", fmt.Errorf("invalid port")
	}
	if host != "" && host != "*" && host != "localhost" && net.ParseIP(host) == nil {
		return "", "", fmt.Errorf("host not found")
	}
	return host, port, nil
}

func applyHTTP2(b *builder, f *frame, d *directive) error {
	on, err := flagArg(d)
	if err != nil || !on {
		return err
	}
	b.later = append(b.later, func() error {
		for _, l := range b.cfg.listens {
			if f.server == nil || slices.Contains(l.servers, f.server) {
				l.http2 = true
			}
		}
		return nil
	})
	return f.unique(d)
}

// applyCertificate notes one of the two files a certificate is made of.
func applyCertificate(_ *builder, f *frame, d *directive) error {
	if d.name == "ssl_certificate" {
		f.scope.certFile = confPath(d.args[0])
	} else {
		f.scope.keyFile = confPath(d.args[0])
	}
	return f.unique(d)
}

// needCertificate loads the certificate of a server that speaks TLS.
func (b *builder) needCertificate(s *server, d *directive) error {
	if s.certFile == "" {
		return d.errorf(`no "ssl_certificate" is defined for the "listen ... ssl" directive`)
	}
	if s.keyFile == "" {
		return d.errorf(`no "ssl_certificate_key" is defined for certificate %q`, s.certFile)
	}
	cert, err := b.readPEM("certificate", s.certFile)
	if err != nil {
		return err
	}
	key, err := b.readPEM("certificate key", s.keyFile)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return &confError{msg: fmt.Sprintf("cannot load certificate %q: %v", s.certFile, err)}
	}
	s.certificate = &pair
	return nil
}

// readPEM reads a file, and fails in the words of the library the original uses.
func (b *builder) readPEM(what, name string) ([]byte, error) {
	data, err := b.env.ReadFile(name)
	if err != nil {
		_, reason, _ := strings.Cut(errnoText(err), ": ")
		return nil, &confError{msg: fmt.Sprintf(
			"cannot load %s %q: BIO_new_file() failed (SSL: error:80000002:system library::%s:calling fopen(%s, r))",
			what, name, reason, name)}
	}
	return data, nil
}

func applyServerName(_ *builder, f *frame, d *directive) error {
	for _, name := range d.args {
		n := serverName{text: strings.ToLower(name)}
		if pattern, ok := strings.CutPrefix(name, "~"); ok {
			re, err := regexp.Compile(pattern)
			if err != nil {
				return d.errorf("pcre2_compile() failed: %v in %q", err, pattern)
			}
			n.re = re
		}
		f.server.names = append(f.server.names, n)
	}
	return nil
}

// find returns the server for a host's name: an exact name, else the longest *.name, else the
// longest name.*, else the first regular expression, else the default.
func (l *listen) find(host string) *server {
	var best *server
	rank, length := 0, 0
	for _, s := range l.servers {
		for _, n := range s.names {
			r := 0
			switch {
			case n.re != nil:
				if n.re.MatchString(host) {
					r = 1
				}
			case n.text == host:
				r = 4
			case strings.HasPrefix(n.text, "*.") && strings.HasSuffix(host, n.text[1:]),
				strings.HasPrefix(n.text, ".") && (strings.HasSuffix(host, n.text) || host == n.text[1:]):
				r = 3
			case strings.HasSuffix(n.text, ".*") && strings.HasPrefix(host, n.text[:len(n.text)-1]):
				r = 2
			}
			if r > rank || r > 1 && r == rank && len(n.text) > length {
				best, rank, length = s, r, len(n.text)
			}
		}
	}
	if best == nil {
		return l.first
	}
	return best
}

func applyLocation(b *builder, f *frame, d *directive) error {
	l := &location{scope: f.scope.child()}
	modifier, pattern := "", d.args[0]
	if len(d.args) == 2 {
		modifier, pattern = d.args[0], d.args[1]
	} else {
		for _, m := range []string{"^~", "~*", "~", "="} { // The space between may be missing.
			if rest, ok := strings.CutPrefix(pattern, m); ok && rest != "" {
				modifier, pattern = m, rest
				break
			}
		}
	}
	l.pattern = pattern
	switch modifier {
	case "":
		if strings.HasPrefix(pattern, "@") {
			l.match = matchNamed
		}
	case "=":
		l.match = matchExact
	case "^~":
		l.match = matchPreferred
	case "~", "~*":
		l.match = matchRegexp
		expression := pattern
		if modifier == "~*" {
			expression = "(?i)" + pattern
		}
		re, err := regexp.Compile(expression)
		if err != nil {
			return d.errorf("pcre2_compile() failed: %v in %q", err, pattern)
		}
		l.re = re
	default:
		return d.errorf("invalid location modifier %q", modifier)
	}
	siblings := &f.server.locations
	if f.location != nil {
		siblings = &f.location.locations
	}
	for _, o := range *siblings {
		if o.match == l.match && o.pattern == l.pattern && l.match != matchRegexp {
			return d.errorf("duplicate location %q", pattern)
		}
	}
	*siblings = append(*siblings, l)
	return b.block(&frame{place: inLocation, scope: &l.scope, server: f.server, location: l}, d.block)
}
