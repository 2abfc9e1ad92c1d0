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

// PKI is the cluster's certificate authority and the key that signs service account tokens. What
// runs in the cluster keeps copies of both (tokens, CA bundles), so they are part of a snapshot.
type PKI struct {
	CACert, CAKey []byte // PEM
	SAPub, SAKey  []byte // PEM

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewPKI makes a new authority.
func NewPKI() (*PKI, error) {
	p := &PKI{}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, DNSNames: []string{"kubernetes"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validity),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	p.CACert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if p.CAKey, err = encodeKey(key); err != nil {
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
	return p, p.Load()
}

func encodeKey(k *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// Load prepares an authority whose exported fields were restored from a snapshot.
func (p *PKI) Load() error {
	pair, err := tls.X509KeyPair(p.CACert, p.CAKey)
	if err != nil {
		return fmt.Errorf("load certificate authority: %w", err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return fmt.Errorf("load certificate authority: its key is not ECDSA")
	}
	p.cert, p.key = pair.Leaf, key
	return nil
}

// Identity is whom a certificate is for.
type Identity struct {
	Name   string   // user
	Groups []string // of the user
	DNS    []string // names of a server
	IPs    []net.IP // addresses of a server
}

// Issue signs a certificate and returns it and its key as PEM.
func (p *PKI) Issue(id Identity) (cert, key []byte, err error) {
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
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validity),
		DNSNames: id.DNS, IPAddresses: id.IPs, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, p.cert, k.Public(), p.key)
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

// files writes what kube-apiserver only takes as files, and returns where each is.
func (p *PKI) files(dir string, issue map[string]Identity) (func(name string) string, error) {
	path := func(name string) string { return filepath.Join(dir, name) }
	contents := map[string][]byte{"ca.crt": p.CACert, "sa.pub": p.SAPub, "sa.key": p.SAKey}
	for name, id := range issue {
		cert, key, err := p.Issue(id)
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
