package metricsserver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"flag"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"

	"github.com/aiopslab/aiopslab/image/incluster"
	"github.com/aiopslab/aiopslab/kit"
)

// Image returns the image.
func Image() kit.Image {
	return kit.Image{
		Names:      []string{"registry.k8s.io/metrics-server/metrics-server"},
		Tags:       `v0\.[678]\.\d`,
		Entrypoint: []string{"/metrics-server"},
		Programs:   map[string]kit.Program{"/metrics-server": Main},
		User:       "65534",
		Memory:     24 << 20,
		Size:       20_000_000,
	}
}

// Main is the program.
func Main(ctx context.Context, env *kit.Env) error {
	flags := flag.NewFlagSet("metrics-server", flag.ContinueOnError)
	flags.SetOutput(env.Stderr)
	port := flags.Int("secure-port", 443, "The port on which to serve HTTPS")
	for name, usage := range map[string]string{
		"cert-dir": "The directory where the TLS certs are located",
		"kubelet-preferred-address-types": "The priority of node address types to use when determining which address " +
			"to use to connect to a particular node",
		"metric-resolution": "The resolution at which metrics-server will retain metrics",
	} {
		flags.String(name, "", usage)
	}
	flags.Bool("kubelet-use-node-status-port", false, "Use the port in the node status")
	flags.Bool("kubelet-insecure-tls", false, "Do not verify CA of serving certificates presented by Kubelets")
	if err := flags.Parse(env.Args[1:]); err != nil {
		return kit.Exit(2)
	}
	config, err := incluster.Config(env)
	if err != nil {
		return err
	}
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	nodes, err := newKubelets(config)
	if err != nil {
		return err
	}
	cert, err := certificate(env.Since())
	if err != nil {
		return err
	}
	proxies, err := frontProxies(ctx, client)
	if err != nil {
		return fmt.Errorf("unable to load configmap based request-header-client-ca-file: %w", err)
	}
	l, err := env.Net.Listen("tcp", fmt.Sprintf(":%d", *port))
	if err != nil {
		return err
	}
	srv := &http.Server{
		Handler:  (&api{client: client, nodes: nodes}).routes(),
		ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{cert}, ClientCAs: proxies,
			ClientAuth: tls.VerifyClientCertIfGiven,
		},
	}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	fmt.Fprintf(env.Stderr, "I%s       1 secure_serving.go:213] Serving securely on [::]:%d\n",
		time.Now().UTC().Format("0102 15:04:05.000000"), *port)
	return kit.IgnoreClosed(srv.ServeTLS(l, "", ""))
}

// certificate makes the own, self-signed certificate of a server that was started at a time.
func certificate(started time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "metrics-server"},
		DNSNames: []string{"metrics-server", "localhost"}, NotBefore: started.Add(-time.Hour),
		NotAfter: started.AddDate(1, 0, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// frontProxies are who may pass requests on: the API server, by the certificate it publishes.
func frontProxies(ctx context.Context, client clientset.Interface) (*x509.CertPool, error) {
	m, err := client.CoreV1().ConfigMaps("kube-system").Get(ctx, "extension-apiserver-authentication",
		metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(m.Data["requestheader-client-ca-file"]))
	return pool, nil
}
