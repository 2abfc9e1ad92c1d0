package mongo

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"

	"github.com/aiopslab/aiopslab/kit"
)

// tlsError is why TLS cannot be set up, with the event that is logged.
type tlsError struct {
	id       int
	msg      string
	file     string
	reason   string
	fallback string // what the start fails with
}

func (e *tlsError) Error() string { return fmt.Sprintf("%s %s: %s", e.msg, e.file, e.reason) }

// serverTLS reads the certificates the options name. It returns nil if TLS is off.
func (o settings) serverTLS(env *kit.Env) (*tls.Config, error) {
	if mode := o.text("net.tls.mode", "disabled"); mode == "disabled" {
		return nil, nil
	}
	file := o["net.tls.certificateKeyFile"]
	data, err := env.ReadFile(file)
	if err != nil {
		return nil, &tlsError{
			23248, "Cannot read certificate file", file, opensslReason(err),
			"Can not set up PEM key file.",
		}
	}
	pair, err := tls.X509KeyPair(data, data)
	if err != nil {
		return nil, &tlsError{23249, "Cannot read PEM key", file, err.Error(), "Can not set up PEM key file."}
	}
	cfg := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	ca := o["net.tls.CAFile"]
	if ca == "" {
		return cfg, nil
	}
	if data, err = env.ReadFile(ca); err != nil {
		return nil, &tlsError{
			23254, "Cannot read certificate authority file", ca, opensslReason(err),
			"Can not set up CA file.",
		}
	}
	cfg.ClientCAs = x509.NewCertPool()
	if !cfg.ClientCAs.AppendCertsFromPEM(data) {
		return nil, &tlsError{
			23254, "Cannot read certificate authority file", ca, "no certificate found",
			"Can not set up CA file.",
		}
	}
	switch {
	case o.is("net.tls.allowInvalidCertificates"):
		cfg.ClientAuth = tls.RequestClientCert
	case o.is("net.tls.allowConnectionsWithoutCertificates"):
		cfg.ClientAuth = tls.VerifyClientCertIfGiven
	default:
		cfg.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return cfg, nil
}

// opensslReason is OpenSSL's text for a file that cannot be opened.
func opensslReason(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "error:02001002:system library:fopen:No such file or directory"
	case errors.Is(err, fs.ErrPermission):
		return "error:0200100D:system library:fopen:Permission denied"
	}
	return err.Error()
}
