package astronomy

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/aiopslab/aiopslab/app/service"
)

// ordersTopic is where orders go.
const ordersTopic = "orders"

const (
	brokerTimeout = 3 * time.Second
	// waitForOrders is how long Kafka may hold a question for more orders.
	waitForOrders = time.Second
	// maxFetched is how many bytes of orders are fetched in one go.
	maxFetched = 1 << 20
	// maxWaiting is how many orders wait to be sent while Kafka is away.
	maxWaiting = 1000
)

// openKafka returns a client of the Kafka in KAFKA_ADDR. It connects when it is first used, through the container's
// network.
func openKafka(s *service.Service, opts ...kgo.Opt) (*kgo.Client, error) {
	address := s.Env.Getenv("KAFKA_ADDR")
	if address == "" {
		return nil, errors.New("KAFKA_ADDR is not set: want the address of a broker, such as kafka:9092")
	}
	c, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(address), kgo.ClientID(s.Name), kgo.Dialer(s.Env.Net.DialContext),
		kgo.DialTimeout(brokerTimeout), kgo.AllowAutoTopicCreation(), kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.FetchMaxWait(waitForOrders), kgo.FetchMaxBytes(maxFetched), kgo.FetchMaxPartitionBytes(maxFetched),
		kgo.RetryBackoffFn(func(tries int) time.Duration {
			return min(time.Duration(tries)*100*time.Millisecond, time.Second)
		}),
	}, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("KAFKA_ADDR %s: %w", address, err)
	}
	return c, nil
}

// recordHeaders are the headers of a record, for traces.
type recordHeaders struct{ r *kgo.Record }

// Get implements propagation.TextMapCarrier.
func (h recordHeaders) Get(key string) string {
	for _, x := range h.r.Headers {
		if x.Key == key {
			return string(x.Value)
		}
	}
	return ""
}

// Set implements propagation.TextMapCarrier.
func (h recordHeaders) Set(key, value string) {
	h.r.Headers = append(h.r.Headers, kgo.RecordHeader{Key: key, Value: []byte(value)})
}

// Keys implements propagation.TextMapCarrier.
func (h recordHeaders) Keys() (keys []string) {
	for _, x := range h.r.Headers {
		keys = append(keys, x.Key)
	}
	return keys
}

// consume has a function do with each order what the group does, until the context ends. An order is done with when
// the function has returned.
func consume(ctx context.Context, s *service.Service, group string, from kgo.Offset,
	do func(context.Context, *kgo.Record),
) error {
	for {
		c, err := openKafka(s, kgo.ConsumerGroup(group), kgo.ConsumeTopics(ordersTopic), kgo.ConsumeResetOffset(from),
			kgo.AutoCommitMarks(), kgo.AutoCommitInterval(time.Second))
		if err != nil {
			return s.Fatal(ctx, "cannot reach Kafka", err)
		}
		consumeFrom(ctx, s, c, do)
		c.CloseAllowingRebalance()
		if ctx.Err() != nil {
			return nil
		}
	}
}

// consumeFrom consumes until the context ends, or the topic is another than it was: a broker that was started anew has
// lost it. Then it takes a new client to go on.
func consumeFrom(ctx context.Context, s *service.Service, c *kgo.Client, do func(context.Context, *kgo.Record)) {
	for {
		fetched := c.PollFetches(ctx)
		if ctx.Err() != nil {
			return
		}
		lost := false
		fetched.EachError(func(topic string, partition int32, err error) {
			s.Log.Warn("Failed to fetch orders", "topic", topic, "partition", partition, "error", err)
			lost = lost || errors.Is(err, kerr.UnknownTopicID) || errors.Is(err, kerr.InconsistentTopicID) ||
				errors.Is(err, kerr.UnknownTopicOrPartition)
		})
		for r := range fetched.RecordsAll() {
			if ctx.Err() != nil {
				return
			}
			do(s.Extract(ctx, recordHeaders{r}), r)
			c.MarkCommitRecords(r)
		}
		if lost {
			return
		}
	}
}

// gregorian is how many tenths of a microsecond the epoch of UUIDs is before Unix'.
const gregorian = 0x01B21DD213814000

// orderID is an id that tells when an order was made: a UUID of version 1. The node is who makes it.
func orderID(t time.Time, node string, clock uint16) uuid.UUID {
	var id uuid.UUID
	n := uint64(t.UnixNano()/100) + gregorian
	binary.BigEndian.PutUint32(id[:], uint32(n))
	binary.BigEndian.PutUint16(id[4:], uint16(n>>32))
	binary.BigEndian.PutUint16(id[6:], uint16(n>>48)&0x0fff|0x1000)
	binary.BigEndian.PutUint16(id[8:], clock&0x3fff|0x8000)
	sum := sha256.Sum256([]byte(node))
	copy(id[10:], sum[:6])
	return id
}
