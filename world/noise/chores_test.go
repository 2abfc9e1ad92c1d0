package noise

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/image/mongo"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
	"github.com/aiopslab/aiopslab/world"
)

// certify gives the shop a certificate.
func (x *trial) certify(t *testing.T) {
	t.Helper()
	data, err := world.Certificate("test-shop", nil, rand.New(rand.NewPCG(1, 1)), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s := &v1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: "public-tls", Labels: map[string]string{world.CertificateLabel: "true"},
			Annotations: map[string]string{world.CertificateRevision: "3"},
		},
		Type: v1.SecretTypeTLS, Data: data,
	}
	if _, err := x.client.CoreV1().Secrets("test-shop").Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// A certificate is renewed now and then, and not any more once somebody else has written it. Surges come and go.
func TestChores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTrial(t, Calm, 7)
		x.certify(t)
		var surges []time.Duration
		x.life.Surge = func(_ context.Context, part float64, lasting time.Duration, _ uint64) {
			surges = append(surges, lasting)
			if part < surgeLeast || part > surgeMost || lasting < surgeTime || lasting > 2*surgeTime {
				t.Errorf("%.0f %% more for %v", 100*part, lasting)
			}
		}
		if err := x.life.Go(t.Context()); err != nil {
			t.Fatal(err)
		}
		secrets := x.client.CoreV1().Secrets("test-shop")
		read := func() *v1.Secret {
			s, err := secrets.Get(t.Context(), "public-tls", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		first := read()
		time.Sleep(13 * time.Second)
		renewed := read()
		if string(renewed.Data["tls.crt"]) == string(first.Data["tls.crt"]) || renewed.Annotations[world.CertificateRevision] != "4" {
			t.Errorf("it was not renewed: %v", renewed.Annotations)
		}
		renewed.Annotations["mine"] = "yes"
		if _, err := secrets.Update(t.Context(), renewed, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if now := read(); now.Annotations[world.CertificateRevision] != "4" || now.Annotations["mine"] != "yes" {
			t.Errorf("what somebody else has written is renewed: %v", now.Annotations)
		}
		x.life.Stop(t.Context())
		if n := len(surges); n < 5 || n > 11 {
			t.Errorf("%d surges in ten minutes", n)
		}
		count := map[string]int{}
		for _, c := range x.life.Changes() {
			count[c.What]++
		}
		if count["certificate"] != 1 || count["load spike"] != len(surges) || count["slow query"] != 0 {
			t.Errorf("told were %v", count)
		}
	})
}

// working is a processor that takes the time that work takes.
type working struct{ kit.CPU }

func (w working) Use(ctx context.Context, d time.Duration) error {
	time.Sleep(d)
	return w.CPU.Use(ctx, d)
}

// A store that no fault reaches logs a query that was slow, and what it holds is as before.
func TestSlowQuery(t *testing.T) {
	w := kittest.New(t)
	server, user := w.Machine("db.test-shop", "10.244.0.2"), w.Machine("user", "10.244.0.3")
	server.Install(mongo.Image(nil))
	env := server.Env("mongod", "--bind_ip_all")
	env.CPU = working{env.CPU}
	run := server.Run(mongo.Mongod, env)
	run.Await("Waiting for connections")
	a := &app.App{Namespace: "test-shop", Services: []app.Service{{Name: "db", Kind: "mongodb"}}}
	life := &Life{Env: &fault.Env{App: a, Dial: user.Env().Net.DialContext}, Level: Calm}
	life.query(t.Context(), life.draw(5))
	if c := life.Changes(); len(c) > 0 {
		t.Errorf("%v in an empty store", c)
	}
	client, err := driver.Connect(options.Client().ApplyURI("mongodb://db.test-shop:27017/?directConnection=true").
		SetDialer(dialer(user.Env().Net.DialContext)))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Disconnect(context.Background())
	many := make([]any, 500)
	for i := range many {
		many[i] = bson.M{"_id": i}
	}
	if _, err := client.Database("d").Collection("c").InsertMany(t.Context(), many); err != nil {
		t.Fatal(err)
	}
	life.reached = []string{"db"}
	life.query(t.Context(), life.draw(5))
	if c := life.Changes(); len(c) > 0 {
		t.Errorf("%v in what a fault reaches", c)
	}
	life.reached = nil
	life.query(t.Context(), life.draw(5))
	if c := life.Changes(); len(c) != 1 || c[0].What != "slow query" || c[0].Service != "db" {
		t.Errorf("told was %v", c)
	}
	run.Await(`"msg":"Slow query","attr":{"type":"command","ns":"d.c","appName":"report","command":{"aggregate":"c"`)
	run.Await(`"planSummary":"COLLSCAN"`)
	names, err := client.ListDatabaseNames(t.Context(), bson.D{})
	if err != nil || strings.Join(names, " ") != "d" {
		t.Errorf("the databases are %v, %v", names, err)
	}
}

// A join looks at as many documents as it takes, however many there are.
func TestSelfJoin(t *testing.T) {
	for size, want := range map[int64]int64{0: 0, 1: 0, 47: 0, 48: 48, 80: 18, 331: 2, 500: 220, 5000: 22, 1e6: 1} {
		pipeline, ok := selfJoin("c", size)
		if ok != (want > 0) {
			t.Errorf("of %d documents: %v", size, ok)
			continue
		}
		if ok && pipeline[0].(bson.D)[0].Value != want {
			t.Errorf("of %d documents: %v, want %d", size, pipeline[0], want)
		}
	}
}
