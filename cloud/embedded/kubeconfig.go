package embedded

import (
	"errors"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/aiopslab/aiopslab/cloud/embedded/controlplane"
)

// Kubeconfig returns a kubeconfig with an administrator's rights, for clients outside the process.
// The name is its context's.
func (c *Cloud) Kubeconfig(name string) ([]byte, error) {
	if c.listen == nil {
		return nil, errors.New("the cluster's API is not served outside the process")
	}
	cert, key, err := c.pki.Issue(controlplane.Identity{Name: "kubernetes-admin", Groups: []string{"system:masters"}})
	if err != nil {
		return nil, err
	}
	k := clientcmdapi.NewConfig()
	k.Clusters[name] = &clientcmdapi.Cluster{Server: "https://" + c.Address(), CertificateAuthorityData: c.pki.CACert}
	k.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	k.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	k.CurrentContext = name
	return clientcmd.Write(*k)
}
