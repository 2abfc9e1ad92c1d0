package kafka

import (
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// What a response carries at most, of all partitions and of one, and how long a client may wait for it.
const (
	maxFetch          = 4 << 20
	maxFetchPartition = 1 << 20
	maxFetchWait      = 60_000 // ms
	maxMetadata       = 4096   // bytes of the metadata of an offset, as offset.metadata.max.bytes has it
)

// judge looks at a request. It may change it, or give the answer that the broker must not.
func (b *broker) judge(r *request) (kmsg.Response, error) {
	switch q := r.Request.(type) {
	case *kmsg.ProduceRequest:
		r.silent = q.Acks == 0
		return nil, b.judgeProduce(q)
	case *kmsg.FetchRequest:
		r.changed = lower(&q.MaxBytes, maxFetch) || r.changed
		r.changed = lower(&q.MinBytes, maxFetch) || r.changed
		r.changed = lower(&q.MaxWaitMillis, maxFetchWait) || r.changed
		for i := range q.Topics {
			for j := range q.Topics[i].Partitions {
				r.changed = lower(&q.Topics[i].Partitions[j].PartitionMaxBytes, maxFetchPartition) || r.changed
			}
		}
	case *kmsg.MetadataRequest:
		b.judgeMetadata(q, r)
	case *kmsg.CreateTopicsRequest:
		return b.judgeCreate(q), nil
	case *kmsg.CreatePartitionsRequest:
		return b.judgePartitions(q), nil
	case *kmsg.AlterConfigsRequest:
		return judgeAlter(q), nil
	case *kmsg.IncrementalAlterConfigsRequest:
		return judgeIncremental(q), nil
	case *kmsg.InitProducerIDRequest:
		return b.judgeProducer(q)
	case *kmsg.JoinGroupRequest:
		return nil, b.judgeJoin(q, r)
	case *kmsg.LeaveGroupRequest:
		b.log.info(classGroups, "[GroupCoordinator %d]: A member leaves group %s", node, q.Group)
	case *kmsg.OffsetCommitRequest:
		return nil, b.judgeCommit(q)
	case *kmsg.DeleteGroupsRequest:
		b.state.forgetGroups(q.Groups)
	}
	return nil, nil
}

func lower(n *int32, limit int32) bool {
	if *n <= limit {
		return false
	}
	*n = limit
	return true
}

// judgeProduce takes messages whose batches say how many they are, and makes room for them.
func (b *broker) judgeProduce(q *kmsg.ProduceRequest) error {
	if q.TransactionID != nil {
		return refusef("transaction %q, and this broker has none", *q.TransactionID)
	}
	size := 0
	for _, t := range q.Topics {
		for _, p := range t.Partitions {
			size += len(p.Records)
			var batch kmsg.RecordBatch
			if err := batch.ReadFrom(p.Records); err != nil {
				continue // The broker tells so.
			}
			if batch.NumRecords < 1 || batch.NumRecords > int32(len(p.Records)) {
				return refusef("a batch of %d bytes for %d messages", len(p.Records), batch.NumRecords)
			}
		}
	}
	b.traffic.in.Add(int64(size))
	return b.makeRoom(size)
}

var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

func validTopic(name string) bool { return name != "." && name != ".." && topicName.MatchString(name) }

// judgeMetadata lets topics be made by asking for them, if they may be.
func (b *broker) judgeMetadata(q *kmsg.MetadataRequest, r *request) {
	if !q.AllowAutoTopicCreation || !b.settings.autoCreate {
		return
	}
	add := map[string]int{}
	for _, t := range q.Topics {
		if t.Topic == nil {
			continue
		}
		if !validTopic(*t.Topic) {
			q.AllowAutoTopicCreation, r.changed = false, true
			return
		}
		add[*t.Topic] = b.settings.partitions
	}
	made, ok := b.state.addTopics(add)
	if !ok {
		q.AllowAutoTopicCreation, r.changed = false, true
		return
	}
	for _, name := range made {
		b.log.info(classTopics, "Created topic %s with %d partitions, since client %q asked for it", name,
			b.settings.partitions, r.client)
	}
}

// free are the settings of topics that clients may choose. The others decide how much memory a topic takes.
var free = map[string]bool{
	"retention.ms": true, "min.insync.replicas": true, "compression.type": true, "message.timestamp.type": true,
	"unclean.leader.election.enable": true, "flush.ms": true, "flush.messages": true,
}

// allowed tells whether a topic may have a setting.
func allowed(name string, value *string) bool {
	switch {
	case free[name] || value == nil:
		return true
	case name == "cleanup.policy":
		return *value == "delete"
	case name == "retention.bytes":
		n, err := strconv.ParseInt(*value, 10, 64)
		return err == nil && n >= 0 && n <= maxPartitionBytes
	case name == "max.message.bytes":
		n, err := strconv.ParseInt(*value, 10, 64)
		return err == nil && n > 0 && n <= maxMessage
	}
	return false
}

const policy = "this broker keeps its log in memory and allows no such setting, nor so many partitions"

func (b *broker) judgeCreate(q *kmsg.CreateTopicsRequest) kmsg.Response {
	add := map[string]int{}
	var code int16
	for _, t := range q.Topics {
		n := int(t.NumPartitions)
		switch {
		case len(t.ReplicaAssignment) > 0:
			n = len(t.ReplicaAssignment)
		case n == -1:
			n = b.settings.partitions
		}
		add[t.Topic] = n
		bad := func(c kmsg.CreateTopicsRequestTopicConfig) bool { return !allowed(c.Name, c.Value) }
		switch {
		case !validTopic(t.Topic):
			code = kerr.InvalidTopicException.Code
		case n < 1:
			code = kerr.InvalidPartitions.Code
		case n > maxNumPartitions || slices.ContainsFunc(t.Configs, bad):
			code = kerr.PolicyViolation.Code
		}
	}
	if code == 0 && !q.ValidateOnly {
		made, ok := b.state.addTopics(add)
		if !ok {
			code = kerr.PolicyViolation.Code
		}
		for _, name := range made {
			b.log.info(classTopics, "Creating topic %s with %d partitions", name, add[name])
		}
	}
	if code == 0 {
		return nil
	}
	resp := q.ResponseKind().(*kmsg.CreateTopicsResponse)
	for _, name := range slices.Sorted(maps.Keys(add)) {
		t := kmsg.NewCreateTopicsResponseTopic()
		t.Topic, t.ErrorCode = name, code
		if code == kerr.PolicyViolation.Code {
			t.ErrorMessage = kmsg.StringPtr(policy)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

func (b *broker) judgePartitions(q *kmsg.CreatePartitionsRequest) kmsg.Response {
	add := map[string]int{}
	fits := true
	for _, t := range q.Topics {
		add[t.Topic] = int(t.Count)
		fits = fits && t.Count <= maxNumPartitions
	}
	if fits && b.state.growTopics(add) {
		return nil
	}
	resp := q.ResponseKind().(*kmsg.CreatePartitionsResponse)
	for _, name := range slices.Sorted(maps.Keys(add)) {
		t := kmsg.NewCreatePartitionsResponseTopic()
		t.Topic, t.ErrorCode, t.ErrorMessage = name, kerr.PolicyViolation.Code, kmsg.StringPtr(policy)
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

func judgeAlter(q *kmsg.AlterConfigsRequest) kmsg.Response {
	resp := q.ResponseKind().(*kmsg.AlterConfigsResponse)
	refused := false
	for _, res := range q.Resources {
		bad := func(c kmsg.AlterConfigsRequestResourceConfig) bool { return !allowed(c.Name, c.Value) }
		refused = refused || res.ResourceType != kmsg.ConfigResourceTypeTopic || slices.ContainsFunc(res.Configs, bad)
		out := kmsg.NewAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = res.ResourceType, res.ResourceName
		out.ErrorCode, out.ErrorMessage = kerr.PolicyViolation.Code, kmsg.StringPtr(policy)
		resp.Resources = append(resp.Resources, out)
	}
	if !refused {
		return nil
	}
	return resp
}

func judgeIncremental(q *kmsg.IncrementalAlterConfigsRequest) kmsg.Response {
	resp := q.ResponseKind().(*kmsg.IncrementalAlterConfigsResponse)
	refused := false
	for _, res := range q.Resources {
		bad := func(c kmsg.IncrementalAlterConfigsRequestResourceConfig) bool {
			return c.Op != kmsg.IncrementalAlterConfigOpSet && c.Op != kmsg.IncrementalAlterConfigOpDelete ||
				!allowed(c.Name, c.Value)
		}
		refused = refused || res.ResourceType != kmsg.ConfigResourceTypeTopic || slices.ContainsFunc(res.Configs, bad)
		out := kmsg.NewIncrementalAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = res.ResourceType, res.ResourceName
		out.ErrorCode, out.ErrorMessage = kerr.PolicyViolation.Code, kmsg.StringPtr(policy)
		resp.Resources = append(resp.Resources, out)
	}
	if !refused {
		return nil
	}
	return resp
}

// producerBytes is what the broker remembers of a producer, for ever.
const producerBytes = 1 << 10

func (b *broker) judgeProducer(q *kmsg.InitProducerIDRequest) (kmsg.Response, error) {
	if q.TransactionalID == nil {
		return nil, b.holder.Add(producerBytes)
	}
	resp := q.ResponseKind().(*kmsg.InitProducerIDResponse)
	resp.ErrorCode, resp.ProducerID, resp.ProducerEpoch = kerr.TransactionalIDAuthorizationFailed.Code, -1, -1
	return resp, nil
}

func (b *broker) judgeJoin(q *kmsg.JoinGroupRequest, r *request) error {
	if !b.state.addGroup(q.Group) {
		return refusef("group %.100q, and there are %d", q.Group, maxGroups)
	}
	size := len(q.Group) + len(r.header)
	for _, p := range q.Protocols {
		size += len(p.Name) + len(p.Metadata)
	}
	// A member stays until its session ends at the latest.
	if err := b.borrow(memberBytes+size, maxSession); err != nil {
		return err
	}
	if q.MemberID == "" {
		b.log.info(classGroups, "[GroupCoordinator %d]: A new member of client %q joins group %s, which rebalances",
			node, r.client, q.Group)
	}
	return nil
}

func (b *broker) judgeCommit(q *kmsg.OffsetCommitRequest) error {
	if !b.state.addGroup(q.Group) {
		return refusef("group %.100q, and there are %d", q.Group, maxGroups)
	}
	for _, t := range q.Topics {
		for _, p := range t.Partitions {
			if p.Metadata != nil && len(*p.Metadata) > maxMetadata {
				return refusef("an offset with %d bytes of metadata, want up to %d", len(*p.Metadata), maxMetadata)
			}
			if !b.state.addOffset(offset{q.Group, t.Topic, string(t.TopicID[:]), p.Partition}) {
				return refusef("an offset of group %.100q, and there are %d", q.Group, maxOffsets)
			}
		}
	}
	return nil
}
