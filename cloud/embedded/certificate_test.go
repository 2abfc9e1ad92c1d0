package embedded_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// certify does what a user does to get a certificate: make a key, ask, and take it once somebody has
// approved it.
func (c *cluster) certify(t *testing.T, who pkix.Name) *rest.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: who}, key)
	if err != nil {
		t.Fatal(err)
	}
	requests := c.client.CertificatesV1().CertificateSigningRequests()
	hour := int32(time.Hour.Seconds())
	r, err := requests.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "user-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName, ExpirationSeconds: &hour,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: v1.ConditionTrue, Reason: "KubectlApprove"},
	}
	if _, err := requests.UpdateApproval(t.Context(), r.Name, r, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	cert := await(t, func() ([]byte, error) {
		r, err := requests.Get(t.Context(), r.Name, metav1.GetOptions{})
		if err == nil && len(r.Status.Certificate) == 0 {
			err = errors.New("the certificate is not issued")
		}
		return r.Status.Certificate, err
	})
	der, err = x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(c.config)
	config.CertData, config.KeyData = cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	return config
}

// whoami is whom the API server takes a client for.
func whoami(t *testing.T, config *rest.Config) authenticationv1.UserInfo {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	r, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Status.UserInfo
}

func TestClientCertificate(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	config := c.certify(t, pkix.Name{CommonName: "jane", Organization: []string{"developers"}})
	if u := whoami(t, config); u.Username != "jane" || !slices.Contains(u.Groups, "developers") {
		t.Errorf("the certificate is of %+v", u)
	}
	block, _ := pem.Decode(config.CertData)
	if cert, err := x509.ParseCertificate(block.Bytes); err != nil || cert.IsCA || time.Until(cert.NotAfter) > time.Hour {
		t.Errorf("the certificate is %+v, %v", cert, err)
	}
	jane, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := jane.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("without rights: %v", err)
	}
	c.apply(t, ns, `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: developers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: developers}]
`)
	await(t, func() (*v1.PodList, error) { return jane.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{}) })
}

// TestFrontProxyCertificate asks for a certificate with the name of the one whom aggregated APIs
// believe whatever user it speaks for. It is of the wrong authority.
func TestFrontProxyCertificate(t *testing.T) {
	t.Parallel()
	c := shared(t)
	config := c.certify(t, pkix.Name{CommonName: "front-proxy-client"})
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Header.Set("X-Remote-User", "system:apiserver")
			r.Header.Set("X-Remote-Group", "system:masters")
			return next.RoundTrip(r)
		})
	})
	if u := whoami(t, config); u.Username != "front-proxy-client" || slices.Contains(u.Groups, "system:masters") {
		t.Errorf("the certificate makes its owner %+v", u)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
