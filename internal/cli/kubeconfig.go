package cli

import (
	"fmt"
	"maps"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// contextName is the environment's context in a kubeconfig.
const contextName = "aiopslab"

// addToKubeconfig puts an environment's kubeconfig into somebody's file and makes it the current
// context. What else the file holds stays. Restore takes it out again: what had its names before is
// back, and so is the context that was the current one, unless another was chosen meanwhile.
func addToKubeconfig(file string, kubeconfig []byte) (restore func() error, err error) {
	add, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, err
	}
	all, err := clientcmd.LoadFromFile(file)
	missing := os.IsNotExist(err)
	if missing {
		all, err = clientcmdapi.NewConfig(), nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	before := all.DeepCopy()
	maps.Copy(all.Clusters, add.Clusters)
	maps.Copy(all.AuthInfos, add.AuthInfos)
	maps.Copy(all.Contexts, add.Contexts)
	all.CurrentContext = add.CurrentContext
	restore = func() error {
		now, err := clientcmd.LoadFromFile(file)
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		if name := add.CurrentContext; now.Contexts[name] == nil || now.Clusters[now.Contexts[name].Cluster] == nil ||
			now.Clusters[now.Contexts[name].Cluster].Server != add.Clusters[add.Contexts[name].Cluster].Server {
			return nil // Another environment has taken its place.
		}
		putBack(now.Clusters, before.Clusters, add.Clusters)
		putBack(now.AuthInfos, before.AuthInfos, add.AuthInfos)
		putBack(now.Contexts, before.Contexts, add.Contexts)
		if now.CurrentContext == add.CurrentContext {
			now.CurrentContext = before.CurrentContext
		}
		if missing && len(now.Clusters)+len(now.AuthInfos)+len(now.Contexts) == 0 {
			return os.Remove(file)
		}
		return clientcmd.WriteToFile(*now, file)
	}
	return restore, clientcmd.WriteToFile(*all, file)
}

// putBack undoes the adding of entries.
func putBack[T any](now, before, added map[string]*T) {
	for name := range added {
		if old, ok := before[name]; ok {
			now[name] = old
		} else {
			delete(now, name)
		}
	}
}
