package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/embed"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	apiserveroptions "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	controllermanageroptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	scheduleroptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// This file is the stock way: the commands kube-apiserver, kube-controller-manager and
// kube-scheduler and an etcd, as they are. Set is only what has to be: ports, files, addresses and who
// may log in. They share a process because the lab's do; as processes of their own they are slower.

const (
	stockCommand = "stock" // the program's argument that runs the stock control plane
	stockToken   = "stock"
)

// runStock runs a stock control plane with files in dir until the process is told to stop. It writes
// dir/kubeconfig when it starts.
func runStock(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	rest.SetDefaultWarningHandler(rest.NoWarnings{})

	endpoint, err := stockEtcd(dir)
	if err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	config := &rest.Config{
		Host: fmt.Sprintf("https://127.0.0.1:%d", port), BearerToken: stockToken,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	}
	if err := stockFiles(dir, config); err != nil {
		return err
	}
	failed := make(chan error, 3)
	go func() { failed <- stockAPIServer(ctx, dir, endpoint, port) }()
	// The others exit or sleep if the API server is not ready yet.
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for {
		if _, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err == nil {
			break
		}
		select {
		case <-time.After(probePoll):
		case err := <-failed:
			return fmt.Errorf("kube-apiserver: %w", err)
		case <-ctx.Done():
			return nil
		}
	}
	go func() { failed <- stockControllerManager(ctx, dir) }()
	go func() { failed <- stockScheduler(ctx, dir) }()
	if err := runHollowNodes(ctx, rest.CopyConfig(config)); err != nil {
		return err
	}
	fmt.Println("ready")
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

func stockEtcd(dir string) (endpoint string, err error) {
	cfg := embed.NewConfig()
	cfg.Dir = filepath.Join(dir, "etcd")
	cfg.LogLevel = "fatal"
	var urls [2]url.URL
	for i := range urls {
		port, err := freePort()
		if err != nil {
			return "", err
		}
		urls[i] = url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", port)}
	}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = urls[:1], urls[:1]
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = urls[1:], urls[1:]
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	_, err = embed.StartEtcd(cfg)
	return urls[0].String(), err
}

// stockFiles writes what the commands read.
func stockFiles(dir string, config *rest.Config) error {
	key, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return err
	}
	k := clientcmdapi.NewConfig()
	k.Clusters["stock"] = &clientcmdapi.Cluster{Server: config.Host, InsecureSkipTLSVerify: true}
	k.AuthInfos["stock"] = &clientcmdapi.AuthInfo{Token: stockToken}
	k.Contexts["stock"] = &clientcmdapi.Context{Cluster: "stock", AuthInfo: "stock"}
	k.CurrentContext = "stock"
	kubeconfig, err := clientcmd.Write(*k)
	if err != nil {
		return err
	}
	for name, b := range map[string][]byte{
		"sa.key":     key,
		"tokens.csv": []byte(stockToken + `,admin,admin,"system:masters"` + "\n"),
		"kubeconfig": kubeconfig,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func stockAPIServer(ctx context.Context, dir, endpoint string, port int) error {
	s := apiserveroptions.NewServerRunOptions()
	if err := parse(s.Flags(),
		"--etcd-servers="+endpoint, "--cert-dir="+dir, fmt.Sprintf("--secure-port=%d", port),
		"--bind-address=127.0.0.1", "--advertise-address=172.18.0.2", "--service-cluster-ip-range=10.96.0.0/16",
		"--authorization-mode=RBAC",
		"--token-auth-file="+filepath.Join(dir, "tokens.csv"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file="+filepath.Join(dir, "sa.key"),
		"--service-account-signing-key-file="+filepath.Join(dir, "sa.key"),
	); err != nil {
		return err
	}
	if err := s.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return err
	}
	opts, err := s.Complete(ctx)
	if err != nil {
		return err
	}
	if errs := opts.Validate(); len(errs) > 0 {
		return utilerrors.NewAggregate(errs)
	}
	return apiserver.Run(ctx, opts)
}

func stockControllerManager(ctx context.Context, dir string) error {
	s, err := controllermanageroptions.NewKubeControllerManagerOptions()
	if err != nil {
		return err
	}
	all, disabled, aliases := controllermanager.KnownControllers(), controllermanager.ControllersDisabledByDefault(),
		controllermanager.ControllerAliases()
	flags := s.Flags(all, disabled, aliases)
	s.ParsedFlags = &flags
	if err := parse(flags,
		"--kubeconfig="+filepath.Join(dir, "kubeconfig"), "--secure-port=0",
		"--service-account-private-key-file="+filepath.Join(dir, "sa.key"),
		"--root-ca-file="+filepath.Join(dir, "apiserver.crt"),
	); err != nil {
		return err
	}
	c, err := s.Config(ctx, all, disabled, aliases)
	if err != nil {
		return err
	}
	return controllermanager.Run(ctx, c.Complete())
}

func stockScheduler(ctx context.Context, dir string) error {
	o := scheduleroptions.NewOptions()
	if err := parse(*o.Flags, "--kubeconfig="+filepath.Join(dir, "kubeconfig"), "--secure-port=0"); err != nil {
		return err
	}
	c, s, err := scheduler.Setup(ctx, o)
	if err != nil {
		return err
	}
	return scheduler.Run(ctx, c, s)
}

// parse sets a command's flags.
func parse(sets cliflag.NamedFlagSets, args ...string) error {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, f := range sets.FlagSets {
		all.AddFlagSet(f)
	}
	return all.Parse(args)
}

// freePort returns a port of the loopback interface that nobody listens on.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
