package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity is how long certificates last: longer than any environment.
const validity = 10 * 365 * 24 * time.Hour

// PKI is the cluster's certificate authorities and the key that signs service account tokens. What
// runs in the cluster keeps copies of them (tokens, CA bundles), so they are part of a snapshot.
type PKI struct {
	CACert, CAKey []byte // PEM; of servers and clients
	SAPub, SAKey  []byte // PEM
	// The API server shows a certificate of this authority when it passes a request on to an aggregated API and
	// says whom the request is for. It is an authority apart, because anybody can ask the cluster's for a
	// certificate with any name.
	FrontCert, FrontKey []byte // PEM

	ca, front authority
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewPKI makes new authorities.
func NewPKI() (*PKI, error) {
	p := &PKI{}
	var err error
	if p.CACert, p.CAKey, err = newAuthority("kubernetes"); err != nil {
		return nil, err
	}
	sa, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if p.SAKey, err = encodeKey(sa); err != nil {
		return nil, err
	}
	pub, err := x509.MarshalPKIXPublicKey(sa.Public())
	if err != nil {
		return nil, err
	}
	p.SAPub = pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pub})
	if p.FrontCert, p.FrontKey, err = newAuthority("front-proxy-ca"); err != nil {
		return nil, err
	}
	return p, p.Load()
}

// issued is how long ago certificates were issued, as they say: a cluster may have a past, of weeks.
const issued = 35 * 24 * time.Hour

func newAuthority(name string) (cert, key []byte, err error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: now.Add(-issued), NotAfter: now.Add(validity),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		return nil, nil, err
	}
	key, err = encodeKey(k)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key, err
}

func encodeKey(k *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// Load prepares authorities whose exported fields were restored from a snapshot.
func (p *PKI) Load() (err error) {
	if p.ca, err = loadAuthority(p.CACert, p.CAKey); err == nil {
		p.front, err = loadAuthority(p.FrontCert, p.FrontKey)
	}
	return err
}

func loadAuthority(cert, key []byte) (authority, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return authority{}, fmt.Errorf("load certificate authority: %w", err)
	}
	k, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return authority{}, fmt.Errorf("load certificate authority: its key is not ECDSA")
	}
	return authority{cert: pair.Leaf, key: k}, nil
}

// Identity is the user or server that a certificate is for.
type Identity struct {
	Name   string   // user
	Groups []string // of the user
	DNS    []string // names of a server
	IPs    []net.IP // addresses of a server
}

// Issue signs a certificate and returns it and its key as PEM.
func (p *PKI) Issue(id Identity) (cert, key []byte, err error) { return p.ca.issue(id) }

func (a authority) issue(id Identity) (cert, key []byte, err error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: id.Name, Organization: id.Groups},
		NotBefore: now.Add(-issued), NotAfter: now.Add(validity),
		DNSNames: id.DNS, IPAddresses: id.IPs, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, k.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	if key, err = encodeKey(k); err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key, nil
}

// TLS issues a certificate for a server in the process.
func (p *PKI) TLS(id Identity) (tls.Certificate, error) {
	cert, key, err := p.Issue(id)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

// files writes what Kubernetes only takes as files, and returns where each is. The front proxy's
// certificate is of the authority for those.
func (p *PKI) files(dir string, issue map[string]Identity) (func(name string) string, error) {
	path := func(name string) string { return filepath.Join(dir, name) }
	contents := map[string][]byte{
		"ca.crt": p.CACert, "ca.key": p.CAKey, "front-proxy-ca.crt": p.FrontCert, "sa.pub": p.SAPub, "sa.key": p.SAKey,
	}
	for name, id := range issue {
		by := p.ca
		if name == "front-proxy" {
			by = p.front
		}
		cert, key, err := by.issue(id)
		if err != nil {
			return nil, err
		}
		contents[name+".crt"], contents[name+".key"] = cert, key
	}
	for name, b := range contents {
		if err := os.WriteFile(path(name), b, 0o600); err != nil {
			return nil, err
		}
	}
	return path, nil
}
