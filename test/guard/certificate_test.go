package guard

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/aiopslab/aiopslab/test/labtest"
)

// request has the agent ask for a certificate and approve it. It returns the request's name and the key.
func (a *agent) request(t *testing.T, signer, usages string, who pkix.Name) (name string, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: who, DNSNames: []string{"node-1"}}, private)
	if err != nil {
		t.Fatal(err)
	}
	request := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	name = strings.ToLower(rand.Text())
	out, err := a.kubectl(t, fmt.Sprintf("{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: %s}, "+
		"spec: {signerName: %s, usages: [%s], request: %s}}", name, signer, usages, base64.StdEncoding.EncodeToString(request)), "create", "-f", "-")
	if err != nil {
		return out, nil
	}
	a.run(t, "", []string{"certificate", "approve", name}, "approved")
	if der, err = x509.MarshalPKCS8PrivateKey(private); err != nil {
		t.Fatal(err)
	}
	return name, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// certificate is that of a request, once it is there.
func (a *agent) certificate(t *testing.T, name string) string {
	t.Helper()
	return labtest.Await(t, func() (string, error) {
		out, err := a.kubectl(t, "", "get", "csr", name, "-o", "jsonpath={.status.certificate}")
		if err == nil && out == "" {
			err = errors.New("it has no certificate yet")
		}
		if err != nil {
			return "", err
		}
		cert, err := base64.StdEncoding.DecodeString(out)
		return string(cert), err
	})
}

// TestRequestedCertificates takes certificates that the agent has had made, with the names of those
// who may do everything, from a pod to the API server and to a kubelet.
func TestRequestedCertificates(t *testing.T) {
	a := behind(t)
	for _, groups := range [][]string{{"system:masters"}, {"developers", "system:masters"}} {
		out, key := a.request(t, certificatesv1.KubeAPIServerClientSignerName, "client auth", pkix.Name{CommonName: "me", Organization: groups})
		if key != nil || !strings.Contains(out, "orbidden") {
			t.Errorf("a request for a certificate of %v: %s", groups, out)
		}
	}
	// A kubelet's certificate would let a pod pass for a node.
	node, _ := a.request(t, certificatesv1.KubeletServingSignerName, "server auth, digital signature",
		pkix.Name{CommonName: "system:node:node-1", Organization: []string{"system:nodes"}})
	a.run(t, "", []string{"create", "clusterrolebinding", "admins-" + a.ns, "--clusterrole=cluster-admin", "--group=kubeadm:cluster-admins"}, "created")
	for _, user := range []string{"kubernetes-admin", "kube-apiserver-kubelet-client", "front-proxy-client"} {
		t.Run(user, func(t *testing.T) {
			name, key := a.request(t, certificatesv1.KubeAPIServerClientSignerName, "client auth",
				pkix.Name{CommonName: user, Organization: []string{"kubeadm:cluster-admins"}})
			a.run(t, a.certificate(t, name)+string(key), []string{"exec", "-i", "web", "--", "sh", "-c", "cat > /tmp/me.pem"})
			a.tryCertificate(t, user)
		})
	}
	if out := a.run(t, "", []string{"get", "csr", node, "-o", "jsonpath={.status.certificate}"}); out != "" {
		t.Errorf("a kubelet's certificate was issued: %s", out)
	}
}

// tryCertificate uses the certificate that is in the agent's pod, of a user who may do everything.
func (a *agent) tryCertificate(t *testing.T, user string) {
	t.Helper()
	curl := func(args ...string) string {
		t.Helper()
		out, err := a.kubectl(t, "", append([]string{"exec", "web", "--", "curl", "-sk", "-w", "\n%{http_code}", "--cert", "/tmp/me.pem"}, args...)...)
		if err != nil {
			t.Errorf("curl %v: %v\n%s", args, err, out)
		}
		return out
	}
	const server = "https://kubernetes.default.svc.cluster.local"
	pods := server + "/api/v1/namespaces/" + a.ns + "/pods"
	list := labtest.Await(t, func() (string, error) { // Rights take a moment.
		if out := curl(pods); strings.HasSuffix(out, "\n200") {
			return out, nil
		}
		return "", errors.New("it has no rights yet")
	})
	if !strings.Contains(list, `"name": "web"`) || strings.Contains(list, "managedFields") || strings.Contains(list, `"name": "load"`) {
		t.Errorf("pods: %s", list)
	}
	refused := map[string][]string{
		"impersonation":        {"-H", "Impersonate-User: system:admin", "-H", "Impersonate-Group: system:masters", pods},
		"metrics":              {server + "/metrics"},
		"a kubelet's settings": {"https://172.18.0.3:10250/configz"},
		"a kubelet's pods":     {"https://172.18.0.3:10250/pods"},
		"a kubelet's run":      {"-X", "POST", "-d", "cmd=id", "https://172.18.0.3:10250/run/" + a.ns + "/web/nginx"},
	}
	for what, args := range refused {
		if out := curl(args...); !strings.HasSuffix(out, "\n403") {
			t.Errorf("%s: %.400s", what, out)
		}
	}
	before := len(a.journal())
	curl("-X", "POST", "-H", "X-Remote-User: system:apiserver", "-H", "X-Remote-Group: system:masters", "-H", "Content-Type: application/json",
		"-d", `{"metadata":{"generateName":"stolen-"}}`, server+"/api/v1/namespaces/"+a.ns+"/configmaps")
	for _, e := range a.journal()[before:] {
		if e.Resource == "configmaps" && e.Status == 201 && e.User == user && strings.HasPrefix(e.From, "10.244.") {
			return
		}
	}
	t.Errorf("the write is not in the journal as %s's: %+v", user, a.journal()[before:])
}
