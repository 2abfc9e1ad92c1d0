package kafka

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/aiopslab/aiopslab/kit"
)

// properties are the --property options of the console tools.
type properties map[string]string

func readProperties(list []string) properties {
	p := properties{}
	for _, s := range list {
		key, value, _ := strings.Cut(s, "=")
		p[key] = value
	}
	return p
}

func (p properties) or(name, def string) string {
	if v, ok := p[name]; ok {
		return v
	}
	return def
}

// ConsoleConsumer is kafka-console-consumer.sh.
func ConsoleConsumer(ctx context.Context, env *kit.Env) error {
	t := newTool(env)
	name := t.flags.String("topic", "", "the `topic`")
	group := t.flags.String("group", "", "consume as a member of a `group`")
	beginning := t.flags.Bool("from-beginning", false, "begin with the oldest message")
	most := t.flags.Int("max-messages", -1, "end after so many messages")
	timeout := t.flags.Int("timeout-ms", -1, "end if no message comes for so long")
	partition := t.flags.Int32("partition", -1, "consume one partition alone")
	from := t.flags.Int64("offset", -1, "begin at an offset of --partition")
	props := t.flags.StringArray("property", nil, "how messages are shown: print.key, print.timestamp, print.offset, "+
		"print.partition, print.headers, key.separator, as `name=value`")
	t.flags.String("formatter", "", "ignored")
	if err := t.parse(); err != nil {
		return err
	}
	if *name == "" {
		return t.misused("Exactly one of --include/--topic is required.")
	}
	start := kgo.NewOffset().AtEnd()
	if *beginning {
		start = kgo.NewOffset().AtStart()
	}
	var opts []kgo.Opt
	switch {
	case *partition >= 0:
		if *from >= 0 {
			start = kgo.NewOffset().At(*from)
		}
		opts = []kgo.Opt{kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{*name: {*partition: start}})}
	case *group != "":
		opts = []kgo.Opt{
			kgo.ConsumeTopics(*name), kgo.ConsumerGroup(*group), kgo.ConsumeResetOffset(start),
			kgo.AutoCommitInterval(time.Second),
		}
	default:
		opts = []kgo.Opt{kgo.ConsumeTopics(*name), kgo.ConsumeResetOffset(start)}
	}
	client, err := t.connect(append(opts, kgo.AllowAutoTopicCreation(), kgo.ClientID("console-consumer"))...)
	if err != nil {
		return t.failed("Error processing message, terminating consumer process", err)
	}
	defer client.Close()
	n, err := t.consume(ctx, client, *most, *timeout, readProperties(*props))
	if *group != "" && ctx.Err() == nil {
		err = errors.Join(err, client.CommitUncommittedOffsets(ctx))
	}
	fmt.Fprintf(env.Stderr, "Processed a total of %d messages\n", n)
	return err
}

// consume prints messages until there are enough, none come, or nobody wants them.
func (t *tool) consume(ctx context.Context, client *kgo.Client, most, timeout int, p properties) (n int, err error) {
	for most < 0 || n < most {
		wait, cancel := ctx, context.CancelFunc(func() {})
		if timeout >= 0 {
			wait, cancel = context.WithTimeout(ctx, time.Duration(timeout)*time.Millisecond)
		}
		fetches := client.PollRecords(wait, max(1, min(most-n, 500)))
		expired := wait.Err() != nil
		cancel()
		if ctx.Err() != nil {
			return n, ctx.Err()
		}
		if fetches.IsClientClosed() {
			return n, nil
		}
		for _, e := range fetches.Errors() {
			if !errors.Is(e.Err, context.DeadlineExceeded) {
				return n, t.failed("Error processing message, terminating consumer process", e.Err)
			}
		}
		records := fetches.Records()
		if len(records) == 0 && expired {
			return n, nil
		}
		for _, r := range records {
			t.show(r, p)
			n++
		}
	}
	return n, nil
}

// show prints a message.
func (t *tool) show(r *kgo.Record, p properties) {
	separator := p.or("key.separator", "\t")
	var b strings.Builder
	add := func(name, text string) {
		if p[name] == "true" {
			b.WriteString(text + separator)
		}
	}
	add("print.timestamp", fmt.Sprintf("CreateTime:%d", r.Timestamp.UnixMilli()))
	add("print.partition", fmt.Sprintf("Partition:%d", r.Partition))
	add("print.offset", fmt.Sprintf("Offset:%d", r.Offset))
	var headers []string
	for _, h := range r.Headers {
		headers = append(headers, h.Key+":"+string(h.Value))
	}
	if len(headers) == 0 {
		headers = []string{"NO_HEADERS"}
	}
	add("print.headers", strings.Join(headers, ","))
	key := "null"
	if r.Key != nil {
		key = string(r.Key)
	}
	add("print.key", key)
	fmt.Fprintf(t.env.Stdout, "%s%s\n", b.String(), r.Value)
}

// ConsoleProducer is kafka-console-producer.sh.
func ConsoleProducer(ctx context.Context, env *kit.Env) error {
	t := newTool(env)
	name := t.flags.String("topic", "", "the `topic`")
	props := t.flags.StringArray("property", nil, "how lines are read: parse.key, key.separator, as `name=value`")
	if err := t.parse(); err != nil {
		return err
	}
	if *name == "" {
		return t.misused("Missing required argument \"[topic]\"")
	}
	client, err := t.connect(kgo.AllowAutoTopicCreation(), kgo.ClientID("console-producer"),
		kgo.RecordDeliveryTimeout(toolTimeout))
	if err != nil {
		return t.failed("Error when sending message to topic "+*name, err)
	}
	defer client.Close()
	p := readProperties(*props)
	lines := bufio.NewScanner(env.Stdin)
	lines.Buffer(nil, maxMessage)
	for prompt(env); lines.Scan(); prompt(env) {
		r := &kgo.Record{Topic: *name, Value: []byte(lines.Text())}
		if p["parse.key"] == "true" {
			key, value, ok := strings.Cut(lines.Text(), p.or("key.separator", "\t"))
			if !ok {
				return t.failed("Error when sending message", saidf("No key separator found in %.100q", lines.Text()))
			}
			r.Key, r.Value = []byte(key), []byte(value)
		}
		if err := client.ProduceSync(ctx, r).FirstErr(); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return t.failed("Error when sending message to topic "+*name, err)
		}
	}
	return lines.Err()
}

func prompt(env *kit.Env) {
	if env.Terminal != nil {
		fmt.Fprint(env.Stdout, ">")
	}
}
