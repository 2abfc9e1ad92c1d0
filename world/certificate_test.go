package world_test

import (
	"crypto/tls"
	"crypto/x509"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/aiopslab/aiopslab/world"
)

// checkCertificate checks that a certificate is valid at a time, by its authority, and returns since when.
func checkCertificate(t *testing.T, namespace string, data map[string][]byte, at time.Time) time.Time {
	t.Helper()
	pair, err := tls.X509KeyPair(data[v1.TLSCertKey], data[v1.TLSPrivateKeyKey])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(data["ca.crt"])
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: at, DNSName: namespace + ".example.com"}); err != nil {
		t.Error(err)
	}
	return pair.Leaf.NotBefore
}

// A namespace in which things change has a certificate that was renewed as often as it had to be, and is valid; a renewal
// keeps its authority.
func TestCertificates(t *testing.T) {
	for seed := range uint64(10) {
		h := write(t, history(3), seed)
		list := all[*v1.Secret](h)
		if len(list) != 1 || list[0].Type != v1.SecretTypeTLS || list[0].Labels[world.CertificateLabel] == "" {
			t.Fatalf("the certificates are %v", list)
		}
		s := list[0]
		since := checkCertificate(t, s.Namespace, s.Data, now)
		revision, err := strconv.Atoi(s.Annotations[world.CertificateRevision])
		if err != nil || revision < 3 || revision > 4 {
			t.Errorf("it was issued %d times in three to four weeks, %v", revision, err)
		}
		if age := now.Sub(since); age < 0 || age > 8*24*time.Hour || !s.ManagedFields[0].Time.Time.Equal(since) || !s.CreationTimestamp.Time.Before(since) {
			t.Errorf("it is valid since %v, was made at %v and written at %v", since, s.CreationTimestamp, s.ManagedFields[0].Time)
		}
		later := now.Add(time.Hour)
		renewed, err := world.Certificate(s.Namespace, s.Data, rand.New(rand.NewPCG(1, 1)), later)
		if err != nil || string(renewed["ca.crt"]) != string(s.Data["ca.crt"]) || string(renewed["tls.crt"]) == string(s.Data["tls.crt"]) {
			t.Errorf("it is renewed by %v", err)
		}
		if since := checkCertificate(t, s.Namespace, renewed, later.Add(9*24*time.Hour)); !since.Equal(later) {
			t.Errorf("renewed, it is valid since %v", since)
		}
	}
	if _, err := world.Certificate("x", map[string][]byte{}, rand.New(rand.NewPCG(1, 1)), now); err == nil {
		t.Error("a certificate without an authority is renewed")
	}
}
