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
// context. What else the file holds stays.
func addToKubeconfig(file string, kubeconfig []byte) error {
	add, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return err
	}
	all, err := clientcmd.LoadFromFile(file)
	if os.IsNotExist(err) {
		all, err = clientcmdapi.NewConfig(), nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	maps.Copy(all.Clusters, add.Clusters)
	maps.Copy(all.AuthInfos, add.AuthInfos)
	maps.Copy(all.Contexts, add.Contexts)
	all.CurrentContext = add.CurrentContext
	return clientcmd.WriteToFile(*all, file)
}
