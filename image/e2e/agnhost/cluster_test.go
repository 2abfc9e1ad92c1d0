package agnhost

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

const (
	apiAddr           = "10.244.255.1"
	serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"
)

// issueBundle returns a key with its certificate chain, as one file.
func issueBundle(t testing.TB, ca *authority, template *x509.Certificate) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	der, err := ca.issue(template, key.Public())
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})) +
		encodeCertificate(der) + encodeCertificate(ca.intermediate.Raw)
}

func testAuthority(t testing.TB) *authority {
	t.Helper()
	ca, err := newAuthority(time.Now().Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// cluster returns a machine that has a service account, in a world where h is the API server.
func cluster(t testing.TB, h http.Handler) *kittest.Machine {
	t.Helper()
	w := kittest.New(t)
	api, m := w.Machine("kubernetes.default.svc", apiAddr), w.Machine("pod-1", "10.244.0.2")
	ca := testAuthority(t)
	bundle := []byte(issueBundle(t, ca, &x509.Certificate{
		DNSNames: []string{"kubernetes.default.svc"}, IPAddresses: []net.IP{net.ParseIP(apiAddr)},
	}))
	pair, err := tls.X509KeyPair(bundle, bundle)
	if err != nil {
		t.Fatal(err)
	}
	api.Start(func(ctx context.Context, env *kit.Env) error {
		return together(ctx, newProgram(env).serve(":443", &http.Server{Handler: h, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}}}))
	}, "kube-apiserver")
	api.WaitListen(":443")
	m.Vars = map[string]string{"KUBERNETES_SERVICE_HOST": apiAddr, "KUBERNETES_SERVICE_PORT": "443"}
	m.Write(serviceAccountDir+"/ca.crt", encodeCertificate(ca.root))
	m.Write(serviceAccountDir+"/token", "token-1\n")
	return m
}

// signJWT returns a token that key has signed.
func signJWT(t testing.TB, key *ecdsa.PrivateKey, claims any) string {
	t.Helper()
	encode := func(v any) string {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(data)
	}
	signed := encode(map[string]string{"alg": "ES256", "kid": "1"}) + "." + encode(claims)
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	signature := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// The suite's hook posts as its pod ends and is then looked for in the counts.
func TestNettest(t *testing.T) {
	m := pod(t)
	start(m, "nettest")
	m.WaitListen(":8080")
	kittest.Ask(t, m, "POST", "http://localhost:8080/write", `{"Source": "prestop"}`, "Content-Type: application/x-www-form-urlencoded")
	var state struct{ Received map[string]int }
	if _, body := get(t, m, "http://localhost:8080/read"); json.Unmarshal([]byte(body), &state) != nil || state.Received["prestop"] != 1 {
		t.Errorf("state %s", body)
	}
	if a := kittest.Ask(t, m, "POST", "http://localhost:8080/write", "nonsense"); a.Code != 400 {
		t.Errorf("nonsense: %d %s", a.Code, a.Body)
	}
}

func TestIssuerDiscovery(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	const issuer = "https://kubernetes.default.svc"
	number := func(i *big.Int) string { return base64.RawURLEncoding.EncodeToString(i.FillBytes(make([]byte, 32))) }
	m := cluster(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":"%s/openid/v1/jwks"}`, issuer, issuer)
		case "/openid/v1/jwks":
			fmt.Fprintf(w, `{"keys":[{"kty":"EC","crv":"P-256","kid":"1","alg":"ES256","use":"sig","x":%q,"y":%q}]}`, number(key.X), number(key.Y))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	claims := map[string]any{
		"iss": issuer, "aud": []string{"oidc-discovery-test"}, "sub": "system:serviceaccount:ns:default",
		"exp": time.Now().Add(time.Hour).Unix(), "kubernetes.io": map[string]any{"namespace": "ns"},
	}
	m.Write("/var/run/secrets/tokens/sa-token", signJWT(t, key, claims))
	args := []string{"test-service-account-issuer-discovery", "--token-path", "/var/run/secrets/tokens/sa-token", "--audience"}
	_, stderr, code := output(m, append(args, "oidc-discovery-test")...)
	if code != 0 {
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	if _, stderr, code := output(m, append(args, "somebody-else")...); code != 1 || !strings.Contains(stderr, "somebody-else") {
		t.Errorf("wrong audience: exit %d\n%s", code, stderr)
	}
	m.Write("/var/run/secrets/tokens/sa-token", "nonsense")
	if _, _, code := output(m, append(args, "oidc-discovery-test")...); code != 1 {
		t.Errorf("no token: exit %d", code)
	}
}

func TestMutualTLS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := kittest.New(t)
		server, client := w.Machine("server.ns.svc.cluster.local", "10.244.0.2"), w.Machine("client", "10.244.0.3")
		ca := testAuthority(t)
		identity := &url.URL{Scheme: "spiffe", Host: "cluster.local", Path: "/ns/ns/sa/default"}
		for _, m := range []*kittest.Machine{server, client} {
			m.Write("/run/tls-config/trust.pem", encodeCertificate(ca.root))
			m.Write("/run/tls-config/cred.pem", issueBundle(t, ca, &x509.Certificate{DNSNames: []string{"server.ns.svc.cluster.local"}, URIs: []*url.URL{identity}}))
		}
		start(server, "mtlsserver", "--listen=0.0.0.0:8443", "--server-creds=/run/tls-config/cred.pem", "--spiffe-trust-bundle=/run/tls-config/trust.pem")
		server.WaitListen(":8443")
		args := []string{"mtlsclient", "--fetch-url=https://server.ns.svc.cluster.local:8443/spiffe-echo", "--server-trust-bundle=/run/tls-config/trust.pem", "--client-cred-bundle=/run/tls-config/cred.pem"}
		r := start(client, args...)
		r.Await("Got response body: Client Identity: spiffe://cluster.local/ns/ns/sa/default\n")
		// The server does not believe somebody else's authority. It says so as it hangs up, which the client may see first.
		client.Write("/run/tls-config/cred.pem", issueBundle(t, testAuthority(t), &x509.Certificate{URIs: []*url.URL{identity}}))
		time.Sleep(pollInterval)
		r.Await("fetch https://server.ns.svc.cluster.local:8443/spiffe-echo: ")
		r.Signal(syscall.SIGTERM)
		r.Wait()
		if _, stderr, code := output(client, "mtlsserver", "--listen=:1", "--server-creds=/none"); code != 1 || !strings.Contains(stderr, "Error: open") {
			t.Errorf("exit %d %s", code, stderr)
		}
	})
}
