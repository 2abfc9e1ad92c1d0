package shell

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/aiopslab/aiopslab/kit"
)

const defaultPort = "27017"

// target is what to connect to, and as whom.
type target struct {
	address   string // host:port
	db        string
	user      string
	password  string
	source    string // the database of the user
	mechanism string
	tls       *tls.Config
}

// parseTarget reads an address as the shells take it: a URI, host:port/database, or a database.
func parseTarget(address string) (*target, *tlsOptions, error) {
	t, secure := &target{}, &tlsOptions{}
	switch {
	case strings.HasPrefix(address, "mongodb+srv://"):
		return nil, nil, fmt.Errorf("mongodb+srv:// is not supported; use mongodb://")
	case strings.HasPrefix(address, "mongodb://"):
		if err := t.parseURI(address, secure); err != nil {
			return nil, nil, err
		}
	case strings.ContainsAny(address, "/:.") || address == "localhost":
		host, db, _ := strings.Cut(address, "/")
		t.address, t.db = host, db
	default:
		t.db = address
	}
	return t, secure, nil
}

func (t *target) parseURI(uri string, secure *tlsOptions) error {
	u, err := url.Parse(uri)
	if err != nil {
		return fmt.Errorf("invalid connection string: %w", err)
	}
	hosts := strings.Split(u.Host, ",")
	t.address = hosts[0]
	t.db = strings.TrimPrefix(u.Path, "/")
	if u.User != nil {
		t.user = u.User.Username()
		t.password, _ = u.User.Password()
	}
	q := u.Query()
	t.source, t.mechanism = q.Get("authSource"), q.Get("authMechanism")
	secure.on = q.Get("tls") == "true" || q.Get("ssl") == "true"
	secure.ca, secure.cert = q.Get("tlsCAFile"), q.Get("tlsCertificateKeyFile")
	secure.insecure = q.Get("tlsInsecure") == "true" || q.Get("tlsAllowInvalidCertificates") == "true"
	secure.anyHost = q.Get("tlsAllowInvalidHostnames") == "true"
	if t.source == "" && t.user != "" && t.db != "" {
		t.source = t.db
	}
	return nil
}

// complete fills in what was left out.
func (t *target) complete() {
	if t.address == "" {
		t.address = "127.0.0.1"
	}
	if _, _, err := net.SplitHostPort(t.address); err != nil {
		t.address = net.JoinHostPort(strings.Trim(t.address, "[]"), defaultPort)
	}
	if t.source == "" {
		t.source = "admin"
		if t.db != "" && t.user != "" {
			t.source = t.db
		}
	}
	if t.db == "" {
		t.db = "test"
	}
}

// tlsOptions are those of a command line or a URI.
type tlsOptions struct {
	on                bool
	ca, cert          string
	insecure, anyHost bool
}

// config reads the files the options name. It returns nil if TLS is off.
func (o *tlsOptions) config(env *kit.Env, address string) (*tls.Config, error) {
	if !o.on {
		return nil, nil
	}
	host, _, _ := net.SplitHostPort(address)
	cfg := &tls.Config{ServerName: host, InsecureSkipVerify: o.insecure || o.anyHost}
	if o.ca != "" {
		data, err := env.ReadFile(o.ca)
		if err != nil {
			return nil, err
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("%s holds no certificate", o.ca)
		}
	}
	if o.anyHost && !o.insecure {
		cfg.VerifyConnection = func(s tls.ConnectionState) error {
			opts := x509.VerifyOptions{Roots: cfg.RootCAs, Intermediates: x509.NewCertPool()}
			for _, c := range s.PeerCertificates[1:] {
				opts.Intermediates.AddCert(c)
			}
			_, err := s.PeerCertificates[0].Verify(opts)
			return err
		}
	}
	if o.cert != "" {
		data, err := env.ReadFile(o.cert)
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(data, data)
		if err != nil {
			return nil, err
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}
