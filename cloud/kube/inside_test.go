package kube

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
)

// A pod has the cluster that it runs in, with its service account, whose token is read when it is needed.
func TestFromInside(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"namespace": "lab\n", "token": "first", "ca.crt": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
	get := func(name string) string { return env[name] }
	config, err := clientcmd.NewDefaultClientConfig(*fromInside(dir, get), nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	got := []string{config.Host, config.BearerTokenFile, config.CAFile}
	want := []string{"https://10.0.0.1:443", filepath.Join(dir, "token"), filepath.Join(dir, "ca.crt")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if c := fromInside(dir, get); c.Contexts[c.CurrentContext].Namespace != "lab" {
		t.Errorf("%+v", c.Contexts)
	}
	if c := fromInside(t.TempDir(), get); len(c.Contexts) != 0 {
		t.Error("without an account there is a context")
	}
	delete(env, "KUBERNETES_SERVICE_HOST")
	if c := fromInside(dir, get); len(c.Contexts) != 0 {
		t.Error("without a cluster there is a context")
	}
}
