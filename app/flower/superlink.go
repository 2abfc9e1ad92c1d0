package flower

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/propagation"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/aiopslab/aiopslab/app/flower/flowerpb"
	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	pingEvery = time.Second
	pingLate  = 4 * time.Second // after which a node counts as gone

	maxRuns    = 400 // that are remembered
	maxPending = 32
	maxRounds  = 10

	pending, running, completed, failed = "pending", "running", "finished:completed", "finished:failed"

	// drain is how long a server app that was told to stop goes on with its runs, and farewell how long the link waits
	// for what comes of them.
	drain, farewell = 8 * time.Second, 9 * time.Second

	linkCost = 200 * time.Microsecond
)

// finished reports whether a run has come to its end.
func finished(r *flowerpb.Run) bool { return r.Status == completed || r.Status == failed }

// superlinkMain is the program flower-superlink: it has the runs and the nodes, and passes on messages.
func superlinkMain(ctx context.Context, env *kit.Env) error {
	s, err := service.New(ctx, env, service.Config{Name: "superlink"})
	if err != nil {
		return err
	}
	defer s.Close()
	serverSide, fleet, control, database := ":9091", ":9092", ":9093", ""
	if err := arguments(env, map[string]*string{
		"serverappio-api-address": &serverSide, "fleet-api-address": &fleet, "exec-api-address": &control,
		"database": &database,
	}); err != nil {
		return s.Fatal(ctx, "Wrong arguments", err)
	}
	l := newSuperlink(s, ctx.Done())
	if database != "" {
		if l.state, err = openState(env, database); err != nil {
			return s.Fatal(ctx, "Cannot open the database", err)
		}
		l.restore()
	}
	s.Recall(l.recall)
	s.Log.Info("Starting Flower SuperLink", slog.String("serverappio", serverSide), slog.String("fleet", fleet),
		slog.String("exec", control))
	servers := map[string]*grpc.Server{}
	for _, address := range []string{serverSide, fleet, control} {
		servers[address] = s.GRPCServer(service.Costs{"": linkCost})
	}
	flowerpb.RegisterServerAppIoServer(servers[serverSide], serverSideOf{superlink: l})
	flowerpb.RegisterFleetServer(servers[fleet], fleetOf{superlink: l})
	flowerpb.RegisterControlServer(servers[control], controlOf{superlink: l})
	all, ctx := errgroup.WithContext(ctx)
	for address, srv := range servers {
		all.Go(func() error { return s.ServeGRPC(ctx, srv, address, nil) })
	}
	return all.Wait()
}

// superlink is the state of a federation.
type superlink struct {
	log   *slog.Logger
	stop  <-chan struct{} // the end of the program
	ended *prometheus.CounterVec
	state *state // nil if nothing is kept

	mu       sync.Mutex
	runs     []*flowerpb.Run // in the order in which they were started
	queue    []*flowerpb.Run // those that are pending
	queued   chan struct{}   // closed, and made anew, when one is added
	nodes    map[uint64]*node
	replies  map[uint64]chan *flowerpb.Message // by run
	model    []*flowerpb.Array
	modelRun uint64
}

// node is a party, however many processes it has.
type node struct {
	id      uint64
	name    string
	pinged  time.Time
	mailbox *mailbox
}

func (n *node) online() bool { return time.Since(n.pinged) < pingLate }

func newSuperlink(s *service.Service, stop <-chan struct{}) *superlink {
	l := &superlink{
		log: s.Log, stop: stop, queued: make(chan struct{}), nodes: map[uint64]*node{},
		replies: map[uint64]chan *flowerpb.Message{},
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "flower_runs_total", Help: "Runs that have come to their end, by status.",
		}, []string{"status"}),
	}
	s.Registerer().MustRegister(l.ended,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "flower_nodes_online", Help: "Nodes that can be asked to train.",
		}, func() float64 { return float64(l.online()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "flower_runs_pending", Help: "Runs that nobody has begun.",
		}, func() float64 {
			l.mu.Lock()
			defer l.mu.Unlock()
			return float64(len(l.queue))
		}))
	return l
}

