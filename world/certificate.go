package world

import (
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"hash/fnv"
	"math/big"
	"math/rand/v2"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// CertificateLabel marks the certificates that are renewed, and CertificateRevision tells how often one was.
	CertificateLabel    = "certificates/managed"
	CertificateRevision = "certificates/revision"
	// CertificateWriter is who renews them.
	CertificateWriter = "certificates"

	certificateName = "public-tls"
	// A certificate is renewed when two thirds of its life are over.
	certificateLife = 12 * day
	renewedEvery    = certificateLife * 2 / 3
)

// certify gives every namespace in which things change a certificate for its front door. It is as old as its namespace,
// and was renewed since.
func (c *chronicle) certify() error {
	for _, n := range c.changing() {
		r := c.draw("certificate of " + n.Name)
		made := between(r, n.CreationTimestamp.Time, n.CreationTimestamp.Add(foundedAfter))
		revision := 1 + int(c.Now.Sub(made)/renewedEvery)
		renewed := made.Add(time.Duration(revision-1) * renewedEvery)
		data, err := Certificate(n.Name, nil, r, made)
		if err == nil {
			data, err = Certificate(n.Name, data, r, renewed)
		}
		if err != nil {
			return err
		}
		c.Objects = append(c.Objects, &v1.Secret{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{
				Namespace: n.Name, Name: certificateName, UID: c.uid("certificate of " + n.Name),
				CreationTimestamp: metav1.NewTime(made),
				Labels:            map[string]string{CertificateLabel: "true"},
				Annotations:       map[string]string{CertificateRevision: strconv.Itoa(revision)},
				ManagedFields: []metav1.ManagedFieldsEntry{
					managed(CertificateWriter, metav1.ManagedFieldsOperationUpdate, "", renewed, "v1",
						`{"f:data":{".":{},"f:ca.crt":{},"f:tls.crt":{},"f:tls.key":{}},"f:metadata":{"f:annotations":`+
							`{".":{},"f:`+CertificateRevision+`":{}},"f:labels":{".":{},"f:`+CertificateLabel+`":{}}},"f:type":{}}`),
				},
			},
			Type: v1.SecretTypeTLS, Data: data,
		})
	}
	return nil
}

// authorityKey is where the certificate of the authority is.
const authorityKey = "ca.crt"

// Certificate issues the certificate of a namespace, which is valid from a time on, with its key, as the data of a
// Secret. The authority is the one of the data before, or a new one if there is none.
func Certificate(namespace string, before map[string][]byte, r *rand.Rand, from time.Time) (map[string][]byte, error) {
	authority, own := authorityOf(namespace), newKey(r)
	root := before[authorityKey]
	if before == nil {
		ca := &x509.Certificate{
			SerialNumber: big.NewInt(1 + r.Int64N(1<<62)), Subject: pkix.Name{CommonName: "internal-ca"}, IsCA: true,
			BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
			NotBefore: from, NotAfter: from.Add(3650 * day),
		}
		der, err := x509.CreateCertificate(nil, ca, ca, authority.Public(), authority)
		if err != nil {
			return nil, err
		}
		root = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	block, _ := pem.Decode(root)
	if block == nil {
		return nil, errors.New("there is no certificate of the authority")
	}
	ca, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	host := namespace + ".example.com"
	issued, err := x509.CreateCertificate(nil, &x509.Certificate{
		SerialNumber: big.NewInt(1 + r.Int64N(1<<62)), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotBefore: from, NotAfter: from.Add(certificateLife),
	}, ca, own.Public(), authority)
	if err != nil {
		return nil, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(own)
	return map[string][]byte{
		authorityKey:        root,
		v1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: issued}),
		v1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	}, err
}

// authorityOf is the key of a namespace's authority. Nothing is kept secret with it.
func authorityOf(namespace string) ed25519.PrivateKey {
	h := fnv.New64a()
	_, _ = h.Write([]byte(namespace)) // It never fails.
	return newKey(rand.New(rand.NewPCG(h.Sum64(), 0)))
}

// newKey draws a key.
func newKey(r *rand.Rand) ed25519.PrivateKey {
	seed := make([]byte, 0, ed25519.SeedSize)
	for len(seed) < ed25519.SeedSize {
		seed = binary.LittleEndian.AppendUint64(seed, r.Uint64())
	}
	return ed25519.NewKeyFromSeed(seed)
}
