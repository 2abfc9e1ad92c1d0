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
	"regexp"
	"strings"
	"sync/atomic"
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

// The suite counts how many tokens the client has used, and takes a failure for the end.
func TestInClusterClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sick atomic.Bool
		m := cluster(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/healthz" || !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer token-") || sick.Load() {
				w.WriteHeader(http.StatusForbidden)
			}
		}))
		r := start(m, "inclusterclient", "--poll-interval=5")
		time.Sleep(6 * time.Second)
		m.Write(serviceAccountDir+"/token", "token-2")
		time.Sleep(5 * time.Second)
		tokens := map[string]bool{}
		for _, match := range regexp.MustCompile(`authz_header=([\w-]+)`).FindAllStringSubmatch(r.Stderr.String(), -1) {
			tokens[match[1]] = true
		}
		if len(tokens) != 2 || strings.Contains(r.Stderr.String(), "status=failed") || !strings.Contains(r.Stderr.String(), "] calling /healthz\n") {
			t.Errorf("%d tokens\n%s", len(tokens), r.Stderr)
		}
		sick.Store(true)
		time.Sleep(5 * time.Second)
		if !strings.Contains(r.Stderr.String(), "status=failed") {
			t.Error("a failure is not reported")
		}
		r.Signal(syscall.SIGTERM)
		r.Wait()
	})
}

func TestInClusterClientOutsideACluster(t *testing.T) {
	if _, stderr, code := output(pod(t), "inclusterclient"); code != 1 || !strings.Contains(stderr, "err: unable to load in-cluster configuration") {
		t.Errorf("exit %d %s", code, stderr)
	}
}

func TestNettest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cluster(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/version":
				fmt.Fprint(w, `{"major":"1","minor":"37"}`)
			case "/api/v1/namespaces/ns/endpoints/peers":
				fmt.Fprint(w, `{"subsets":[{"addresses":[{"ip":"10.244.0.2"}],"ports":[{"port":8080}]}]}`)
			default:
				w.WriteHeader(http.StatusNotFound)
			}
		}))
		r := start(m, "nettest", "--namespace=ns", "--service=peers", "--peers=1", "--delay-shutdown=3")
		m.WaitListen(":8080")
		synctest.Wait()
		if _, body := get(t, m, "http://localhost:8080/status"); body != "pass" {
			t.Errorf("status %q", body)
		}
		// The preStop conformance test posts this and looks for it in the state.
		request(t, m, "POST", "http://localhost:8080/write", "application/x-www-form-urlencoded", `{"Source": "prestop"}`)
		var state struct{ Received map[string]int }
		if _, body := get(t, m, "http://localhost:8080/read"); json.Unmarshal([]byte(body), &state) != nil || state.Received["prestop"] != 1 || state.Received["pod-1"] != 1 {
			t.Errorf("state %s", body)
		}
		r.Signal(syscall.SIGTERM)
		r.Await("Sleeping 3 seconds before exit ...")
		if code := r.Wait(); code != 0 {
			t.Errorf("exit %d", code)
		}
	})
}

// Nobody may read endpoints in the default namespace: the server serves nevertheless.
func TestNettestWithoutPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cluster(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/version" {
				w.WriteHeader(http.StatusForbidden)
			}
		}))
		r := start(m, "nettest")
		m.WaitListen(":8080")
		if _, body := get(t, m, "http://localhost:8080/status"); body != "running" {
			t.Errorf("at first: %q", body)
		}
		time.Sleep(10 * time.Minute)
		if _, body := get(t, m, "http://localhost:8080/status"); body != "fail" {
			t.Errorf("at last: %q", body)
		}
		if resp, err := m.Client().Get("http://localhost:8080/quit"); err == nil {
			resp.Body.Close()
			t.Error("it answered after its end")
		}
		if code := r.Wait(); code != 0 {
			t.Errorf("exit %d", code)
		}
	})
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
	for _, line := range []string{"OK: Got token", "OK: got issuer " + issuer, "OK: Validated signature on JWT", "OK: Got valid claims from token!"} {
		if !strings.Contains(stderr, line+"\n") {
			t.Errorf("%q is missing in\n%s", line, stderr)
		}
	}
	if _, stderr, code := output(m, append(args, "somebody-else")...); code != 1 || !strings.Contains(stderr, "falling back to validating with external discovery") {
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
		time.Sleep(11 * time.Second)
		r.Await("Got response body: Client Identity: spiffe://cluster.local/ns/ns/sa/default\n")
		// The server does not believe somebody else's authority.
		client.Write("/run/tls-config/cred.pem", issueBundle(t, testAuthority(t), &x509.Certificate{URIs: []*url.URL{identity}}))
		time.Sleep(10 * time.Second)
		r.Await(`while sending requests to the server: non-2xx status 401 "401 Unauthorized"`)
		r.Signal(syscall.SIGTERM)
		r.Wait()
		if _, stderr, code := output(client, args[:2]...); code != 1 || !strings.Contains(stderr, `"command failed" err="missing required flags"`) {
			t.Errorf("exit %d %s", code, stderr)
		}
	})
}

func TestAuditProxy(t *testing.T) {
	m := pod(t)
	r := start(m, "audit-proxy")
	m.WaitListen(":8080")
	code, _ := request(t, m, "POST", "http://localhost:8080/", "application/json",
		`{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[{"level":"Metadata","auditID":"1","stage":"ResponseComplete","requestURI":"/api","verb":"get","user":{}}]}`)
	if code != 200 || !strings.HasPrefix(r.Stdout.String(), `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"1"`) {
		t.Errorf("%d %s", code, r.Stdout)
	}
	if code, _ := request(t, m, "POST", "http://localhost:8080/", "application/json", "{}"); code != 500 {
		t.Errorf("no events: %d", code)
	}
}

func TestExternalMetrics(t *testing.T) {
	m := pod(t)
	start(m, "external-metrics", "--port=443")
	m.WaitListen(":443")
	client := m.Client()
	client.Transport.(*http.Transport).TLSClientConfig = insecureTLS
	get := func(path string) (int, map[string]any) {
		t.Helper()
		resp, err := client.Get("https://localhost" + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var v map[string]any
		_ = json.NewDecoder(resp.Body).Decode(&v)
		return resp.StatusCode, v
	}
	value := func(query string) (int, any) {
		code, list := get("/apis/external.metrics.k8s.io/v1beta1/namespaces/ns/queue_messages_ready" + query)
		if items, ok := list["items"].([]any); ok && len(items) == 1 {
			return code, items[0].(map[string]any)["value"]
		}
		return code, nil
	}
	for _, path := range []string{"/healthz", "/apis/external.metrics.k8s.io", "/apis/external.metrics.k8s.io/v1beta1"} {
		if code, _ := get(path); code != 200 {
			t.Errorf("%s: %d", path, code)
		}
	}
	if code, v := value(""); code != 200 || v != "100" {
		t.Errorf("default: %d %v", code, v)
	}
	get("/set/queue_messages_ready?value=7")
	if _, v := value(""); v != "7" {
		t.Errorf("after /set: %v", v)
	}
	get("/create/queue_messages_ready?value=9&labels=env=prod")
	if _, v := value("?labelSelector=env%3Dprod"); v != "9" {
		t.Errorf("with labels: %v", v)
	}
	get("/fail/queue_messages_ready?fail=true")
	if code, _ := value(""); code != 500 {
		t.Errorf("after /fail: %d", code)
	}
	if code, _ := value("?labelSelector=env%3Dtest"); code != 404 {
		t.Errorf("no such labels: %d", code)
	}
}