func (l *superlink) online() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, node := range l.nodes {
		if node.online() {
			n++
		}
	}
	return n
}

// within is a stream's context, which ends with the program as well: a graceful stop waits for streams.
func (l *superlink) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return until(ctx, l.stop)
}

// run finds a run. The lock is held.
func (l *superlink) run(id uint64) *flowerpb.Run {
	i := slices.IndexFunc(l.runs, func(r *flowerpb.Run) bool { return r.RunId == id })
	if i < 0 {
		return nil
	}
	return l.runs[i]
}

// conclude notes that a run has come to its end. The lock is held.
func (l *superlink) conclude(r *flowerpb.Run) {
	r.FinishedAt = time.Now().UnixMilli()
	l.ended.WithLabelValues(r.Status).Inc()
	logFinished(l.log, time.UnixMilli(r.FinishedAt), r)
}

// controlOf is the link as people see it.
type controlOf struct {
	flowerpb.UnimplementedControlServer
	*superlink
}

// StartRun adds a run to those that are pending.
func (l controlOf) StartRun(ctx context.Context, req *flowerpb.StartRunRequest) (*flowerpb.StartRunResponse, error) {
	if req.NumRounds < 1 || req.NumRounds > maxRounds {
		return nil, status.Errorf(codes.InvalidArgument, "a run has 1 to %d rounds, not %d", maxRounds, req.NumRounds)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) >= maxPending {
		return nil, status.Errorf(codes.ResourceExhausted, "%d runs are pending already", len(l.queue))
	}
	r := &flowerpb.Run{
		RunId: newID(), NumRounds: req.NumRounds, Status: pending, PendingAt: time.Now().UnixMilli(),
		Trace: map[string]string{},
	}
	propagation.TraceContext{}.Inject(ctx, propagation.MapCarrier(r.Trace))
	l.runs = append(l.runs, r)
	if extra := len(l.runs) - maxRuns; extra > 0 {
		l.runs = slices.Delete(l.runs, 0, extra)
	}
	l.queue = append(l.queue, r)
	close(l.queued)
	l.queued = make(chan struct{})
	logStarted(l.log, time.UnixMilli(r.PendingAt), r)
	return &flowerpb.StartRunResponse{RunId: r.RunId}, nil
}

// newID draws the ID of a run or a message.
func newID() uint64 { return rand.Uint64()>>1 | 1<<62 }

// ListRuns lists all runs, or one.
func (l controlOf) ListRuns(_ context.Context, req *flowerpb.ListRunsRequest) (*flowerpb.ListRunsResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := &flowerpb.ListRunsResponse{}
	for _, r := range l.runs {
		if req.RunId == 0 || req.RunId == r.RunId {
			found.Runs = append(found.Runs, proto.CloneOf(r))
		}
	}
	if req.RunId != 0 && len(found.Runs) == 0 {
		return nil, status.Errorf(codes.NotFound, "there is no run %d", req.RunId)
	}
	return found, nil
}

// ListNodes lists the nodes, and says which can be asked.
func (l controlOf) ListNodes(context.Context, *flowerpb.ListNodesRequest) (*flowerpb.ListNodesResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := &flowerpb.ListNodesResponse{}
	byName := func(a, b *node) int { return cmp.Compare(a.name, b.name) }
	for _, n := range slices.SortedFunc(maps.Values(l.nodes), byName) {
		list.Nodes = append(list.Nodes, &flowerpb.Node{NodeId: n.id, Name: n.name, Online: n.online()})
	}
	return list, nil
}

// GetModel returns the model of the last run that was completed.
func (l controlOf) GetModel(_ context.Context, req *flowerpb.GetModelRequest) (*flowerpb.GetModelResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.modelRun == 0 {
		return nil, status.Error(codes.FailedPrecondition, "no run has been completed yet")
	}
	found := &flowerpb.GetModelResponse{RunId: l.modelRun}
	if req.RunId != l.modelRun {
		found.Arrays = l.model
	}
	return found, nil
}

// serverSideOf is the link as server apps see it.
type serverSideOf struct {
	flowerpb.UnimplementedServerAppIoServer
	*superlink
}

