package network

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/aiopslab/aiopslab/kit"
)

// trustFiles are where distributions keep the certificates they trust. They are looked for among the
// container's files; what the host trusts is of no concern.
var trustFiles = []string{
	"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem",
	"/etc/ssl/ca-bundle.pem",
}

// trusted returns the certificates to trust: those of a file, or of the container.
func trusted(env *kit.Env, file string) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if file != "" {
		data, err := env.ReadFile(file)
		if err != nil || !pool.AppendCertsFromPEM(data) {
			return nil, &curlError{77, fmt.Sprintf(
				"error setting certificate verify locations:  CAfile: %s CApath: none", file)}
		}
		return pool, nil
	}
	for _, name := range trustFiles {
		if data, err := env.ReadFile(name); err == nil && pool.AppendCertsFromPEM(data) {
			break
		}
	}
	return pool, nil
}

// tlsError says what is wrong with a TLS handshake, as curl does.
func tlsError(err error, host, port string) *curlError {
	problem := func(text string) *curlError {
		return &curlError{60, "SSL certificate problem: " + text + "\n" +
			"More details here: https://curl.se/docs/sslcerts.html\n\n" +
			"curl failed to verify the legitimacy of the server and therefore could not\n" +
			"establish a secure connection to it. To learn more about this situation and\n" +
			"how to fix it, please visit the webpage mentioned above."}
	}
	if unknown, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		if c := unknown.Cert; c != nil && c.Subject.String() == c.Issuer.String() {
			return problem("self-signed certificate")
		}
		return problem("unable to get local issuer certificate")
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if invalid.Reason == x509.Expired {
			return problem("certificate has expired")
		}
		return problem(invalid.Error())
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return &curlError{60, fmt.Sprintf("SSL: no alternative certificate subject name matches target host name '%s'",
			host)}
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return &curlError{35, "OpenSSL/3.3.2: error:0A00010B:SSL routines::wrong version number"}
	}
	switch {
	case errors.Is(err, syscall.ECONNRESET):
		return &curlError{35, "Recv failure: Connection reset by peer"}
	case errors.Is(err, io.EOF):
		return &curlError{35, fmt.Sprintf("OpenSSL SSL_connect: SSL_ERROR_SYSCALL in connection to %s:%s ", host, port)}
	}
	return &curlError{35, "OpenSSL/3.3.2: " + err.Error()}
}

func tlsVersion(v uint16) string {
	return map[uint16]string{
		tls.VersionTLS10: "TLSv1.0", tls.VersionTLS11: "TLSv1.1", tls.VersionTLS12: "TLSv1.2",
		tls.VersionTLS13: "TLSv1.3",
	}[v]
}
