package controlplane

import (
	"reflect"
	"slices"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// TestEtcdDefaults compares what etcd is configured with, but for what is set on purpose, with the defaults of etcd's
// own program, which an update may change.
func TestEtcdDefaults(t *testing.T) {
	ours := []string{
		"Name", "Logger", "UnsafeNoFsync", "TickMs", "SnapshotCount", "QuotaBackendBytes", "BackendBatchInterval", "BackendFreelistType",
		"ServerFeatureGate",
		// These are for listeners, for other members and for a compaction that is off: kube-apiserver compacts.
		"CORS", "HostWhitelist", "MaxConcurrentStreams", "EnableGRPCGateway", "DiscoveryCfg", "MaxLearners", "StrictReconfigCheck",
		"AutoCompactionMode", "AutoCompactionRetention",
	}
	cfg, stock := etcdConfig(t.TempDir(), zap.NewNop()), embed.NewConfig()
	got, want, compared := reflect.ValueOf(cfg), reflect.ValueOf(*stock), 0
	for i := range got.NumField() {
		name := got.Type().Field(i).Name
		if v := want.FieldByName(name); v.IsValid() && !slices.Contains(ours, name) {
			if got, want := got.Field(i).Interface(), v.Interface(); !reflect.DeepEqual(got, want) {
				t.Errorf("%s is %v, etcd's default is %v", name, got, want)
			}
			compared++
		}
	}
	if compared < 15 {
		t.Errorf("compared %d settings: have they other names now?", compared)
	}
	if cfg.MaxWALFiles != stock.MaxWalFiles || cfg.TokenTTL != stock.AuthTokenTTL || cfg.InitialClusterToken != stock.InitialClusterToken {
		t.Error("the number of WAL files, the life of tokens or the cluster's token is not etcd's default")
	}
	if cfg.ServerFeatureGate.String() != stock.ServerFeatureGate.String() {
		t.Error("the features are not etcd's default")
	}
}

// TestStoreIsNotNew holds that a store counts its revisions from a number that a cluster of weeks has, one for each
// write, and that who watches from there on sees them.
func TestStoreIsNotNew(t *testing.T) {
	e, _, err := startEtcd(t.TempDir(), newFailure(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Stop()
	c := newDirectStore(e).client()
	if err := waitEtcd(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	before := revision(t, t.Context(), c)
	if before < fewestRevisions || before >= mostRevisions {
		t.Errorf("it begins at revision %d", before)
	}
	events := c.Watch(t.Context(), registry, clientv3.WithPrefix(), clientv3.WithRev(before+1))
	if _, err := c.Put(t.Context(), registry+"pods/a", "one"); err != nil {
		t.Fatal(err)
	}
	if after := revision(t, t.Context(), c); after != before+1 {
		t.Errorf("after a write revision %d is %d", before, after)
	}
	if seen := <-events; seen.Err() != nil || len(seen.Events) != 1 || seen.Events[0].Kv.ModRevision != before+1 {
		t.Errorf("a watch says %v, %v", seen.Events, seen.Err())
	}
	if _, err := c.Compact(t.Context(), before+1); err != nil {
		t.Errorf("compact: %v", err)
	}
}
