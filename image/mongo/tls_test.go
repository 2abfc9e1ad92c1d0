package mongo

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// authority makes certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert, a.key, a.pem = a.issue("ca")
	return a
}

// issue makes a certificate, which signs itself if there is no authority yet, and returns it with
// its key in PEM.
func (a *authority) issue(name string, hosts ...string) (*x509.Certificate, *ecdsa.PrivateKey, string) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: hosts,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: a.cert == nil, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := tmpl, key
	if a.cert != nil {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if a.cert != nil {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})...)
	}
	return cert, key, string(text)
}

func TestRequireTLS(t *testing.T) {
	ca := newAuthority(t)
	_, _, server := ca.issue("db", "db")
	_, _, client := ca.issue("app")
	b := newBox(t)
	b.server.Write("/etc/tls/tls.pem", server)
	b.server.Write("/etc/tls/ca.crt", ca.pem)
	b.server.Write("/etc/tls/client.pem", client)
	// As the chart of the social network configures it.
	b.server.Write("/etc/mongod.conf", "net:\n  tls:\n    mode: requireTLS\n    certificateKeyFile: /etc/tls/tls.pem\n    CAFile: /etc/tls/ca.crt\n")
	b.start("--config", "/etc/mongod.conf")
	b.run.Await(`"Waiting for connections","attr":{"port":27017,"ssl":"on"}`)
	ctx := t.Context()

	err := b.connect(plainURI, options.Client().SetServerSelectionTimeout(100*time.Millisecond)).Ping(ctx, nil)
	if err == nil || !strings.Contains(err.Error(), "server selection") {
		t.Errorf("without TLS: %v", err)
	}
	b.run.Await(`"id":22988,   "ctx":"conn1","msg":"Error receiving request from client. Ending connection from remote","attr":{"error":{"code":141,"codeName":"SSLHandshakeFailed","errmsg":"The server is configured to only allow SSL connections"}`)

	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	bare := &tls.Config{RootCAs: roots}
	if err := b.connect(plainURI, options.Client().SetTLSConfig(bare).SetServerSelectionTimeout(100*time.Millisecond)).Ping(ctx, nil); err == nil {
		t.Error("without a certificate: no error")
	}
	b.run.Await(`"errmsg":"no SSL certificate provided by peer; connection rejected"`)

	pair, err := tls.X509KeyPair([]byte(client), []byte(client))
	if err != nil {
		t.Fatal(err)
	}
	full := &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}
	if err := b.connect(plainURI, options.Client().SetTLSConfig(full)).Ping(ctx, nil); err != nil {
		t.Errorf("with a certificate: %v", err)
	}

	_, errOut, code := b.sh("", "mongosh", "--eval", "1")
	if code != 1 || errOut != "MongoServerSelectionError: connection <monitor> to 127.0.0.1:27017 closed\n" {
		t.Errorf("mongosh: exit %d, %q", code, errOut)
	}
	out, errOut, code := b.sh("", "mongosh", "--tls", "--tlsCAFile", "/etc/tls/ca.crt", "--tlsCertificateKeyFile", "/etc/tls/client.pem", "--eval", "db.runCommand({ping: 1}).ok")
	if code != 0 || out != "1\n" {
		t.Errorf("mongosh --tls: exit %d, %q %q", code, out, errOut)
	}
	if code := b.stop(syscall.SIGTERM); code != 0 {
		t.Errorf("exit %d", code)
	}
}

func TestMissingCertificate(t *testing.T) {
	b := newBox(t)
	r := b.server.Start(Mongod, "mongod", "--tlsMode", "requireTLS", "--tlsCertificateKeyFile", "/etc/tls/tls.pem")
	if code := r.Wait(); code != 1 || !strings.Contains(r.Stdout.String(), `"codeName":"InvalidSSLConfiguration"`) {
		t.Errorf("exit %d\n%s", code, r.Stdout)
	}
}

func TestTLSWithoutSupport(t *testing.T) {
	b := startBox(t)
	b.connect(plainURI, options.Client().SetTLSConfig(&tls.Config{InsecureSkipVerify: true}).SetServerSelectionTimeout(50*time.Millisecond)).Ping(t.Context(), nil)
	b.run.Await("SSL handshake received but server is started without SSL support")
}
