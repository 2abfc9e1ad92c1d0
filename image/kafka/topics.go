package kafka

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/aiopslab/aiopslab/kit"
)

// Topics is kafka-topics.sh.
func Topics(ctx context.Context, env *kit.Env) error {
	t := newTool(env)
	list := t.flags.Bool("list", false, "list the topics")
	describe := t.flags.Bool("describe", false, "show the partitions of topics")
	create := t.flags.Bool("create", false, "make a topic")
	remove := t.flags.Bool("delete", false, "delete a topic")
	alter := t.flags.Bool("alter", false, "give a topic more partitions")
	name := t.flags.String("topic", "", "the `topic`")
	partitions := t.flags.Int32("partitions", -1, "how many partitions the topic gets")
	replicas := t.flags.Int16("replication-factor", -1, "how many brokers keep each partition")
	settings := t.flags.StringArray("config", nil, "a setting of the topic, as `name=value`")
	ifNot := t.flags.Bool("if-not-exists", false, "let it be if the topic is there already")
	ifExists := t.flags.Bool("if-exists", false, "let it be if the topic is not there")
	if err := t.parse(); err != nil {
		return err
	}
	actions := 0
	for _, a := range []*bool{list, describe, create, remove, alter} {
		if *a {
			actions++
		}
	}
	if actions != 1 {
		return t.misused("Command must include exactly one action: --list, --describe, --create, --alter or --delete")
	}
	if *name == "" && (*create || *remove || *alter) {
		return t.misused("Missing required argument \"[topic]\"")
	}
	return t.administer(ctx, "Error while executing topic command", func(ctx context.Context, c *kadm.Client) error {
		switch {
		case *list:
			return t.listTopics(ctx, c)
		case *describe:
			return t.describeTopics(ctx, c, *name)
		case *create:
			return t.createTopic(ctx, c, *name, *partitions, *replicas, *settings, *ifNot)
		case *alter:
			resp, err := c.UpdatePartitions(ctx, int(*partitions), *name)
			if err == nil {
				err = resp.Error()
			}
			return err
		}
		resp, err := c.DeleteTopics(ctx, *name)
		if err == nil {
			err = resp.Error()
		}
		if errors.Is(err, kerr.UnknownTopicOrPartition) {
			if *ifExists {
				return nil
			}
			return missingTopic(*name)
		}
		return err
	})
}

func (t *tool) listTopics(ctx context.Context, c *kadm.Client) error {
	topics, err := c.ListTopicsWithInternal(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(topics)) {
		fmt.Fprintln(t.env.Stdout, name)
	}
	return nil
}

func (t *tool) describeTopics(ctx context.Context, c *kadm.Client, only string) error {
	topics, err := c.ListTopicsWithInternal(ctx)
	if err != nil {
		return err
	}
	if only != "" && !topics.Has(only) {
		return missingTopic(only)
	}
	for _, d := range topics.Sorted() {
		if only != "" && d.Topic != only {
			continue
		}
		settings, err := t.overrides(ctx, c, d.Topic)
		if err != nil {
			return err
		}
		fmt.Fprintf(t.env.Stdout, "Topic: %s\tTopicId: %s\tPartitionCount: %d\tReplicationFactor: %d\tConfigs: %s\n",
			d.Topic, base64.RawURLEncoding.EncodeToString(d.ID[:]), len(d.Partitions), d.Partitions.NumReplicas(),
			settings)
		for _, p := range d.Partitions.Sorted() {
			fmt.Fprintf(t.env.Stdout, "\tTopic: %s\tPartition: %d\tLeader: %d\tReplicas: %s\tIsr: %s\n", d.Topic,
				p.Partition, p.Leader, join(p.Replicas), join(p.ISR))
		}
	}
	return nil
}

// overrides are the settings that a topic has of its own.
func (t *tool) overrides(ctx context.Context, c *kadm.Client, topic string) (string, error) {
	all, err := c.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return "", err
	}
	r, err := all.On(topic, nil)
	if err != nil {
		return "", err
	}
	var list []string
	for _, s := range r.Configs {
		if s.Source.String() == "DYNAMIC_TOPIC_CONFIG" {
			list = append(list, s.Key+"="+s.MaybeValue())
		}
	}
	slices.Sort(list)
	return strings.Join(list, ","), nil
}

func missingTopic(name string) error {
	return saidf("Topic '%s' does not exist as expected", name)
}

func (t *tool) createTopic(
	ctx context.Context, c *kadm.Client, name string, partitions int32, replicas int16, settings []string, ifNot bool,
) error {
	configs := map[string]*string{}
	for _, s := range settings {
		key, value, ok := strings.Cut(s, "=")
		if !ok {
			return saidf("Invalid topic config: write --config %s as name=value", s)
		}
		configs[key] = &value
	}
	resp, err := c.CreateTopics(ctx, partitions, replicas, configs, name)
	if err != nil {
		return err
	}
	one := resp[name]
	switch {
	case errors.Is(one.Err, kerr.TopicAlreadyExists) && ifNot:
		return nil
	case errors.Is(one.Err, kerr.TopicAlreadyExists):
		return saidf("Topic '%s' already exists.", name)
	case one.Err != nil && one.ErrMessage != "":
		return fmt.Errorf("%w: %s", one.Err, one.ErrMessage)
	case one.Err != nil:
		return one.Err
	}
	fmt.Fprintf(t.env.Stdout, "Created topic %s.\n", name)
	return nil
}

func join(ids []int32) string {
	var list []string
	for _, id := range ids {
		list = append(list, fmt.Sprint(id))
	}
	return strings.Join(list, ",")
}

// said is an error in the words of the original, which begin with a capital.
type said string

func (s said) Error() string { return string(s) }

func saidf(format string, args ...any) error { return said(fmt.Sprintf(format, args...)) }
