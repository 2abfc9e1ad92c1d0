package controlplane

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"
	"time"
	_ "unsafe" // for linkname

	clientv3 "go.etcd.io/etcd/client/v3"
	etcdkube "go.etcd.io/etcd/client/v3/kubernetes"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/feature"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	_ "k8s.io/apiserver/pkg/storage/storagebackend/factory" // holds newETCD3Client
)

const (
	// etcdTick paces raft. The stock 100 ms make the only member wait a second to elect itself.
	etcdTick = 10 * time.Millisecond
	// etcdSegment is how much disk etcd allocates ahead; the stock 64 MB would be most of what an
	// environment uses.
	etcdSegment = 1 << 20
	// etcdQuota is the size at which etcd refuses writes.
	etcdQuota = 1 << 30
	// etcdSnapshotCount is after how many writes etcd compacts its log in memory.
	etcdSnapshotCount = 10_000

	etcdStartTimeout = 30 * time.Second
)

// kube-apiserver opens an etcd client per resource through this variable. Replacing it hands out
// clients that call the embedded server directly.
//
//go:linkname newETCD3Client k8s.io/apiserver/pkg/storage/storagebackend/factory.newETCD3Client
var newETCD3Client func(storagebackend.TransportConfig) (*etcdkube.Client, error)

// directStores maps the endpoint kube-apiserver is configured with to the server behind it.
var directStores sync.Map // string -> *embed.Etcd

var hookStores = sync.OnceFunc(func() {
	dial := newETCD3Client
	newETCD3Client = func(c storagebackend.TransportConfig) (*etcdkube.Client, error) {
		if e, ok := directStores.Load(c.ServerList[0]); ok {
			client := &etcdkube.Client{Client: v3client.New(e.(*embed.Etcd).Server)}
			client.Kubernetes = client
			return client, nil
		}
		return dial(c)
	}
	feature.DefaultFeatureSupportChecker = embeddedFeatures{feature.DefaultFeatureSupportChecker}
})

// embeddedFeatures answers for etcd what kube-apiserver asks a remote one by its version.
type embeddedFeatures struct{ feature.FeatureSupportChecker }

func (embeddedFeatures) Supports(storage.Feature) bool { return true }

// startEtcd runs etcd in dir and returns it with the endpoint to configure kube-apiserver with.
func startEtcd(ctx context.Context, dir string) (*embed.Etcd, string, error) {
	hookStores()
	wal.SegmentSizeBytes = etcdSegment
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = "lab", filepath.Join(dir, "etcd")
	cfg.LogLevel = "fatal"
	cfg.UnsafeNoFsync = true
	cfg.TickMs, cfg.ElectionMs = uint(etcdTick.Milliseconds()), uint(10*etcdTick.Milliseconds())
	cfg.QuotaBackendBytes = etcdQuota
	cfg.SnapshotCount = etcdSnapshotCount
	cfg.BackendBatchInterval = time.Second
	// Nobody connects: the listeners are sockets in dir, the advertised address only has to parse.
	socket := func(name string) []url.URL { return []url.URL{{Scheme: "unix", Path: filepath.Join(dir, name)}} }
	nowhere := []url.URL{{Scheme: "http", Host: "127.0.0.1:1"}}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = socket("c"), nowhere
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = socket("p"), nowhere
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)

	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, "", fmt.Errorf("start etcd in %s: %w", dir, err)
	}
	ctx, cancel := context.WithTimeout(ctx, etcdStartTimeout)
	defer cancel()
	select {
	case <-e.Server.ReadyNotify():
	case err := <-e.Err():
		e.Close()
		return nil, "", fmt.Errorf("start etcd in %s: %w", dir, err)
	case <-ctx.Done():
		e.Close()
		return nil, "", fmt.Errorf("start etcd in %s: %w", dir, ctx.Err())
	}
	endpoint := cfg.ListenClientUrls[0].String()
	directStores.Store(endpoint, e)
	return e, endpoint, nil
}

// etcdClient returns a client that calls e directly.
func etcdClient(e *embed.Etcd) *clientv3.Client { return v3client.New(e.Server) }
