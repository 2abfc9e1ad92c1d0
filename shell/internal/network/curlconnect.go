package network

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// connectTimeout is how long curl waits for a connection when nothing is said.
const connectTimeout = 300 * time.Second

func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// destination is where a request really goes: --connect-to may say so.
func (r *curlRun) destination(host, port string) (string, string) {
	for _, rule := range r.c.Opts.All("connect-to") {
		p := strings.SplitN(rule, ":", 4)
		if len(p) != 4 || p[0] != "" && p[0] != host || p[1] != "" && p[1] != port {
			continue
		}
		if p[2] != "" {
			host = p[2]
		}
		if p[3] != "" {
			port = p[3]
		}
	}
	return host, port
}

// resolve finds the addresses of a host: those of --resolve, or the network's.
func (r *curlRun) resolve(ctx context.Context, host, port string, st *stats) ([]string, error) {
	for _, entry := range r.c.Opts.All("resolve") {
		p := strings.SplitN(strings.TrimLeft(entry, "+-"), ":", 3)
		if len(p) == 3 && (p[0] == host || p[0] == "*") && p[1] == port {
			r.info("Hostname %s was found in DNS cache", host)
			return strings.Split(strings.Trim(p[2], "[]"), ","), nil
		}
	}
	if ip := net.ParseIP(host); ip != nil {
		return []string{host}, nil
	}
	addrs, err := r.c.Env.Net.LookupHost(ctx, host)
	if err != nil || len(addrs) == 0 {
		if ctx.Err() != nil {
			ms := time.Since(st.start).Milliseconds()
			return nil, &curlError{28, fmt.Sprintf("Resolving timed out after %d milliseconds", ms)}
		}
		r.info("Could not resolve host: %s", host)
		r.info("Closing connection")
		return nil, &curlError{6, "Could not resolve host: " + host}
	}
	var v6, v4 []string
	for _, a := range addrs {
		if strings.Contains(a, ":") {
			v6 = append(v6, a)
		} else {
			v4 = append(v4, a)
		}
	}
	none := func(list []string) string {
		if len(list) == 0 {
			return "(none)"
		}
		return strings.Join(list, ", ")
	}
	r.info("Host %s:%s was resolved.", host, port)
	r.info("IPv6: %s", none(v6))
	r.info("IPv4: %s", none(v4))
	if r.c.Opts.Has("4") && len(v4) > 0 {
		return v4, nil
	}
	return addrs, nil
}

// connect opens a connection to the host of a URL, with TLS if it says so.
func (r *curlRun) connect(ctx context.Context, u *url.URL, st *stats) (net.Conn, error) {
	host, port := u.Hostname(), portOf(u)
	if r.c.Opts.Has("unix-socket") {
		return nil, &curlError{7, cannotConnect(host, port, 0)}
	}
	limit := connectTimeout
	if text := r.c.Opts.Get("connect-timeout", ""); text != "" {
		d, err := tool.ParseDuration(text)
		if err != nil {
			return nil, &curlError{2, "expected a proper numerical parameter"}
		}
		limit = d
	}
	begin := time.Now()
	connecting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	toHost, toPort := r.destination(host, port)
	proxy := r.proxy(u)
	if proxy != nil {
		toHost, toPort = proxy.Hostname(), portOf(proxy)
	}
	addrs, err := r.resolve(connecting, toHost, toPort, st)
	if err != nil {
		if e, ok := errors.AsType[*curlError](err); ok && proxy != nil && e.code == 6 {
			return nil, &curlError{5, "Could not resolve proxy: " + toHost}
		}
		return nil, err
	}
	st.lookup = time.Since(st.start)
	var conn net.Conn
	var dialErr error
	for _, addr := range addrs {
		r.info("  Trying %s...", net.JoinHostPort(addr, toPort))
		if conn, dialErr = r.c.Env.Net.DialContext(connecting, "tcp", net.JoinHostPort(addr, toPort)); dialErr == nil {
			break
		}
		if connecting.Err() != nil {
			break
		}
		r.info("connect to %s port %s from 0.0.0.0 port 0 failed: %s", addr, toPort, tool.Reason(dialErr))
	}
	if dialErr != nil {
		return nil, r.connectError(connecting, dialErr, toHost, toPort, time.Since(begin))
	}
	st.connects++
	st.connect = time.Since(st.start)
	st.remoteIP, st.remotePort, _ = net.SplitHostPort(conn.RemoteAddr().String())
	st.localIP, st.localPort, _ = net.SplitHostPort(conn.LocalAddr().String())
	r.info("Connected to %s (%s) port %s", toHost, st.remoteIP, toPort)
	if u.Scheme != "https" {
		return conn, nil
	}
	if proxy != nil {
		if err := r.tunnel(connecting, conn, u); err != nil {
			conn.Close()
			return nil, err
		}
	}
	secure, err := r.secure(connecting, conn, host, port, begin)
	if err != nil {
		conn.Close()
		return nil, err
	}
	st.handshake = time.Since(st.start)
	return secure, nil
}

