package kube

import (
	"net"
	"os"
	"path/filepath"
	"strings"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// accountDir is where a pod finds its service account.
	accountDir = "/var/run/secrets/kubernetes.io/serviceaccount"
	// inside names the context of the cluster that this program runs in.
	inside = "in-cluster"
)

// fromInside is the kubeconfig of a pod: the cluster that it runs in, with the rights of its service account. There is
// no context in it where there is no pod, or one without an account.
func fromInside(dir string, env func(string) string) *clientcmdapi.Config {
	c := clientcmdapi.NewConfig()
	host, port := env("KUBERNETES_SERVICE_HOST"), env("KUBERNETES_SERVICE_PORT")
	namespace, err := os.ReadFile(filepath.Join(dir, "namespace"))
	if host == "" || port == "" || err != nil {
		return c
	}
	c.Clusters[inside] = &clientcmdapi.Cluster{
		Server: "https://" + net.JoinHostPort(host, port), CertificateAuthority: filepath.Join(dir, "ca.crt"),
	}
	// The file is read again and again: the token in it is replaced before it ends.
	c.AuthInfos[inside] = &clientcmdapi.AuthInfo{TokenFile: filepath.Join(dir, "token")}
	c.Contexts[inside] = &clientcmdapi.Context{
		Cluster: inside, AuthInfo: inside, Namespace: strings.TrimSpace(string(namespace)),
	}
	c.CurrentContext = inside
	return c
}
