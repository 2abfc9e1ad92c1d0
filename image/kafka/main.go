package kafka

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/aiopslab/aiopslab/image/internal/meter"
	"github.com/aiopslab/aiopslab/kit"
)

// node is the broker's ID.
const node = 0

// segmentBytes is how much of a log is dropped at a time.
const segmentBytes = 1 << 20

// broker is a server.
type broker struct {
	env      *kit.Env
	settings *settings
	log      *journal
	meter    *meter.Meter
	holder   *kit.Holder
	cluster  *kfake.Cluster
	inlet    *merged
	state    state
	traffic  traffic
	before   memory
}

// Main runs a broker until it is told to stop.
func Main(ctx context.Context, env *kit.Env) error {
	log := &journal{out: env.Stdout}
	s, err := readSettings(env)
	if err != nil {
		log.fail(classServer, "The broker cannot start, its settings are wrong: %v", err)
		return kit.Exit(1)
	}
	b := &broker{
		env: env, settings: s, log: log, meter: meter.New(env.CPU), holder: kit.NewHolder(env), state: newState(),
	}
	defer b.holder.Release()
	env.Keep(kit.NotKept)
	return b.run(ctx)
}

func (b *broker) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	b.log.info(classServer, "[KafkaRaftServer nodeId=%d] Starting Kafka %s", node, Version)
	b.log.info(classLog, "Keeping up to %d bytes of each partition in memory, for %d ms", b.settings.retentionBytes,
		b.settings.retentionMS)
	var err error
	if b.inlet, err = b.listen(ctx, &wg); err != nil {
		b.log.fail(classServer, "Cannot listen: %v", err)
		return kit.Exit(1)
	}
	defer b.inlet.Close()
	metrics, err := b.env.Net.Listen("tcp", ":"+b.settings.metricsPort)
	if err != nil {
		b.log.fail(classServer, "Cannot listen for metrics: %v", err)
		return kit.Exit(1)
	}
	defer metrics.Close()
	if b.cluster, err = kfake.NewCluster(b.options()...); err != nil {
		return fmt.Errorf("start the broker: %w", err)
	}
	b.remember()
	close(b.inlet.ready)
	defer b.cluster.Close()
	defer b.inlet.hangUp()
	stats, err := newWatcher(b)
	if err != nil {
		return err
	}
	defer stats.close()
	srv := &http.Server{Handler: stats, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10}
	defer srv.Close()
	wg.Go(func() { _ = srv.Serve(metrics) })
	wg.Go(func() { b.keepHouse(ctx) })
	b.log.info(classServer, "[KafkaRaftServer nodeId=%d] Kafka Server started, clients are told %s", node,
		net.JoinHostPort(b.settings.host, b.settings.port))
	<-ctx.Done()
	b.log.info(classServer, "[KafkaRaftServer nodeId=%d] Shutting down, and closing %d connections", node,
		b.inlet.open.Load())
	return ctx.Err()
}

// options are what kfake is told. It is one broker, which advertises what it listens on; that is what the settings say.
func (b *broker) options() []kfake.Opt {
	versions := kversion.V3_9_0()
	versions.EachMaxKeyVersion(func(key, _ int16) {
		if !served[key] {
			versions.SetMaxKeyVersion(key, -1)
		}
	})
	opts := []kfake.Opt{
		kfake.NumBrokers(1),
		kfake.ClusterID(clusterID(b.env)),
		kfake.DefaultNumPartitions(b.settings.partitions),
		kfake.MaxVersions(versions),
		kfake.ListenFn(func(string, string) (net.Listener, error) { return b.inlet, nil }),
		kfake.BrokerConfigs(map[string]string{
			"log.segment.bytes":                         strconv.Itoa(segmentBytes),
			"log.retention.bytes":                       strconv.FormatInt(b.settings.retentionBytes, 10),
			"log.retention.ms":                          strconv.FormatInt(b.settings.retentionMS, 10),
			"message.max.bytes":                         strconv.Itoa(b.settings.messageBytes),
			"max.incremental.fetch.session.cache.slots": strconv.Itoa(maxConns),
		}),
	}
	if b.settings.autoCreate {
		opts = append(opts, kfake.AllowAutoTopicCreation())
	}
	return opts
}

// clusterID is what CLUSTER_ID says, or a name in Kafka's manner.
func clusterID(env *kit.Env) string {
	if id := env.Getenv("CLUSTER_ID"); id != "" {
		return id
	}
	sum := sha256.Sum256([]byte(env.Hostname))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}
