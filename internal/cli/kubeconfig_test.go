package cli

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func config(t *testing.T, server string, contexts ...string) []byte {
	t.Helper()
	c := clientcmdapi.NewConfig()
	for _, name := range contexts {
		c.Clusters[name] = &clientcmdapi.Cluster{Server: server}
		c.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: "t"}
		c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
		c.CurrentContext = name
	}
	b, err := clientcmd.Write(*c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Who lends an environment his kubeconfig gets it back as it was.
func TestKubeconfigIsRestored(t *testing.T) {
	ours := config(t, "https://127.0.0.1:1", contextName)
	add := func(file string) (restore func()) {
		undo, err := addToKubeconfig(file, ours)
		if err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := undo(); err != nil {
				t.Error(err)
			}
		}
	}
	current := func(file string) string {
		c, err := clientcmd.LoadFromFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return c.CurrentContext
	}
	file := filepath.Join(t.TempDir(), "config")
	before := config(t, "https://prod", "prod")
	if err := os.WriteFile(file, before, 0o600); err != nil {
		t.Fatal(err)
	}
	restore := add(file)
	if got := current(file); got != contextName {
		t.Errorf("the context is %s", got)
	}
	restore()
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("%s, %v", after, err)
	}

	restore = add(file)
	c, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c.Contexts["mine"], c.CurrentContext = c.Contexts["prod"], "mine"
	if err := clientcmd.WriteToFile(*c, file); err != nil {
		t.Fatal(err)
	}
	restore()
	if got := current(file); got != "mine" {
		t.Errorf("a context that was chosen meanwhile is replaced by %s", got)
	}

	fresh := filepath.Join(t.TempDir(), "new")
	add(fresh)()
	if _, err := os.Stat(fresh); !os.IsNotExist(err) {
		t.Errorf("a file that was not there before: %v", err)
	}
}