func (r *curlRun) connectError(ctx context.Context, err error, host, port string, took time.Duration) error {
	ms := took.Milliseconds()
	switch {
	case ctx.Err() != nil:
		r.info("Connection timed out after %d milliseconds", ms)
		r.info("Closing connection")
		return &curlError{28, fmt.Sprintf("Connection timed out after %d milliseconds", ms)}
	case errors.Is(err, syscall.ETIMEDOUT):
		return &curlError{28, cannotConnect(host, port, ms)}
	}
	r.info("%s", cannotConnect(host, port, ms))
	r.info("Closing connection")
	return &curlError{7, cannotConnect(host, port, ms)}
}

func cannotConnect(host, port string, ms int64) string {
	return fmt.Sprintf("Failed to connect to %s port %s after %d ms: Couldn't connect to server", host, port, ms)
}

// secure does the TLS handshake.
func (r *curlRun) secure(ctx context.Context, conn net.Conn, host, port string, begin time.Time) (net.Conn, error) {
	o := &r.c.Opts
	cfg := &tls.Config{ServerName: host, InsecureSkipVerify: o.Has("k"), NextProtos: []string{"http/1.1"}}
	var err error
	if cfg.RootCAs, err = trusted(r.c.Env, o.Get("cacert", "")); err != nil {
		return nil, err
	}
	if file := o.Get("E", ""); file != "" {
		certificate, err := r.clientCertificate(file)
		if err != nil {
			return nil, err
		}
		cfg.Certificates = []tls.Certificate{certificate}
	}
	if o.Has("tlsv1.3") {
		cfg.MinVersion = tls.VersionTLS13
	}
	r.info("ALPN: curl offers http/1.1")
	t := tls.Client(conn, cfg)
	if err := t.HandshakeContext(ctx); err != nil {
		if ctx.Err() != nil {
			ms := time.Since(begin).Milliseconds()
			return nil, &curlError{28, fmt.Sprintf("SSL connection timeout after %d milliseconds", ms)}
		}
		e := tlsError(err, host, port)
		first, _, _ := strings.Cut(e.text, "\n")
		r.info("%s", first)
		r.info("closing connection #0")
		return nil, e
	}
	state := t.ConnectionState()
	r.info("SSL connection using %s / %s", tlsVersion(state.Version), tls.CipherSuiteName(state.CipherSuite))
	if len(state.PeerCertificates) > 0 {
		cert := state.PeerCertificates[0]
		r.info("Server certificate:")
		r.info(" subject: %s", cert.Subject)
		r.info(" start date: %s", cert.NotBefore.UTC().Format("Jan _2 15:04:05 2006 GMT"))
		r.info(" expire date: %s", cert.NotAfter.UTC().Format("Jan _2 15:04:05 2006 GMT"))
		r.info(" issuer: %s", cert.Issuer)
		if o.Has("k") {
			r.info(" SSL certificate verify result: unable to get local issuer certificate (20), continuing anyway.")
		} else {
			r.info(" SSL certificate verify ok.")
		}
	}
	return t, nil
}

func (r *curlRun) clientCertificate(file string) (tls.Certificate, error) {
	file, _, _ = strings.Cut(file, ":")
	certPEM, err := r.c.Env.ReadFile(file)
	if err != nil {
		return tls.Certificate{}, &curlError{58, fmt.Sprintf("could not load PEM client certificate from %s, "+
			"OpenSSL error error:80000002:system library::No such file or directory, "+
			"(no key found, wrong pass phrase, or wrong file format?)", file)}
	}
	keyPEM := certPEM
	if key := r.c.Opts.Get("key", ""); key != "" {
		if keyPEM, err = r.c.Env.ReadFile(key); err != nil {
			return tls.Certificate{}, &curlError{58, fmt.Sprintf("unable to set private key file: '%s' type PEM", key)}
		}
	}
	certificate, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return tls.Certificate{}, &curlError{58, fmt.Sprintf("unable to set private key file: '%s' type PEM", file)}
	}
	return certificate, nil
}

// proxy is the proxy for a URL, by -x or the environment, or nil.
func (r *curlRun) proxy(u *url.URL) *url.URL {
	text := r.c.Opts.Get("x", "")
	if text == "" {
		names := []string{u.Scheme + "_proxy", "all_proxy", strings.ToUpper("all_proxy")}
		if u.Scheme == "https" {
			names = append(names, "HTTPS_PROXY")
		}
		for _, name := range names {
			if text = r.c.Env.Vars[name]; text != "" {
				break
			}
		}
	}
	if text == "" {
		return nil
	}
	without := r.c.Opts.Get("noproxy", r.c.Env.Vars["no_proxy"]+","+r.c.Env.Vars["NO_PROXY"])
	for _, domain := range strings.FieldsFunc(without, func(c rune) bool { return c == ',' || c == ' ' }) {
		domain = strings.TrimPrefix(domain, ".")
		if domain == "*" || u.Hostname() == domain || strings.HasSuffix(u.Hostname(), "."+domain) {
			return nil
		}
	}
	p, err := parseURL(text)
	if err != nil {
		return nil
	}
	return p
}
