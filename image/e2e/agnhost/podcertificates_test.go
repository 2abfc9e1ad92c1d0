package agnhost

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// certificatesAPI is an API server with one request to sign.
type certificatesAPI struct {
	t       *testing.T
	request certificatesv1.PodCertificateRequest
	signed  chan certificatesv1.PodCertificateRequest

	mu     sync.Mutex
	bundle *certificatesv1.ClusterTrustBundle
}

func (a *certificatesAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const prefix = "/apis/certificates.k8s.io/v1/"
	w.Header().Set("Content-Type", "application/json")
	a.mu.Lock()
	defer a.mu.Unlock()
	switch path := strings.TrimPrefix(r.URL.Path, prefix); r.Method + " " + path {
	case "GET clustertrustbundles/test.test:signer:primary-bundle":
		if a.bundle == nil {
			w.WriteHeader(http.StatusNotFound)
			json.NewEncoder(w).Encode(metav1.Status{Reason: metav1.StatusReasonNotFound, Code: 404})
			return
		}
		json.NewEncoder(w).Encode(a.bundle)
	case "POST clustertrustbundles":
		a.bundle = new(certificatesv1.ClusterTrustBundle)
		a.decode(r, a.bundle)
		json.NewEncoder(w).Encode(a.bundle)
	case "DELETE clustertrustbundles/test.test:signer:primary-bundle":
		a.bundle = nil
		json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusSuccess})
	case "GET podcertificaterequests":
		if q := r.URL.Query(); q.Get("watch") != "true" || q.Get("fieldSelector") != "spec.signerName=test.test/signer" {
			a.t.Errorf("watch %s", r.URL.RawQuery)
		}
		json.NewEncoder(w).Encode(map[string]any{"type": "ADDED", "object": a.request})
		w.(http.Flusher).Flush()
		a.mu.Unlock()
		<-r.Context().Done()
		a.mu.Lock()
	case "PUT namespaces/ns/podcertificaterequests/req/status":
		var signed certificatesv1.PodCertificateRequest
		a.decode(r, &signed)
		json.NewEncoder(w).Encode(signed)
		a.signed <- signed
	default:
		a.t.Errorf("%s %s", r.Method, r.URL)
		w.WriteHeader(http.StatusNotFound)
	}
}

// decode reads an object in whatever encoding the client chose.
func (a *certificatesAPI) decode(r *http.Request, object runtime.Object) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		_, _, err = scheme.Codecs.UniversalDeserializer().Decode(body, nil, object)
	}
	if err != nil {
		a.t.Error(err)
	}
}

func TestPodCertificateSigner(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	hour := int32(3600)
	api := &certificatesAPI{t: t, signed: make(chan certificatesv1.PodCertificateRequest, 1)}
	api.request = certificatesv1.PodCertificateRequest{
		TypeMeta:   metav1.TypeMeta{Kind: "PodCertificateRequest", APIVersion: "certificates.k8s.io/v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "req"},
		Spec: certificatesv1.PodCertificateRequestSpec{
			SignerName: "test.test/signer", ServiceAccountName: "sa", StubPKCS10Request: csr, MaxExpirationSeconds: &hour,
		},
	}
	r := start(cluster(t, api), "podcertificatesigner", "--signer-name=test.test/signer", "--cluster-dns-domain=cluster.local")
	var signed certificatesv1.PodCertificateRequest
	select {
	case signed = <-api.signed:
	case <-time.After(time.Minute):
		t.Fatalf("nothing was signed\n%s", r.Stderr)
	}
	var bundle string
	for deadline := time.Now().Add(time.Minute); bundle == ""; {
		if time.Now().After(deadline) {
			t.Fatalf("no bundle was published\n%s", r.Stderr)
		}
		api.mu.Lock()
		if api.bundle != nil {
			bundle = api.bundle.Spec.TrustBundle
		}
		api.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
	block, rest := pem.Decode([]byte(signed.Status.CertificateChain))
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(bundle))
	between.AppendCertsFromPEM(rest)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, DNSName: "server.ns.svc.cluster.local"}); err != nil {
		t.Error(err)
	}
	if got := leaf.URIs[0].String(); got != "spiffe://cluster.local/ns/ns/sa/sa" {
		t.Errorf("identity %s", got)
	}
	if life := leaf.NotAfter.Sub(leaf.NotBefore); life != time.Hour || signed.Status.Conditions[0].Type != "Issued" {
		t.Errorf("valid for %v, %+v", life, signed.Status.Conditions)
	}
	r.Signal(syscall.SIGTERM)
	if code := r.Wait(); code != 0 || api.bundle != nil {
		t.Errorf("exit %d, bundle %v\n%s", code, api.bundle, r.Stderr)
	}
}
