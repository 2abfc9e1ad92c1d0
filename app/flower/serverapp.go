package flower

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/aiopslab/aiopslab/app/flower/flowerpb"
	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	runsAtOnce = 4
	// nodesWait is how long a run waits for its nodes, and roundWait how long for their replies.
	nodesWait, roundWait = 4 * time.Second, 4 * time.Second
	nodesAgain           = 200 * time.Millisecond

	testPictures  = 200
	averagingCost = 2 * time.Millisecond
)

// serverappMain is the program flwr-serverapp: it has the strategy, and the application's own pages.
func serverappMain(ctx context.Context, env *kit.Env) error {
	link, control, address := "superlink:9091", "superlink:9093", ":8080"
	if err := arguments(env, map[string]*string{
		"serverappio-api-address": &link, "exec-api-address": &control, "http-address": &address,
	}); err != nil {
		return err
	}
	s, err := service.New(ctx, env, service.Config{Name: "serverapp"})
	if err != nil {
		return err
	}
	defer s.Close()
	t, err := readTask(env)
	if err != nil {
		return s.Fatal(ctx, "Cannot read the task", err)
	}
	if _, err := newNetwork(t.Layers, rand.New(rand.NewPCG(0, 0))); err != nil {
		return s.Fatal(ctx, "The task has no model", err)
	}
	toLink, err := s.DialGRPC("passthrough:///"+link, callTimeout)
	if err != nil {
		return s.Fatal(ctx, "Cannot dial", err)
	}
	toControl, err := s.DialGRPC("passthrough:///"+control, callTimeout)
	if err != nil {
		return s.Fatal(ctx, "Cannot dial", err)
	}
	a := newServerapp(s, t, flowerpb.NewServerAppIoClient(toLink), flowerpb.NewControlClient(toControl))
	s.Recall(a.recall)
	s.Log.Info("Starting Flower ServerApp", slog.String("serverappio", link), slog.String("http", address))
	var working sync.WaitGroup
	defer working.Wait()
	working.Go(func() { a.work(ctx) })
	working.Go(func() { a.begin(ctx) })
	return s.ServeHTTP(ctx, a.handler(), address)
}

// serverapp has the strategy: federated averaging.
type serverapp struct {
	s        *service.Service
	task     task
	link     flowerpb.ServerAppIoClient
	control  flowerpb.ControlClient
	tests    []picture
	loss     prometheus.Gauge
	accuracy prometheus.Gauge
	rounds   *prometheus.CounterVec

	mu    sync.Mutex
	model *network
	from  uint64 // the run that the model is of
}

func newServerapp(s *service.Service, t task, link flowerpb.ServerAppIoClient,
	control flowerpb.ControlClient,
) *serverapp {
	a := &serverapp{
		s: s, task: t, link: link, control: control,
		loss: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "flower_round_loss", Help: "The loss of the model after the last round, over pictures of all digits.",
		}),
		accuracy: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "flower_round_accuracy", Help: "The share of pictures of all digits that the model reads rightly.",
		}),
		rounds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "flower_round_replies_total", Help: "Replies of nodes in rounds, by result.",
		}, []string{"result"}),
	}
	r := rand.New(rand.NewPCG(dataSeed, dataSeed))
	for i := range testPictures {
		a.tests = append(a.tests, write(r, i%digits))
	}
	s.Registerer().MustRegister(a.loss, a.accuracy, a.rounds)
	return a
}

// begin sees to it that there is a model: it starts the first run of a federation that has none yet.
func (a *serverapp) begin(ctx context.Context) {
	for ; ctx.Err() == nil; pause(ctx, nodesAgain) {
		_, _, err := a.latest(ctx)
		if err == nil {
			return
		}
		if status.Code(err) != codes.FailedPrecondition {
			continue // The link cannot be asked yet.
		}
		known, err := a.control.ListRuns(ctx, &flowerpb.ListRunsRequest{})
		if err == nil && !slices.ContainsFunc(known.Runs, func(r *flowerpb.Run) bool { return !finished(r) }) {
			_, err = a.control.StartRun(ctx, &flowerpb.StartRunRequest{NumRounds: usualRounds})
		}
		if err != nil && ctx.Err() == nil {
			a.s.Log.WarnContext(ctx, "Cannot start the first run", slog.Any("error", err))
		}
	}
}

