package kafka

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lab is a broker and a machine of its clients.
type lab struct {
	t      testing.TB
	server *kittest.Machine
	client *kittest.Machine
	run    *kittest.Run
}

// start runs a broker whose variables are name=value.
func start(t testing.TB, vars ...string) *lab {
	t.Helper()
	return startWith(t, func(env *kit.Env) {
		for _, v := range vars {
			name, value, _ := strings.Cut(v, "=")
			env.Vars[name] = value
		}
	})
}

// startWith runs a broker in a world that is changed first.
func startWith(t testing.TB, change func(*kit.Env)) *lab {
	t.Helper()
	w := kittest.New(t)
	l := &lab{t: t, server: w.Machine("kafka", "10.244.0.2"), client: w.Machine("client", "10.244.0.3")}
	w.Name("kafka", l.server.Addr)
	l.server.Install(Image(nil))
	env := l.server.Env("/etc/kafka/docker/run")
	env.Vars["KAFKA_ADVERTISED_LISTENERS"] = "PLAINTEXT://kafka:9092"
	change(env)
	l.run = l.server.Run(Main, env)
	l.run.Await("Kafka Server started")
	return l
}

// connect returns a client as a stranger has one.
func (l *lab) connect(opts ...kgo.Opt) *kgo.Client {
	l.t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers("kafka:9092"), kgo.Dialer(l.client.Env().Net.DialContext), kgo.AllowAutoTopicCreation(),
		kgo.MetadataMinAge(10 * time.Millisecond), kgo.RetryTimeout(20 * time.Second),
	}, opts...)...)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(c.Close)
	return c
}

func (l *lab) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	l.t.Cleanup(cancel)
	return ctx
}

// produce sends messages.
func (l *lab) produce(topic string, values ...string) {
	l.t.Helper()
	c := l.connect()
	defer c.Close()
	for _, v := range values {
		if err := c.ProduceSync(l.context(), &kgo.Record{Topic: topic, Value: []byte(v)}).FirstErr(); err != nil {
			l.t.Fatal(err)
		}
	}
}

// tool runs a program of the image and returns what it prints, and its exit code.
func (l *lab) tool(p kit.Program, stdin string, args ...string) (string, int) {
	l.t.Helper()
	env := l.server.Env(append([]string{"tool", "--bootstrap-server", "localhost:9092"}, args...)...)
	env.Stdin = strings.NewReader(stdin)
	out := &kittest.Buffer{}
	env.Stdout, env.Stderr = out, out
	code := kit.Run(l.context(), p, env)
	return out.String(), code
}

// poll reads at least n messages.
func poll(t testing.TB, ctx context.Context, c *kgo.Client, n int) (values []string) {
	t.Helper()
	for len(values) < n {
		f := c.PollFetches(ctx)
		if err := f.Err(); err != nil {
			t.Fatalf("after %d messages: %v", len(values), err)
		}
		f.EachRecord(func(r *kgo.Record) { values = append(values, string(r.Value)) })
	}
	return values
}

func TestConsumerGroup(t *testing.T) {
	l := start(t, "KAFKA_NUM_PARTITIONS=2")
	ctx := l.context()
	l.produce("orders", "a", "b", "c", "d")
	first := l.connect(kgo.ConsumerGroup("accounting"), kgo.ConsumeTopics("orders"), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	got := poll(t, ctx, first, 4)
	slices.Sort(got)
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, got); diff != "" {
		t.Fatal(diff)
	}
	if err := first.CommitUncommittedOffsets(ctx); err != nil {
		t.Fatal(err)
	}

	// Another one joins, and each has a partition.
	rebalanced := make(chan int, 10)
	second := l.connect(kgo.ConsumerGroup("accounting"), kgo.ConsumeTopics("orders"), kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, m map[string][]int32) {
			rebalanced <- len(m["orders"])
		}))
	polling, stop := context.WithCancel(ctx)
	defer stop()
	for _, c := range []*kgo.Client{first, second} {
		go func() {
			for polling.Err() == nil {
				c.PollFetches(polling)
			}
		}()
	}
	for n := range rebalanced {
		if n == 1 {
			break
		}
	}
	admin := kadm.NewClient(l.connect())
	groups, err := admin.DescribeGroups(ctx, "accounting")
	if err != nil || len(groups["accounting"].Members) != 2 {
		t.Fatalf("%v, %v", groups, err)
	}

	// Both go, and the group is where it was.
	stop()
	first.Close()
	second.Close()
	l.produce("orders", "e", "f", "g")
	lags, err := admin.Lag(ctx, "accounting")
	if err != nil || lags["accounting"].Lag.Total() != 3 {
		t.Fatalf("lag of %v, %v", lags["accounting"].Lag, err)
	}
	text := kittest.Get(t, l.client, "http://kafka:9404/metrics").Body
	sum := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, `kafka_consumer_group_lag{group="accounting",topic="orders",partition=`) {
			var n int
			if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' '):], &n); err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	if sum != 3 || !strings.Contains(text, `kafka_server_brokertopicmetrics_messagesin_total{topic="orders"} 7`) {
		t.Errorf("a lag of %d in\n%s", sum, text)
	}
	third := l.connect(kgo.ConsumerGroup("accounting"), kgo.ConsumeTopics("orders"))
	got = poll(t, ctx, third, 3)
	slices.Sort(got)
	if diff := cmp.Diff([]string{"e", "f", "g"}, got); diff != "" {
		t.Error(diff)
	}
	if log := l.run.Stdout.String(); !strings.Contains(log, "joins group accounting") {
		t.Errorf("the log does not tell of the group:\n%s", log)
	}
}

