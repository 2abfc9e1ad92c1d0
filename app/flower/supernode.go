package flower

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/aiopslab/aiopslab/app/flower/flowerpb"
	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	callTimeout = 3 * time.Second
	// again is how long to wait before another try to reach somebody.
	again = 300 * time.Millisecond

	nodeCost = 100 * time.Microsecond
)

// cutArgument takes "--name=value" apart.
func cutArgument(arg string) (name, value string, given bool) {
	name, value, given = strings.Cut(strings.TrimLeft(arg, "-"), "=")
	return name, value, given
}

// supernodeMain is the program flower-supernode: it fetches messages for its party's client app, and brings replies.
// Without a client app it fetches none.
func supernodeMain(ctx context.Context, env *kit.Env) error {
	link, address, config, name := "superlink:9092", ":9094", "", ""
	known := map[string]*string{
		"superlink": &link, "clientappio-api-address": &address, "node-config": &config, "name": &name,
	}
	if err := arguments(env, known); err != nil {
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
	conn, err := s.DialGRPC("passthrough:///"+link, callTimeout)
	if err != nil {
		return s.Fatal(ctx, "Cannot dial", err)
	}
	n := &supernode{
		s: s, fleet: flowerpb.NewFleetClient(conn), mailbox: newMailbox(), stop: ctx.Done(),
		config: nodeConfig(config), came: make(chan struct{}),
	}
	srv := s.GRPCServer(service.Costs{"": nodeCost})
	flowerpb.RegisterClientAppIoServer(srv, n)
	s.Log.Info("Starting Flower SuperNode", slog.String("superlink", link), slog.String("clientappio", address),
		slog.String("node-config", config))
	var fetching sync.WaitGroup
	defer fetching.Wait()
	fetching.Go(func() { n.fetch(ctx, name) })
	return s.ServeGRPC(ctx, srv, address, nil)
}

// nodeConfig reads "key=value key=value".
func nodeConfig(text string) map[string]string {
	config := map[string]string{}
	for _, pair := range strings.Fields(text) {
		k, v, _ := strings.Cut(pair, "=")
		config[k] = strings.Trim(v, `"`)
	}
	return config
}

// supernode is the node of a party.
type supernode struct {
	flowerpb.UnimplementedClientAppIoServer
	s       *service.Service
	fleet   flowerpb.FleetClient
	mailbox *mailbox
	stop    <-chan struct{}
	config  map[string]string

	mu   sync.Mutex
	apps int           // client apps that are connected
	came chan struct{} // closed, and made anew, when one is connected
}

// PullClientAppInputs gives a client app its messages, one at a time.
func (n *supernode) PullClientAppInputs(_ *flowerpb.PullClientAppInputsRequest,
	stream grpc.ServerStreamingServer[flowerpb.Message],
) error {
	ctx, cancel := until(stream.Context(), n.stop)
	defer cancel()
	if err := stream.SendHeader(nil); err != nil {
		return err
	}
	n.mu.Lock()
	n.apps++
	close(n.came)
	n.came = make(chan struct{})
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		n.apps--
		n.mu.Unlock()
	}()
	n.s.Log.Info("A client app is connected")
	defer n.s.Log.Info("A client app is disconnected")
	return n.mailbox.serve(ctx, 1, stream.Send)
}

// PushClientAppOutputs passes the replies of a client app on.
func (n *supernode) PushClientAppOutputs(ctx context.Context,
	req *flowerpb.PushMessagesRequest,
) (*flowerpb.PushMessagesResponse, error) {
	for _, m := range req.Messages {
		n.mailbox.answered(m.ReplyTo)
		if m.Error != "" {
			n.s.Log.WarnContext(ctx, "The client app could not do what it was asked", slog.Uint64("run", m.RunId),
				slog.String("type", m.Type), slog.String("error", m.Error))
		}
	}
	return n.fleet.PushMessages(ctx, req)
}

// fetch registers the node and fetches messages while a client app is connected, until the context ends.
func (n *supernode) fetch(ctx context.Context, name string) {
	failing := false
	for ctx.Err() == nil {
		n.mu.Lock()
		apps, came := n.apps, n.came
		n.mu.Unlock()
		if apps == 0 {
			select {
			case <-came:
			case <-ctx.Done():
			}
			continue
		}
		err := n.attend(ctx, name, &failing)
		if err != nil && ctx.Err() == nil && !failing {
			n.s.Log.Error("Cannot reach the SuperLink", slog.Any("error", err))
			failing = true
		}
		pause(ctx, again)
	}
}

// pause waits a while, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// attend registers the node and takes its messages until something fails, or no client app is there any more.
func (n *supernode) attend(ctx context.Context, name string, failing *bool) error {
	created, err := n.fleet.CreateNode(ctx, &flowerpb.CreateNodeRequest{Name: name})
	if err != nil {
		return err
	}
	if _, err := n.fleet.Ping(ctx, &flowerpb.PingRequest{NodeId: created.NodeId}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stream, err := n.fleet.PullMessages(ctx, &flowerpb.PullMessagesRequest{NodeId: created.NodeId})
	if err != nil {
		return err
	}
	n.s.Log.Info("Connected to the SuperLink", slog.Uint64("node", created.NodeId))
	*failing = false
	var pinging sync.WaitGroup
	defer pinging.Wait()
	defer cancel(nil)
	pinging.Go(func() { cancel(n.ping(ctx, created.NodeId)) })
	for {
		m, err := stream.Recv()
		if err != nil {
			if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil {
				err = cause
			}
			return err
		}
		m.Config = n.config
		if !n.mailbox.put(m) {
			n.s.Log.Warn("Too many messages wait for the client app", slog.Uint64("run", m.RunId))
		}
	}
}

// ping tells the link that the node is there, as long as a client app is.
func (n *supernode) ping(ctx context.Context, id uint64) error {
	for {
		pause(ctx, pingEvery)
		n.mu.Lock()
		apps := n.apps
		n.mu.Unlock()
		if apps == 0 || ctx.Err() != nil {
			return nil
		}
		if _, err := n.fleet.Ping(ctx, &flowerpb.PingRequest{NodeId: id}); err != nil {
			return err
		}
	}
}