// work does runs until the context ends.
func (a *serverapp) work(ctx context.Context) {
	failing := false
	for ctx.Err() == nil {
		err := a.pull(ctx, func() { failing = false })
		if ctx.Err() == nil && !failing {
			a.s.Log.Error("Cannot reach the SuperLink", slog.Any("error", err))
			failing = true
		}
		pause(ctx, again)
	}
}

// pull takes runs, and does several at once, until something fails. A server app that is told to stop takes no more,
// and goes on with those that it has for a while.
func (a *serverapp) pull(ctx context.Context, connected func()) error {
	var doing sync.WaitGroup
	defer doing.Wait()
	going, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if ctx.Err() == nil { // The link is broken, and has given up on them.
			cancel()
			return
		}
		timer := time.AfterFunc(drain, cancel)
		doing.Wait()
		timer.Stop()
		cancel()
	}()
	stream, err := a.link.PullServerAppInputs(ctx, &flowerpb.PullServerAppInputsRequest{})
	if err != nil {
		return err
	}
	if _, err := stream.Header(); err != nil {
		return err
	}
	connected()
	a.s.Log.Info("Connected to the SuperLink")
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		doing.Go(func() { a.do(going, r) })
	}
}

// do does a run and tells what came of it.
func (a *serverapp) do(ctx context.Context, r *flowerpb.Run) {
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier(r.Trace))
	ctx, span := a.s.Span(ctx, "serverapp run", trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(attribute.Int64("flower.run_id", int64(r.RunId))))
	model, err := a.train(ctx, r)
	service.EndSpan(span, err)
	r.Status = completed
	out := &flowerpb.PushServerAppOutputsRequest{Run: r}
	if err != nil {
		r.Status, r.Details = failed, err.Error()
		a.s.Log.ErrorContext(ctx, "Run failed", slog.Uint64("run", r.RunId), slog.Any("error", err))
	} else {
		out.Arrays = pack(model.parameters())
		logCompleted(a.s.Log, time.Now(), r)
	}
	if _, err := a.link.PushServerAppOutputs(ctx, out); err != nil && ctx.Err() == nil {
		a.s.Log.ErrorContext(ctx, "Cannot tell what came of a run", slog.Uint64("run", r.RunId), slog.Any("error", err))
	}
}

// train does the rounds of a run.
func (a *serverapp) train(ctx context.Context, r *flowerpb.Run) (*network, error) {
	model, err := newNetwork(a.task.Layers, rand.New(rand.NewPCG(r.RunId, 0)))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := a.link.PullMessages(ctx, &flowerpb.PullRepliesRequest{RunId: r.RunId})
	if err != nil {
		return nil, err
	}
	replies := make(chan *flowerpb.Message)
	go func() {
		defer close(replies)
		for {
			m, err := stream.Recv()
			if err != nil {
				return
			}
			select {
			case replies <- m:
			case <-ctx.Done():
				return
			}
		}
	}()
	for number := int32(1); number <= r.NumRounds; number++ {
		done, err := a.round(ctx, r, number, model, replies)
		if err != nil {
			return nil, fmt.Errorf("round %d: %w", number, err)
		}
		r.Rounds = append(r.Rounds, done)
		progress := &flowerpb.PushServerAppOutputsRequest{Run: proto.CloneOf(r)}
		if _, err := a.link.PushServerAppOutputs(ctx, progress); err != nil {
			return nil, err
		}
	}
	return model, nil
}