// TestWithoutAcks sends as the shop's checkout does: nobody waits for an answer.
func TestWithoutAcks(t *testing.T) {
	l := start(t)
	c := l.connect(kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite())
	for i := range 20 {
		if err := c.ProduceSync(l.context(), &kgo.Record{Topic: "orders", Value: fmt.Append(nil, i)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	in := l.connect(kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if got := poll(t, l.context(), in, 20); got[0] != "0" || got[19] != "19" {
		t.Errorf("%q", got)
	}
}

func TestAdvertised(t *testing.T) {
	l := start(t, "KAFKA_ADVERTISED_LISTENERS=CONTROLLER://other:9093,PLAINTEXT://kafka:9092")
	brokers, err := kadm.NewClient(l.connect()).ListBrokers(l.context())
	if err != nil || len(brokers) != 1 || brokers[0].Host != "kafka" || brokers[0].Port != 9092 {
		t.Errorf("%+v, %v", brokers, err)
	}
}

func TestSettings(t *testing.T) {
	tests := []struct {
		vars map[string]string
		want string // the error, or what is set
	}{
		{nil, "[:9092] [:9093] kafka-0:9092 1 8388608"},
		{map[string]string{"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:29092"}, "[:9092] [:9093] kafka:29092 1 8388608"},
		{
			map[string]string{"KAFKA_LISTENERS": "A://0.0.0.0:1,B://127.0.0.1:2", "KAFKA_NUM_PARTITIONS": "3"},
			"[:1 127.0.0.1:2] [] kafka-0:1 3 8388608",
		},
		{map[string]string{"KAFKA_LOG_RETENTION_BYTES": "-1"}, "[:9092] [:9093] kafka-0:9092 1 16777216"},
		{map[string]string{"KAFKA_LISTENERS": "CONTROLLER://:9093"}, "there is no listener for clients"},
		{map[string]string{"KAFKA_ADVERTISED_LISTENERS": "kafka:9092"}, `"kafka:9092" is no listener`},
		{map[string]string{"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:99999"}, "has no port"},
		{map[string]string{"KAFKA_NUM_PARTITIONS": "many"}, "want a number from 1 to 100"},
		{map[string]string{"KAFKA_AUTO_CREATE_TOPICS_ENABLE": "yes"}, "want true or false"},
	}
	for _, tt := range tests {
		s, err := readSettings(&kit.Env{Vars: tt.vars, Hostname: "kafka-0"})
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprint(s.listen, " ", s.controller, " ", s.host+":"+s.port, " ", s.partitions, " ", s.retentionBytes)
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%v: %s, want %s", tt.vars, got, tt.want)
		}
	}
}

func TestTools(t *testing.T) {
	l := start(t)
	tests := []struct {
		name  string
		tool  kit.Program
		stdin string
		args  string
		code  int
		want  string
	}{
		{"no topics", Topics, "", "--list", 0, ""},
		{"create", Topics, "", "--create --topic orders --partitions 2 --replication-factor 1", 0, "Created topic orders.\n"},
		{"again", Topics, "", "--create --topic orders", 1, "Topic 'orders' already exists."},
		{"again, if it is not there", Topics, "", "--create --topic orders --if-not-exists", 0, ""},
		{"too many partitions", Topics, "", "--create --topic big --partitions 10000", 1, "POLICY_VIOLATION"},
		{"too much", Topics, "", "--create --topic big --config retention.bytes=-1", 1, "POLICY_VIOLATION"},
		{"compaction", Topics, "", "--create --topic big --config cleanup.policy=compact", 1, "POLICY_VIOLATION"},
		{"a bad name", Topics, "", "--create --topic a/b", 1, "INVALID_TOPIC_EXCEPTION"},
		{"a setting", Topics, "", "--create --topic short --config retention.ms=1000", 0, "Created topic short."},
		{"list", Topics, "", "--list", 0, "orders\nshort\n"},
		{"describe", Topics, "", "--describe --topic orders", 0, "PartitionCount: 2\tReplicationFactor: 1\tConfigs: \n" +
			"\tTopic: orders\tPartition: 0\tLeader: 0\tReplicas: 0\tIsr: 0\n"},
		{"describe a setting", Topics, "", "--describe --topic short", 0, "Configs: retention.ms=1000"},
		{"describe none", Topics, "", "--describe --topic none", 1, "Topic 'none' does not exist as expected"},
		{"grow", Topics, "", "--alter --topic orders --partitions 3", 0, ""},
		{"grow too much", Topics, "", "--alter --topic orders --partitions 3000", 1, "POLICY_VIOLATION"},
		{"delete", Topics, "", "--delete --topic short", 0, ""},
		{"delete none", Topics, "", "--delete --topic short", 1, "Topic 'short' does not exist"},
		{"two actions", Topics, "", "--list --describe", 1, "exactly one action"},
		{"an unknown option", Topics, "", "--lst", 1, "unknown flag: --lst"},

		{"produce", ConsoleProducer, "one\ntwo\nthree\n", "--topic lines", 0, ""},
		{"produce with keys", ConsoleProducer, "k:v\n", "--topic keyed --property parse.key=true --property key.separator=:", 0, ""},
		{"produce without the key", ConsoleProducer, "v\n", "--topic keyed --property parse.key=true", 1, "No key separator"},
		{"produce to a bad name", ConsoleProducer, "v\n", "--topic a/b", 1, "Error when sending message"},
		{
			"consume", ConsoleConsumer, "", "--topic lines --from-beginning --max-messages 3 --group readers", 0,
			"one\ntwo\nthree\nProcessed a total of 3 messages\n",
		},
		{"consume with keys", ConsoleConsumer, "", "--topic keyed --partition 0 --offset 0 --max-messages 1 --property print.key=true " +
			"--property print.offset=true --property key.separator=/", 0, "Offset:0/k/v\n"},
		{"consume nothing", ConsoleConsumer, "", "--topic lines --timeout-ms 50", 0, "Processed a total of 0 messages\n"},
		{"more lines", ConsoleProducer, "four\n", "--topic lines", 0, ""},

		{"list groups", Groups, "", "--list", 0, "readers\n"},
		{"lag", Groups, "", "--describe --group readers", 0, "LAG"},
		{"all groups", Groups, "", "--describe --all-groups", 0, "readers  lines  0          3               4               1"},
		{"state", Groups, "", "--describe --group readers --state", 0, "Empty"},
		{"members", Groups, "", "--describe --group readers --members", 0, "#PARTITIONS"},
		{"no such group", Groups, "", "--describe --group none", 1, "Consumer group 'none' does not exist."},
		{"which group", Groups, "", "--describe", 1, "--group, --all-groups"},
		{
			"reset", Groups, "", "--reset-offsets --group readers --topic lines --to-earliest --execute", 0,
			"readers  lines  0          0",
		},
		{"lag after it", Groups, "", "--describe --group readers", 0, "0               4               4"},
		{"reset to nowhere", Groups, "", "--reset-offsets --group readers", 1, "Say where to reset to"},
		{"delete a group", Groups, "", "--delete --group readers", 0, "was successful"},
		{"no groups", Groups, "", "--list", 0, ""},
	}
	for _, tt := range tests {
		got, code := l.tool(tt.tool, tt.stdin, strings.Fields(tt.args)...)
		if code != tt.code || !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s: exit %d\n%s\nwant %d\n%s", tt.name, code, got, tt.code, tt.want)
		}
	}
	env := l.server.Env("kafka-topics.sh", "--list")
	if code := kit.Run(l.context(), Topics, env); code != 1 {
		t.Errorf("without a server: exit %d", code)
	}
}

// TestRetention has much more written than is kept: the container's memory stays small, and the newest are there.
func TestRetention(t *testing.T) {
	l := start(t, "KAFKA_LOG_RETENTION_BYTES=2000000")
	c := l.connect(kgo.ProducerBatchCompression(kgo.NoCompression()))
	const each, all = 100 << 10, 300
	for i := range all {
		r := &kgo.Record{Topic: "big", Value: append(make([]byte, each), fmt.Sprint(i)...)}
		if err := c.ProduceSync(l.context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	if used := l.server.Env().Memory.Info().Used; used > 16<<20 {
		t.Errorf("%d MiB are held for %d MiB of messages", used>>20, each*all>>20)
	}
	admin := kadm.NewClient(l.connect())
	starts, err := admin.ListStartOffsets(l.context(), "big")
	if err != nil || starts["big"][0].Offset < all/2 {
		t.Errorf("the log begins at %v, %v", starts["big"][0], err)
	}
	in := l.connect(kgo.ConsumeTopics("big"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for got := ""; !strings.HasSuffix(got, fmt.Sprint(all-1)); {
		all := poll(t, l.context(), in, 1)
		got = all[len(all)-1]
	}
}

// TestPolicy refuses what would take more memory than the settings say.
func TestPolicy(t *testing.T) {
	l := start(t, "KAFKA_AUTO_CREATE_TOPICS_ENABLE=false")
	admin := kadm.NewClient(l.connect())
	ctx := l.context()
	if _, err := admin.CreateTopic(ctx, 1, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	value := "-1"
	for _, set := range []kadm.AlterConfig{{Name: "retention.bytes", Value: &value}, {Name: "segment.bytes", Value: &value}} {
		got, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{set}, "orders")
		if err != nil || got[0].Err != kerr.PolicyViolation {
			t.Errorf("%s: %v, %v", set.Name, got, err)
		}
		old, err := admin.AlterTopicConfigsState(ctx, []kadm.AlterConfig{set}, "orders")
		if err != nil || old[0].Err != kerr.PolicyViolation {
			t.Errorf("%s, the old way: %v, %v", set.Name, old, err)
		}
	}
	value = "60000"
	if got, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "retention.ms", Value: &value}}, "orders"); err != nil || got[0].Err != nil {
		t.Errorf("retention.ms: %v, %v", got, err)
	}
	if got, err := admin.AlterBrokerConfigs(ctx, []kadm.AlterConfig{{Name: "log.retention.ms", Value: &value}}); err != nil || got[0].Err != kerr.PolicyViolation {
		t.Errorf("the broker: %v, %v", got, err)
	}
	for i := range maxTopics + 1 {
		resp, err := admin.CreateTopics(ctx, 1, 1, nil, fmt.Sprint("t", i))
		if err != nil {
			t.Fatal(err)
		}
		if got := resp.Error(); (got != nil) != (i >= maxTopics-1) {
			t.Fatalf("topic %d: %v", i, got)
		}
	}
	none := l.connect(kgo.DefaultProduceTopic("absent"), kgo.UnknownTopicRetries(1))
	if err := none.ProduceSync(ctx, &kgo.Record{}).FirstErr(); err == nil {
		t.Error("a topic was made though none may be")
	}
	if _, _, err := l.connect(kgo.TransactionalID("tx")).ProducerID(ctx); err == nil {
		t.Error("there are transactions")
	}
	if _, _, err := l.connect().ProducerID(ctx); err != nil {
		t.Errorf("a producer without transactions: %v", err)
	}
}

func TestStop(t *testing.T) {
	l := start(t)
	l.produce("orders", "a")
	l.run.Signal(syscall.SIGTERM)
	if code := l.run.Wait(); code != kit.ExitSignal+int(syscall.SIGTERM) {
		t.Errorf("exit %d", code)
	}
}

// TestNoMemory closes connections while the kernel refuses memory, and goes on after that.
func TestNoMemory(t *testing.T) {
	var scarce *kittest.ScarceMemory
	l := startWith(t, func(env *kit.Env) {
		scarce = &kittest.ScarceMemory{Memory: env.Memory}
		env.Memory = scarce
	})
	scarce.Refuses.Store(true)
	c := l.connect(kgo.RecordRetries(2), kgo.RecordDeliveryTimeout(2*time.Second), kgo.DisableIdempotentWrite(),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	big := &kgo.Record{Topic: "orders", Value: make([]byte, 900<<10)}
	if err := c.ProduceSync(l.context(), big).FirstErr(); err == nil {
		t.Error("the message was taken")
	}
	scarce.Refuses.Store(false)
	l.produce("orders", "a")
}

// raw sends bytes and waits until the broker has closed the connection.
func (l *lab) raw(port string, data []byte) {
	l.t.Helper()
	c, err := l.client.Env().Net.DialContext(l.context(), "tcp", net.JoinHostPort("kafka", port))
	if err != nil {
		l.t.Fatal(err)
	}
	defer c.Close()
	_, _ = c.Write(data)
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	buf := make([]byte, 4096)
	for {
		if _, err := c.Read(buf); err != nil {
			if nerr, ok := err.(net.Error); ok && nerr.Timeout() {
				l.t.Errorf("the connection stays open: % x", data)
			}
			return
		}
	}
}

// frame is a request on the wire.
func frame(q kmsg.Request) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("enemy")).AppendRequest(nil, q, 7)
}

func TestBrokenRequests(t *testing.T) {
	l := start(t)
	l.produce("orders", "a")
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group = strings.Repeat("g", 2000)
	empty := kmsg.NewPtrProduceRequest()
	empty.Version, empty.Acks = 9, 1
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic = "orders"
	partition := kmsg.NewProduceRequestTopicPartition()
	batch := kmsg.RecordBatch{Length: 49, Magic: 2, NumRecords: -5, LastOffsetDelta: -6}
	partition.Records = batch.AppendTo(nil)
	topic.Partitions = append(topic.Partitions, partition)
	empty.Topics = append(empty.Topics, topic)
	header := func(size uint32, key, version int16, rest ...byte) []byte {
		b := binary.BigEndian.AppendUint32(nil, size)
		b = binary.BigEndian.AppendUint16(b, uint16(key))
		b = binary.BigEndian.AppendUint16(b, uint16(version))
		return append(b, rest...)
	}
	for name, data := range map[string][]byte{
		"another protocol":        []byte("GET / HTTP/1.1\r\nHost: kafka\r\n\r\n"),
		"no size":                 header(0, 18, 0),
		"a negative size":         header(0xffffffff, 18, 0),
		"two gigabytes":           header(0x7fffffff, 0, 9),
		"an unknown request":      header(10, 999, 0, 0, 0, 0, 1, 255, 255),
		"a negative request":      header(10, -1, 0, 0, 0, 0, 1, 255, 255),
		"a version of the future": header(10, 3, 999, 0, 0, 0, 1, 255, 255),
		"a negative version":      header(10, 3, -1, 0, 0, 0, 1, 255, 255),
		"half a body":             header(12, 3, 9, 0, 0, 0, 1, 255, 255, 1, 1),
		"many in little":          header(14, 3, 1, 0, 0, 0, 1, 255, 255, 0x7f, 0xff, 0xff, 0xff),
		"transactions":            frame(kmsg.NewPtrEndTxnRequest()),
		"a long name of a group":  frame(join),
		"fewer than no messages":  frame(empty),
	} {
		t.Run(name, func(*testing.T) { l.raw("9092", data) })
	}
	t.Run("the controller's port", func(t *testing.T) { l.raw("9093", frame(kmsg.NewPtrMetadataRequest())) })
	l.produce("orders", "b")
	in := l.connect(kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if diff := cmp.Diff([]string{"a", "b"}, poll(t, l.context(), in, 2)); diff != "" {
		t.Error(diff)
	}
}

// TestManyConnections serves as many as there is room for, and the others when there is.
func TestManyConnections(t *testing.T) {
	l := start(t)
	var conns []net.Conn
	for range maxConns + 20 {
		c, err := l.client.Env().Net.DialContext(l.context(), "tcp", "kafka:9092")
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	l.run.Await("Rejected connection")
	for _, c := range conns {
		c.Close()
	}
	l.produce("orders", "a")
}
