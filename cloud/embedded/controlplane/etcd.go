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
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/proxy/grpcproxy/adapter"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/feature"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	_ "k8s.io/apiserver/pkg/storage/storagebackend/factory" // holds newETCD3Client
)

const (
	// etcdTick paces raft, and an election takes up to etcdElection ticks. A short tick elects the
	// only member sooner, but wakes an idle process more often. The API server needs a while to get
	// to its first request anyway.
	etcdTick     = 50 * time.Millisecond
	etcdElection = 5
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

// directStores maps the endpoint kube-apiserver is configured with to the store behind it.
var directStores sync.Map // string -> *directStore

var hookStores = sync.OnceFunc(func() {
	dial := newETCD3Client
	newETCD3Client = func(c storagebackend.TransportConfig) (*etcdkube.Client, error) {
		if s, ok := directStores.Load(c.ServerList[0]); ok {
			client := &etcdkube.Client{Client: s.(*directStore).client()}
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

// startEtcd runs etcd in dir and returns it with the endpoint to configure kube-apiserver with. It
// does not wait until it is ready; requests do.
func startEtcd(dir string, f *failure) (*embed.Etcd, string, error) {
	hookStores()
	wal.SegmentSizeBytes = etcdSegment
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = "lab", filepath.Join(dir, "etcd")
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(f.logger())
	cfg.UnsafeNoFsync = true
	cfg.TickMs, cfg.ElectionMs = uint(etcdTick.Milliseconds()), uint(etcdElection*etcdTick.Milliseconds())
	cfg.QuotaBackendBytes = etcdQuota
	cfg.SnapshotCount = etcdSnapshotCount
	cfg.BackendBatchInterval = time.Second
	// It does not listen; the advertised address only has to parse.
	nowhere := []url.URL{{Scheme: "http", Host: "127.0.0.1:1"}}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = nil, nowhere
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = nil, nowhere
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)

	started := make(chan error, 1)
	var e *embed.Etcd
	go func() {
		var err error
		e, err = embed.StartEtcd(cfg)
		started <- err
	}()
	select {
	case err := <-started:
		if err != nil {
			return nil, "", fmt.Errorf("start etcd in %s: %w", dir, err)
		}
	case <-f.done:
		return nil, "", f.err
	}
	endpoint := "unix://" + cfg.Dir
	directStores.Store(endpoint, newDirectStore(e.Server))
	return e, endpoint, nil
}

// waitEtcd returns when etcd takes requests.
func waitEtcd(ctx context.Context, e *embed.Etcd) error {
	ctx, cancel := context.WithTimeout(ctx, etcdStartTimeout)
	defer cancel()
	select {
	case <-e.Server.ReadyNotify():
		return nil
	case err := <-e.Err():
		return fmt.Errorf("start etcd: %w", err)
	case <-ctx.Done():
		return fmt.Errorf("start etcd: %w", ctx.Err())
	}
}

// directStore calls an etcd server in the process. kube-apiserver wants a client per resource; theirs
// all watch over one stream, which saves half a dozen goroutines each.
type directStore struct {
	server  *etcdserver.EtcdServer
	watcher clientv3.Watcher
}

func newDirectStore(s *etcdserver.EtcdServer) *directStore {
	c := clientv3.NewCtxClient(context.Background(), clientv3.WithZapLogger(s.Logger()))
	w := clientv3.NewWatchFromWatchClient(adapter.WatchServerToWatchClient(v3rpc.NewWatchServer(s)), c)
	return &directStore{server: s, watcher: w}
}

// client returns a new client. Closing it leaves the others alone.
func (d *directStore) client() *clientv3.Client {
	c := clientv3.NewCtxClient(context.Background(), clientv3.WithZapLogger(d.server.Logger()))
	c.KV = clientv3.NewKVFromKVClient(adapter.KvServerToKvClient(v3rpc.NewQuotaKVServer(d.server)), c)
	c.Lease = clientv3.NewLeaseFromLeaseClient(adapter.LeaseServerToLeaseClient(v3rpc.NewQuotaLeaseServer(d.server)), c,
		time.Second)
	c.Maintenance = clientv3.NewMaintenanceFromMaintenanceClient(
		adapter.MaintenanceServerToMaintenanceClient(v3rpc.NewMaintenanceServer(d.server, nil)), c)
	c.Watcher = sharedWatcher{d.watcher}
	return c
}

// sharedWatcher is a watcher that outlives the client it is in.
type sharedWatcher struct{ clientv3.Watcher }

func (sharedWatcher) Close() error { return nil }
