package mongo

import (
	"context"
	"net"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/kit/kittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// box is a machine with a MongoDB server and another with its clients.
type box struct {
	t      *testing.T
	world  *kittest.World
	server *kittest.Machine
	client *kittest.Machine
	run    *kittest.Run
}

// newBox returns machines on which nothing runs yet.
func newBox(t *testing.T) *box {
	t.Helper()
	w := kittest.New(t)
	b := &box{t: t, world: w, server: w.Machine("db", "10.244.0.2"), client: w.Machine("app", "10.244.0.3")}
	b.server.Install(Image(nil))
	b.client.Install(Image(nil))
	return b
}

// startBox returns a box with a server that listens to all.
func startBox(t *testing.T, args ...string) *box {
	t.Helper()
	b := newBox(t)
	b.start(args...)
	return b
}

func (b *box) start(args ...string) {
	b.t.Helper()
	b.run = b.server.Start(Mongod, append([]string{"mongod", "--bind_ip_all"}, args...)...)
	b.run.Await(`"Waiting for connections"`)
}

// stop ends the server and returns its exit code.
func (b *box) stop(sig syscall.Signal) int {
	b.t.Helper()
	b.run.Signal(sig)
	return b.run.Wait()
}

type dialer struct{ m *kittest.Machine }

func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return d.m.Env().Net.DialContext(ctx, network, address)
}

// connect returns a driver's client of the server.
func (b *box) connect(uri string, more ...*options.ClientOptions) *driver.Client {
	return b.connectFrom(b.client, uri, more...)
}

func (b *box) connectFrom(m *kittest.Machine, uri string, more ...*options.ClientOptions) *driver.Client {
	b.t.Helper()
	o := options.Client().ApplyURI(uri).SetDialer(dialer{m})
	c, err := driver.Connect(append([]*options.ClientOptions{o}, more...)...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond) // The server may be gone.
		defer cancel()
		c.Disconnect(ctx)
	})
	return c
}

const plainURI = "mongodb://db:27017"

func run(t *testing.T, db *driver.Database, cmd bson.D) bson.M {
	t.Helper()
	var reply bson.M
	if err := db.RunCommand(t.Context(), cmd).Decode(&reply); err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
	return reply
}

func errorOf(t *testing.T, db *driver.Database, cmd bson.D) driver.CommandError {
	t.Helper()
	err := db.RunCommand(t.Context(), cmd).Err()
	ce, ok := err.(driver.CommandError)
	if !ok {
		t.Fatalf("%v: %v, want a command error", cmd, err)
	}
	return ce
}
