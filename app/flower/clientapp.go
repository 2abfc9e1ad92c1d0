package flower

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/aiopslab/aiopslab/app/flower/flowerpb"
	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

// pictureCost is the CPU time that a picture takes in training.
const pictureCost = 40 * time.Microsecond

// clientappMain is the program flwr-clientapp: it has a party's pictures and trains on them.
func clientappMain(ctx context.Context, env *kit.Env) error {
	node, name := "supernode:9094", ""
	if err := arguments(env, map[string]*string{"clientappio-api-address": &node, "name": &name}); err != nil {
		return err
	}
	if name == "" {
		name = env.Hostname
	}
	s, err := service.New(ctx, env, service.Config{Name: name})
	if err != nil {
		return err
	}
	defer s.Close()
	conn, err := s.DialGRPC("passthrough:///"+node, callTimeout)
	if err != nil {
		return s.Fatal(ctx, "Cannot dial", err)
	}
	c := newClientapp(s, flowerpb.NewClientAppIoClient(conn))
	s.Recall(c.recall)
	s.Log.Info("Starting Flower ClientApp", slog.String("clientappio", node))
	failing := false
	for ctx.Err() == nil {
		err := c.work(ctx, func() { failing = false })
		if ctx.Err() == nil && !failing {
			s.Log.Error("Cannot reach the SuperNode", slog.Any("error", err))
			failing = true
		}
		pause(ctx, again)
	}
	return nil
}

// clientapp is what trains.
type clientapp struct {
	s        *service.Service
	node     flowerpb.ClientAppIoClient
	messages *prometheus.CounterVec
	well     prometheus.Gauge
	loss     prometheus.Gauge
	shape    *prometheus.GaugeVec
}

func newClientapp(s *service.Service, node flowerpb.ClientAppIoClient) *clientapp {
	c := &clientapp{
		s: s, node: node,
		messages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "flower_client_messages_total", Help: "Messages that were worked on, by type and result.",
		}, []string{"type", "result"}),
		well: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "flower_client_well", Help: "0 if the last message could not be worked on, else 1.",
		}),
		loss: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "flower_client_loss", Help: "The mean loss of the last training.",
		}),
		shape: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "flower_model_parameters", Help: "How many parameters a layer of the model has.",
		}, []string{"layer"}),
	}
	s.Registerer().MustRegister(c.messages, c.well, c.loss, c.shape)
	c.well.Set(1)
	return c
}

// work answers messages until something fails.
func (c *clientapp) work(ctx context.Context, connected func()) error {
	stream, err := c.node.PullClientAppInputs(ctx, &flowerpb.PullClientAppInputsRequest{})
	if err != nil {
		return err
	}
	if _, err := stream.Header(); err != nil {
		return err
	}
	connected()
	c.s.Log.Info("Connected to the SuperNode")
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		if err := c.answer(ctx, m); err != nil {
			return err
		}
	}
}

// answer does what a message asks for, and replies.
func (c *clientapp) answer(ctx context.Context, m *flowerpb.Message) error {
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier(m.Trace))
	ctx, span := c.s.Span(ctx, "clientapp "+m.Type, trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(attribute.Int64("flower.run_id", int64(m.RunId))))
	reply := &flowerpb.Message{
		MessageId: strconv.FormatUint(newID(), 10), ReplyTo: m.MessageId, RunId: m.RunId, NodeId: m.NodeId,
		Type: m.Type,
	}
	err := c.train(ctx, m, reply)
	result := "ok"
	if err != nil {
		if ctx.Err() != nil {
			service.EndSpan(span, err)
			return err
		}
		result, reply.Error = "error", err.Error()
		c.s.Log.ErrorContext(ctx, "Training failed", slog.Uint64("run", m.RunId), slog.Any("error", err))
		c.well.Set(0)
	} else {
		c.well.Set(1)
	}
	c.messages.WithLabelValues(m.Type, result).Inc()
	_, sent := c.node.PushClientAppOutputs(ctx, &flowerpb.PushMessagesRequest{Messages: []*flowerpb.Message{reply}})
	service.EndSpan(span, err)
	return sent
}

// train learns from the party's pictures, starting from the parameters that were sent.
func (c *clientapp) train(ctx context.Context, m, reply *flowerpb.Message) error {
	if m.Type != "train" {
		return fmt.Errorf("nobody here can %q", m.Type)
	}
	t, err := readTask(c.s.Env)
	if err != nil {
		return err
	}
	party, err := strconv.Atoi(m.Config["partition-id"])
	if err != nil || party < 0 || party >= parties {
		return fmt.Errorf("partition-id %q of the node's configuration is none of the %d there are",
			m.Config["partition-id"], parties)
	}
	r := rand.New(rand.NewPCG(m.RunId, uint64(party)))
	n, err := newNetwork(t.Layers, r)
	if err != nil {
		return err
	}
	for _, a := range n.parameters() {
		c.shape.WithLabelValues(a.name).Set(float64(len(a.data)))
	}
	sent, err := unpack(m.Arrays)
	if err == nil {
		err = n.load(sent)
	}
	if err != nil {
		return err
	}
	if err := c.s.Env.CPU.Use(ctx, time.Duration(t.Epochs*t.Pictures)*pictureCost); err != nil {
		return err
	}
	pictures := belonging(rand.New(rand.NewPCG(uint64(party), dataSeed)), party, t.Pictures)
	loss := 0.0
	for range t.Epochs {
		if loss, err = n.learn(pictures, t.Rate, r); err != nil {
			return err
		}
	}
	c.loss.Set(loss)
	logTrained(c.s.Log, time.Now(), m.RunId, len(pictures), loss)
	reply.Arrays = pack(n.parameters())
	reply.Metrics = map[string]float64{"num-examples": float64(len(pictures)), "train-loss": loss}
	return nil
}

// dataSeed is what the pictures of parties are drawn from.
const dataSeed = 0xf10

// logTrained logs that a party has trained, from one place for all times.
func logTrained(log *slog.Logger, at time.Time, run uint64, pictures int, loss float64) {
	service.LogAt(log, slog.LevelInfo, at, "Trained", "run", run, "pictures", pictures,
		"loss", strconv.FormatFloat(loss, 'f', 4, 64))
}
