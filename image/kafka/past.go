package kafka

import (
	"context"
	"sync"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/past"
)

// memory is how many messages came into topics before those that have an offset.
type memory struct {
	mu     sync.Mutex
	topics map[string]int64
}

// of is how many came into a topic.
func (m *memory) of(topic string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.topics[topic]
}

// remember has the broker go on counting from a past, if it is told one. Offsets are those of the log that there is.
func (b *broker) remember() {
	bytes := past.NewTally(&b.traffic.in, &b.traffic.out)
	var marked map[string]int64
	b.env.Recall(kit.Beginning, func(context.Context, *past.Past) error {
		bytes.Mark()
		marked = b.ends()
		return nil
	})
	b.env.Recall(kit.Source, func(_ context.Context, p *past.Past) error {
		bytes.Age(p, b.env.Started)
		times := p.Times(b.env.Started)
		if times == 0 {
			return nil
		}
		more := map[string]int64{}
		for topic, n := range b.ends() {
			more[topic] = int64(past.More(float64(n), float64(marked[topic]), times))
		}
		b.before.mu.Lock()
		defer b.before.mu.Unlock()
		b.before.topics = more
		return nil
	})
}

// ends are how many messages topics have had.
func (b *broker) ends() map[string]int64 {
	n := map[string]int64{}
	for _, name := range b.state.names() {
		for _, i := range b.cluster.PartitionInfos(name) {
			n[name] += i.HighWatermark
		}
	}
	return n
}
