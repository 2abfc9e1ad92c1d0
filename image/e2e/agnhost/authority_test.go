package agnhost

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"time"
)

// authority signs certificates with an intermediate certificate that its root has signed.
type authority struct {
	root         []byte // DER
	intermediate *x509.Certificate
	key          crypto.Signer // of the intermediate
}

// newAuthority makes an authority that is valid for a year.
func newAuthority(now time.Time) (*authority, error) {
	template := &x509.Certificate{
		NotBefore:             now,
		NotAfter:              now.AddDate(1, 0, 0),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	rootPublic, rootKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	root, err := x509.CreateCertificate(rand.Reader, template, template, rootPublic, rootKey)
	if err != nil {
		return nil, err
	}
	parent, err := x509.ParseCertificate(root)
	if err != nil {
		return nil, err
	}
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, rootKey)
	if err != nil {
		return nil, err
	}
	intermediate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{root, intermediate, key}, nil
}

// issue signs a certificate for a public key.
func (a *authority) issue(template *x509.Certificate, public any) ([]byte, error) {
	return x509.CreateCertificate(rand.Reader, template, a.intermediate, public, a.key)
}

func encodeCertificate(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