// round has all nodes train, and makes the model the average of what they send.
func (a *serverapp) round(ctx context.Context, r *flowerpb.Run, number int32, model *network,
	replies <-chan *flowerpb.Message,
) (*flowerpb.Round, error) {
	nodes, err := a.nodes(ctx)
	if err != nil {
		return nil, err
	}
	ask := &flowerpb.PushMessagesRequest{}
	trace := map[string]string{}
	propagation.TraceContext{}.Inject(ctx, propagation.MapCarrier(trace))
	asked := map[string]bool{}
	for _, n := range nodes {
		id := strconv.FormatUint(newID(), 10)
		asked[id] = true
		ask.Messages = append(ask.Messages, &flowerpb.Message{
			MessageId: id, RunId: r.RunId, NodeId: n.NodeId, Type: "train", Trace: trace,
			Arrays: pack(model.parameters()),
		})
	}
	if _, err := a.link.PushMessages(ctx, ask); err != nil {
		return nil, err
	}
	var lists [][]array
	var weights []float64
	why := "no reply came in time"
	late := time.NewTimer(roundWait)
	defer late.Stop()
	for waiting := true; waiting && len(asked) > 0; {
		select {
		case m, ok := <-replies:
			if !ok {
				return nil, errors.New("the link is broken")
			}
			if !asked[m.ReplyTo] {
				continue // Too late, for an earlier round.
			}
			delete(asked, m.ReplyTo)
			list, weight, err := result(model, m)
			if err != nil {
				why = err.Error()
				a.rounds.WithLabelValues("failure").Inc()
				a.s.Log.WarnContext(ctx, "A node could not train", slog.Uint64("run", r.RunId),
					slog.Uint64("node", m.NodeId), slog.Any("error", err))
				continue
			}
			a.rounds.WithLabelValues("result").Inc()
			lists, weights = append(lists, list), append(weights, weight)
		case <-late.C:
			waiting = false
			a.rounds.WithLabelValues("failure").Add(float64(len(asked)))
			a.s.Log.WarnContext(ctx, "Nodes did not reply in time", slog.Uint64("run", r.RunId),
				slog.Int("nodes", len(asked)))
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	done := &flowerpb.Round{Number: number, Results: int32(len(lists)), Failures: int32(len(nodes) - len(lists))}
	if len(lists) == 0 {
		return nil, fmt.Errorf("no node could train: %s", why)
	}
	if err := a.s.Env.CPU.Use(ctx, averagingCost); err != nil {
		return nil, err
	}
	if err := model.load(average(lists, weights)); err != nil {
		return nil, err
	}
	if done.Loss, done.Accuracy, err = model.test(a.tests); err != nil {
		return nil, err
	}
	a.loss.Set(done.Loss)
	a.accuracy.Set(done.Accuracy)
	logRound(a.s.Log, time.Now(), r.RunId, done)
	return done, nil
}

// nodes waits until all parties have a node that can be asked.
func (a *serverapp) nodes(ctx context.Context) (online []*flowerpb.Node, err error) {
	for deadline := time.Now().Add(nodesWait); ; pause(ctx, nodesAgain) {
		list, err := a.control.ListNodes(ctx, &flowerpb.ListNodesRequest{})
		if err != nil {
			return nil, err
		}
		online = nil
		for _, n := range list.Nodes {
			if n.Online {
				online = append(online, n)
			}
		}
		if len(online) >= parties {
			return online, nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return nil, fmt.Errorf("it takes %d nodes, and %d are online", parties, len(online))
		}
	}
}

// result is what a node has learnt, and from how much.
func result(model *network, m *flowerpb.Message) (list []array, weight float64, err error) {
	if m.Error != "" {
		return nil, 0, errors.New(m.Error)
	}
	if list, err = unpack(m.Arrays); err != nil {
		return nil, 0, err
	}
	if err := model.fits(list); err != nil {
		return nil, 0, err
	}
	weight = m.Metrics["num-examples"]
	if !(weight > 0 && weight <= maxPictures) {
		return nil, 0, fmt.Errorf("a node learnt from %v pictures", weight)
	}
	return list, weight, nil
}

// logRound logs that a round of a run is over, from one place for all times.
func logRound(log *slog.Logger, at time.Time, run uint64, r *flowerpb.Round) {
	service.LogAt(log, slog.LevelInfo, at, fmt.Sprintf("Round %d", r.Number), "run", run, "results", r.Results,
		"failures", r.Failures, "loss", strconv.FormatFloat(r.Loss, 'f', 4, 64),
		"accuracy", strconv.FormatFloat(r.Accuracy, 'f', 3, 64))
}

// logCompleted logs how good the model of a run is, from one place for all times.
func logCompleted(log *slog.Logger, at time.Time, r *flowerpb.Run) {
	last := r.Rounds[len(r.Rounds)-1]
	service.LogAt(log, slog.LevelInfo, at, "Run completed", "run", r.RunId,
		"loss", strconv.FormatFloat(last.Loss, 'f', 4, 64), "accuracy", strconv.FormatFloat(last.Accuracy, 'f', 3, 64))
}
