package controlplane

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"time"
	_ "unsafe" // for linkname

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"
	etcdkube "go.etcd.io/etcd/client/v3/kubernetes"
	"go.etcd.io/etcd/server/v3/config"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/features"
	"go.etcd.io/etcd/server/v3/proxy/grpcproxy/adapter"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
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

	// fewestRevisions and mostRevisions are how many writes a small cluster has seen after a few weeks: leases are
	// renewed once or twice a second in all. How many it is, is not drawn from the seed of a run: a cluster is started
	// before it has one, and may serve several runs. What follows depends on who writes first, so no two runs of a seed
	// have the same resource versions anyway.
	fewestRevisions, mostRevisions = 1_500_000, 4_000_000
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
func startEtcd(dir string, f *failure) (*etcdserver.EtcdServer, string, error) {
	hookStores()
	wal.SegmentSizeBytes = etcdSegment
	cfg := etcdConfig(filepath.Join(dir, "etcd"), f.logger())
	started := make(chan error, 1)
	var server *etcdserver.EtcdServer
	go func() {
		var err error
		if server, err = etcdserver.NewServer(cfg); err == nil {
			err = ageStore(server, fewestRevisions+rand.Int64N(mostRevisions-fewestRevisions))
		}
		if err == nil {
			server.Start()
		}
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
	endpoint := "unix://" + cfg.DataDir
	directStores.Store(endpoint, newDirectStore(server))
	return server, endpoint, nil
}

// ageStore has a new store count from a revision, as if what it held before had been compacted. It is called before the
// server is started, so nobody sees the number change.
func ageStore(server *etcdserver.EtcdServer, revision int64) error {
	b, tx := server.Backend(), server.Backend().BatchTx()
	tx.LockOutsideApply()
	mvcc.UnsafeSetScheduledCompact(tx, revision)
	mvcc.UnsafeSetFinishedCompact(tx, revision)
	tx.Unlock()
	return server.KV().Restore(b)
}

// etcdConfig configures a cluster of one member. What is not a constant above is etcd's own default. The package that
// has those (embed) is not used: it brings etcd's listeners and their gateway, and ours listens nowhere.
func etcdConfig(dir string, log *zap.Logger) config.ServerConfig {
	const name = "lab"
	// Nobody can reach the advertised address. It only has to parse.
	nowhere := types.URLs{{Scheme: "http", Host: "127.0.0.1:1"}}
	return config.ServerConfig{
		Name: name, DataDir: dir, Logger: log, UnsafeNoFsync: true,
		ClientURLs: nowhere, PeerURLs: nowhere, InitialPeerURLsMap: types.URLsMap{name: nowhere},
		InitialClusterToken: "etcd-cluster", NewCluster: true,
		TickMs: uint(etcdTick.Milliseconds()), ElectionTicks: etcdElection,
		InitialElectionTickAdvance: true, PreVote: true,
		SnapshotCount: etcdSnapshotCount, SnapshotCatchUpEntries: etcdserver.DefaultSnapshotCatchUpEntries,
		MaxSnapFiles: 5, MaxWALFiles: 5,
		QuotaBackendBytes: etcdQuota, BackendBatchInterval: time.Second, BackendFreelistType: bbolt.FreelistMapType,
		MaxTxnOps: 128, MaxRequestBytes: 3 << 19,
		WarningApplyDuration: 100 * time.Millisecond, WarningUnaryRequestDuration: 300 * time.Millisecond,
		CompactHashCheckTime: time.Minute, DowngradeCheckTime: 5 * time.Second,
		AuthToken: "simple", BcryptCost: 10, TokenTTL: 300, V2Deprecation: config.V2DeprDefault,
		ServerFeatureGate: features.NewDefaultServerFeatureGate(name, log), Metrics: "basic",
	}
}

// waitEtcd returns when etcd takes requests.
func waitEtcd(ctx context.Context, server *etcdserver.EtcdServer) error {
	ctx, cancel := context.WithTimeout(ctx, etcdStartTimeout)
	defer cancel()
	select {
	case <-server.ReadyNotify():
		return nil
	case <-server.StopNotify():
		return errors.New("start etcd: it stopped before it was ready")
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