// PullServerAppInputs hands out runs that are pending. Those that are not finished a while after the server app has
// hung up have failed.
func (l serverSideOf) PullServerAppInputs(_ *flowerpb.PullServerAppInputsRequest,
	stream grpc.ServerStreamingServer[flowerpb.Run],
) error {
	ctx, cancel := l.within(stream.Context())
	defer cancel()
	var taken []*flowerpb.Run
	defer func() {
		time.AfterFunc(farewell, func() { l.abandon(taken) })
	}()
	if err := stream.SendHeader(nil); err != nil {
		return err
	}
	l.log.Info("A server app is connected")
	for {
		l.mu.Lock()
		taken = slices.DeleteFunc(taken, finished)
		var next *flowerpb.Run
		if len(l.queue) > 0 && len(taken) < runsAtOnce {
			next, l.queue = l.queue[0], l.queue[1:]
			next.Status = running
			taken = append(taken, next)
			l.replies[next.RunId] = make(chan *flowerpb.Message, 4*parties*maxRounds)
			next = proto.CloneOf(next)
		}
		queued := l.queued
		l.mu.Unlock()
		if next != nil {
			if err := stream.Send(next); err != nil {
				return err
			}
			continue
		}
		select {
		case <-queued:
		case <-ctx.Done():
			return nil
		}
	}
}

// abandon ends runs that nobody works on any more.
func (l *superlink) abandon(taken []*flowerpb.Run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range taken {
		if !finished(r) {
			r.Status, r.Details = failed, "the server app has gone away"
			delete(l.replies, r.RunId)
			l.conclude(r)
		}
	}
}

// PushServerAppOutputs notes how far a run is.
func (l serverSideOf) PushServerAppOutputs(_ context.Context, req *flowerpb.PushServerAppOutputsRequest,
) (*flowerpb.PushServerAppOutputsResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.run(req.GetRun().GetRunId())
	if r == nil || r.Status != running {
		return nil, status.Errorf(codes.FailedPrecondition, "run %d is not running", req.GetRun().GetRunId())
	}
	r.Status, r.Details, r.Rounds = req.Run.Status, req.Run.Details, req.Run.Rounds
	if !finished(r) {
		return &flowerpb.PushServerAppOutputsResponse{}, nil
	}
	delete(l.replies, r.RunId)
	l.conclude(r)
	close(l.queued) // The server app can take another.
	l.queued = make(chan struct{})
	if r.Status == completed {
		l.model, l.modelRun = req.Arrays, r.RunId
		l.keep()
	}
	return &flowerpb.PushServerAppOutputsResponse{}, nil
}

// PushMessages takes messages for nodes.
func (l serverSideOf) PushMessages(_ context.Context,
	req *flowerpb.PushMessagesRequest,
) (*flowerpb.PushMessagesResponse, error) {
	for _, m := range req.Messages {
		l.mu.Lock()
		n := l.nodes[m.NodeId]
		l.mu.Unlock()
		if n == nil || !n.mailbox.put(m) {
			return nil, status.Errorf(codes.Unavailable, "node %d cannot take a message", m.NodeId)
		}
	}
	return &flowerpb.PushMessagesResponse{}, nil
}

