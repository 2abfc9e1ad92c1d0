package embedded_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The API server asks webhooks that are pods behind a service, over TLS.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	ca, cert, key := serverCertificate(t, "hook."+ns+".svc")
	b64 := base64.StdEncoding.EncodeToString
	c.apply(t, ns, fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: tls}
type: kubernetes.io/tls
data: {tls.crt: %s, tls.key: %s}
---
apiVersion: v1
kind: Service
metadata: {name: hook}
spec:
  selector: {app: hook}
  ports: [{port: 443, targetPort: 8443}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: hook}
spec:
  selector: {matchLabels: {app: hook}}
  template:
    metadata: {labels: {app: hook}}
    spec:
      containers:
      - name: hook
        image: %s
        args: [webhook, --tls-cert-file=/tls/tls.crt, --tls-private-key-file=/tls/tls.key, --port=8443]
        readinessProbe: {httpGet: {scheme: HTTPS, port: 8443, path: /readyz}}
        volumeMounts: [{name: tls, mountPath: /tls, readOnly: true}]
      volumes: [{name: tls, secret: {secretName: tls}}]
`, b64(cert), b64(key), agnhostImage))
	c.readyPods(t, ns, "app=hook", 1)

	const config = `
apiVersion: admissionregistration.k8s.io/v1
kind: %sWebhookConfiguration
metadata: {name: %[2]s}
webhooks:
- name: configmaps.example.com
  sideEffects: None
  admissionReviewVersions: [v1]
  failurePolicy: Fail
  timeoutSeconds: 10
  clientConfig: {caBundle: %[3]s, service: {namespace: %[2]s, name: hook, path: %[4]s}}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[2]s}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [%[5]s], resources: [configmaps]}]
`
	c.apply(t, "", fmt.Sprintf(config, "Mutating", ns, b64(ca), "/mutating-configmaps", "CREATE"))
	c.apply(t, "", fmt.Sprintf(config, "Validating", ns, b64(ca), "/configmaps", "CREATE, DELETE"))
	t.Cleanup(func() {
		a := c.client.AdmissionregistrationV1()
		_ = a.MutatingWebhookConfigurations().Delete(context.Background(), ns, metav1.DeleteOptions{})
		_ = a.ValidatingWebhookConfigurations().Delete(context.Background(), ns, metav1.DeleteOptions{})
	})

	maps := c.client.CoreV1().ConfigMaps(ns)
	create := func(name string, data map[string]string, dry bool) (*v1.ConfigMap, error) {
		opts := metav1.CreateOptions{}
		if dry {
			opts.DryRun = []string{metav1.DryRunAll}
		}
		return maps.Create(t.Context(), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, opts)
	}
	await(t, func() (*v1.ConfigMap, error) { // The server takes a moment to learn of the webhooks.
		m, err := create("mutated", map[string]string{"mutation-start": "yes"}, true)
		if err == nil && m.Data["mutation-stage-1"] != "yes" {
			err = fmt.Errorf("nobody changed %v", m.Data)
		}
		return m, err
	})
	const denial = `admission webhook "configmaps.example.com" denied the request: the configmap contains unwanted key and value`
	awaitTrue(t, denial, func() bool {
		_, err := create("refused", map[string]string{"webhook-e2e-test": "webhook-disallow"}, true)
		return err != nil && err.Error() == denial
	})
	if _, err := create("kept", map[string]string{"webhook-e2e-test": "webhook-nondeletable"}, false); err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(t.Context(), "kept", metav1.DeleteOptions{}); err == nil || !strings.Contains(err.Error(), "cannot be deleted because it contains unwanted key") {
		t.Errorf("delete: %v, want a refusal", err)
	}

	// With the pod gone, a webhook that must not fail fails closed, in the API server's words.
	if err := c.client.AppsV1().Deployments(ns).Delete(t.Context(), "hook", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.readyPods(t, ns, "app=hook", 0)
	await(t, func() (none struct{}, err error) {
		_, err = create("orphan", nil, true)
		want := fmt.Sprintf(`failed calling webhook "configmaps.example.com": failed to call webhook: Post "https://hook.%s.svc:443/mutating-configmaps?timeout=10s": dial tcp `, ns)
		if err != nil && strings.Contains(err.Error(), want) && strings.HasSuffix(err.Error(), ":443: connect: connection refused") {
			return none, nil
		}
		return none, fmt.Errorf("with no webhook: %v", err)
	})
	a := c.client.AdmissionregistrationV1()
	if err := a.MutatingWebhookConfigurations().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := a.ValidatingWebhookConfigurations().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// The namespace can go only when its ConfigMaps can.
	awaitTrue(t, "the webhooks are forgotten", func() bool { return maps.Delete(t.Context(), "kept", metav1.DeleteOptions{}) == nil })
}

// serverCertificate makes a certificate authority and a certificate of it, all in PEM.
func serverCertificate(t *testing.T, host string) (ca, cert, key []byte) {
	t.Helper()
	newKey := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	caKey, leafKey := newKey(), newKey()
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, NotBefore: root.NotBefore, NotAfter: root.NotAfter,
	}
	sign := func(c *x509.Certificate, k *ecdsa.PrivateKey) []byte {
		der, err := x509.CreateCertificate(rand.Reader, c, root, k.Public(), caKey)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	der, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		t.Fatal(err)
	}
	return sign(root, caKey), sign(leaf, leafKey), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}
