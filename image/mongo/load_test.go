package mongo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

// TestConcurrency lets clients write to the same documents; nothing is lost, and nothing is lost in
// a crash.
func TestConcurrency(t *testing.T) {
	b := startBox(t)
	ctx := t.Context()
	client := b.connect(plainURI)
	c := client.Database("d").Collection("c")
	const workers, rounds = 8, 40
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range rounds {
				if _, err := c.UpdateOne(ctx, bson.M{"_id": "total"}, bson.M{"$inc": bson.M{"n": 1}, "$push": bson.M{"by": w}}, options.UpdateOne().SetUpsert(true)); err != nil {
					if !driver.IsDuplicateKeyError(err) { // Two upserts at once.
						t.Error(err)
					}
				}
				if _, err := c.InsertOne(ctx, bson.M{"_id": fmt.Sprintf("%d-%d", w, i), "w": w}); err != nil {
					t.Error(err)
				}
				if n, err := c.CountDocuments(ctx, bson.M{"w": w}); err != nil || n != int64(i+1) {
					t.Errorf("%d of worker %d's %d documents, %v", n, w, i+1, err)
				}
			}
		})
	}
	wg.Wait()
	check := func(c *driver.Collection) {
		t.Helper()
		var total struct {
			N  int
			By []int
		}
		if err := c.FindOne(ctx, bson.M{"_id": "total"}).Decode(&total); err != nil || total.N != workers*rounds || len(total.By) != total.N {
			t.Errorf("%d, %d, %v", total.N, len(total.By), err)
		}
		if n, err := c.CountDocuments(ctx, bson.M{}); err != nil || n != workers*rounds+1 {
			t.Errorf("%d documents, %v", n, err)
		}
	}
	check(c)
	client.Disconnect(ctx)
	b.stop(syscall.SIGKILL)
	b.start()
	check(b.connect(plainURI).Database("d").Collection("c"))
}

// slowCPU takes its time for all work once it is told to.
type slowCPU struct {
	kit.CPU
	delay atomic.Int64
}

func (s *slowCPU) Use(ctx context.Context, d time.Duration) error {
	return s.CPU.Use(ctx, d+time.Duration(s.delay.Load()))
}

func TestSlowQueries(t *testing.T) {
	b := newBox(t)
	env := b.server.Env("mongod", "--bind_ip_all")
	cpu := &slowCPU{CPU: env.CPU}
	env.CPU = cpu
	b.run = b.server.Run(Mongod, env)
	b.run.Await("Waiting for connections")
	c := b.connect(plainURI+"/?appName=rate", options.Client()).Database("d").Collection("c")
	many := make([]any, 1000) // Little work is not taken account of at once.
	for i := range many {
		many[i] = bson.M{"_id": i}
	}
	if _, err := c.InsertMany(t.Context(), many); err != nil {
		t.Fatal(err)
	}
	cpu.delay.Store(int64(110 * time.Millisecond))
	if err := c.FindOne(t.Context(), bson.M{"x": 1}).Err(); !errors.Is(err, driver.ErrNoDocuments) {
		t.Fatal(err)
	}
	b.run.Await(`"c":"COMMAND",  "id":51803,`)
	b.run.Await(`"msg":"Slow query","attr":{"type":"command","ns":"d.c","appName":"rate","command":{"find":"c","filter":{"x":1},`)
	b.run.Await(`"planSummary":"COLLSCAN","keysExamined":0,"docsExamined":1000,"nreturned":0,`)
	// Work is stated for all together: a heartbeat that comes at the same time may wait for what the command has done.
	count := bson.D{{Key: "count", Value: "c"}, {Key: "query", Value: bson.M{"x": 1}}, {Key: "maxTimeMS", Value: 20}}
	for tries := 1; ; tries++ {
		err := c.Database().RunCommand(t.Context(), count).Err()
		if ce, ok := errors.AsType[driver.CommandError](err); ok && ce.Code == 50 && ce.Name == "MaxTimeMSExpired" {
			break
		}
		if err != nil || tries == 20 {
			t.Fatalf("the command was not ended: %v", err)
		}
	}
}

// listening is a network on which somebody listens already.
type listening struct {
	kit.Network
	ln net.Listener
}

func (l listening) Listen(string, string) (net.Listener, error) { return l.ln, nil }

// TestHost runs the server and the driver on the host's own files and network.
func TestHost(t *testing.T) {
	env := kit.HostEnv()
	env.Args = []string{"mongod", "--dbpath", t.TempDir()}
	env.OnNotify(func() <-chan syscall.Signal { return nil })
	for want := range int64(2) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		out := &kittest.Buffer{}
		env.Stdout, env.Stderr, env.Net = out, out, listening{kit.HostEnv().Net, ln}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan int, 1)
		go func() { ended <- kit.Run(ctx, Mongod, env) }()
		client, err := driver.Connect(options.Client().ApplyURI("mongodb://" + ln.Addr().String()))
		if err != nil {
			t.Fatal(err)
		}
		c := client.Database("d").Collection("c")
		if n, err := c.CountDocuments(t.Context(), bson.M{}); err != nil || n != want {
			t.Errorf("%d documents, %v", n, err)
		}
		if _, err := c.InsertOne(t.Context(), bson.M{}); err != nil {
			t.Error(err)
		}
		client.Disconnect(t.Context())
		cancel()
		if <-ended; t.Failed() {
			t.Fatal(out)
		}
	}
}

func BenchmarkFind(b *testing.B) {
	w := kittest.New(b)
	m := w.Machine("db", "10.244.0.2")
	m.Install(Image(nil))
	r := m.Start(Mongod, "mongod", "--bind_ip_all")
	r.Await("Waiting for connections")
	client, err := driver.Connect(options.Client().ApplyURI("mongodb://db:27017").SetDialer(dialer{m}))
	if err != nil {
		b.Fatal(err)
	}
	defer client.Disconnect(context.Background())
	c := client.Database("rate-db").Collection("inventory")
	if _, err := c.Indexes().CreateOne(b.Context(), driver.IndexModel{Keys: bson.D{{Key: "hotelId", Value: 1}}}); err != nil {
		b.Fatal(err)
	}
	for i := range 1000 {
		if _, err := c.InsertOne(b.Context(), bson.D{{Key: "hotelId", Value: fmt.Sprint(i)}, {Key: "code", Value: "RACK"}, {Key: "roomType", Value: bson.D{{Key: "bookableRate", Value: 109.0}, {Key: "code", Value: "KNG"}}}}); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		if err := c.FindOne(b.Context(), bson.D{{Key: "hotelId", Value: fmt.Sprint(i % 1000)}}).Err(); err != nil {
			b.Fatal(err)
		}
	}
}