// PullMessages sends the replies to messages of a run until it is finished.
func (l serverSideOf) PullMessages(req *flowerpb.PullRepliesRequest,
	stream grpc.ServerStreamingServer[flowerpb.Message],
) error {
	ctx, cancel := l.within(stream.Context())
	defer cancel()
	l.mu.Lock()
	replies := l.replies[req.RunId]
	l.mu.Unlock()
	if replies == nil {
		return status.Errorf(codes.FailedPrecondition, "run %d is not running", req.RunId)
	}
	for {
		select {
		case m := <-replies:
			if err := stream.Send(m); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// fleetOf is the link as nodes see it.
type fleetOf struct {
	flowerpb.UnimplementedFleetServer
	*superlink
}

// maxNodes bounds what callers can make the link remember.
const maxNodes = 64

// CreateNode registers a node under its name.
func (l fleetOf) CreateNode(_ context.Context, req *flowerpb.CreateNodeRequest) (*flowerpb.CreateNodeResponse, error) {
	if req.Name == "" {
		return nil, status.Error(codes.InvalidArgument, "a node needs a name")
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(req.Name))
	id := h.Sum64()>>1 | 1<<62
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.nodes[id] == nil {
		if len(l.nodes) >= maxNodes {
			return nil, status.Errorf(codes.ResourceExhausted, "there are %d nodes already", len(l.nodes))
		}
		l.nodes[id] = &node{id: id, name: req.Name, mailbox: newMailbox()}
		l.log.Info("A node is registered", slog.String("name", req.Name), slog.Uint64("node", id))
	}
	return &flowerpb.CreateNodeResponse{NodeId: id}, nil
}

// known finds a node.
func (l *superlink) known(id uint64) (*node, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.nodes[id]; n != nil {
		return n, nil
	}
	return nil, status.Errorf(codes.NotFound, "there is no node %d", id)
}

// Ping notes that a node can be asked.
func (l fleetOf) Ping(_ context.Context, req *flowerpb.PingRequest) (*flowerpb.PingResponse, error) {
	n, err := l.known(req.NodeId)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !n.online() {
		l.log.Info("A node is online", slog.String("name", n.name))
	}
	n.pinged = time.Now()
	return &flowerpb.PingResponse{}, nil
}

// PullMessages sends a node what it is to do.
func (l fleetOf) PullMessages(req *flowerpb.PullMessagesRequest,
	stream grpc.ServerStreamingServer[flowerpb.Message],
) error {
	n, err := l.known(req.NodeId)
	if err != nil {
		return err
	}
	ctx, cancel := l.within(stream.Context())
	defer cancel()
	return n.mailbox.serve(ctx, runsAtOnce, stream.Send)
}

// PushMessages takes the replies of nodes to the runs they are for.
func (l fleetOf) PushMessages(_ context.Context,
	req *flowerpb.PushMessagesRequest,
) (*flowerpb.PushMessagesResponse, error) {
	for _, m := range req.Messages {
		n, err := l.known(m.NodeId)
		if err != nil {
			return nil, err
		}
		if !n.mailbox.answered(m.ReplyTo) {
			continue // Somebody else has answered, or nobody waits for it any more.
		}
		l.mu.Lock()
		replies := l.replies[m.RunId]
		l.mu.Unlock()
		select {
		case replies <- m:
		default: // The run is over.
		}
	}
	return &flowerpb.PushMessagesResponse{}, nil
}

// until is a context that ends when a channel is closed, too.
func until(ctx context.Context, stop <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// arguments reads a program's arguments, written as "--name value" or "--name=value". Those that Flower has and that
// change nothing here are taken as well.
func arguments(env *kit.Env, known map[string]*string) error {
	ignored := map[string]bool{"insecure": false, "isolation": true, "fleet-api-type": true}
	args := env.Args[1:]
	for len(args) > 0 {
		name, value, given := cutArgument(args[0])
		args = args[1:]
		into, ok := known[name]
		takes, spare := ignored[name]
		if !ok && !spare {
			return fmt.Errorf("there is no argument %s", strconv.Quote("--"+name))
		}
		if !given && (ok || takes) {
			if len(args) == 0 {
				return errors.New("--" + name + " needs a value")
			}
			value, args = args[0], args[1:]
		}
		if ok {
			*into = value
		}
	}
	return nil
}

// logStarted logs the start of a run, from one place for all times.
func logStarted(log *slog.Logger, at time.Time, r *flowerpb.Run) {
	service.LogAt(log, slog.LevelInfo, at, "Run started", "run", r.RunId, "rounds", r.NumRounds)
}

// logFinished logs the end of a run, from one place for all times.
func logFinished(log *slog.Logger, at time.Time, r *flowerpb.Run) {
	level := slog.LevelInfo
	if r.Status == failed {
		level = slog.LevelWarn
	}
	args := []any{"run", r.RunId, "status", r.Status, "rounds", fmt.Sprintf("%d/%d", len(r.Rounds), r.NumRounds)}
	if r.Details != "" {
		args = append(args, "details", r.Details)
	}
	service.LogAt(log, level, at, "Run finished", args...)
}
