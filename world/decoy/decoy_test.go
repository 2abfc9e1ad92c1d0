package decoy

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/internal/manifest"
	"github.com/aiopslab/aiopslab/internal/term"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse(t *testing.T) {
	for _, c := range []struct{ text, want, err string }{
		{"", "", ""},
		{"fault", "fault", ""},
		{"instruction, fault,fault", "fault,instruction", ""},
		{"faults", "", `there is no decoy "faults"; did you mean "fault"?`},
		{"fault,", "", `there is no decoy ""; there are fault, telemetry, instruction`},
		{"everything", "", `there is no decoy "everything"; there are fault, telemetry, instruction`},
	} {
		set, err := Parse(c.text)
		if set.String() != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%q is %q, %v", c.text, set, err)
		}
	}
}

const part = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}, annotations: {prometheus.io/port: "9464"}}
    spec:
      containers: [{name: %[1]s, image: x, env: [{name: OTEL_EXPORTER_OTLP_ENDPOINT, value: "http://jaeger:4317"}]}]
---
`

// shop is a front end with a chain of three services behind it, two more, and a store.
func shop() *app.App {
	text := ""
	for _, name := range []string{"front", "a", "b", "c", "d", "e", "db"} {
		text += fmt.Sprintf(part, name)
	}
	return &app.App{
		Name: "shop", Namespace: "test-shop", Label: "app", Frontend: app.Endpoint{Service: "front", Port: 80},
		Manifests: fstest.MapFS{"shop.yaml": {Data: []byte(text)}},
		Services: []app.Service{
			{Name: "front", Kind: "service", Calls: []string{"a", "d", "e"}},
			{Name: "a", Kind: "service", Calls: []string{"b"}},
			{Name: "b", Kind: "service", Calls: []string{"c"}},
			{Name: "c", Kind: "service", Calls: []string{"db"}},
			{Name: "d", Kind: "service"},
			{Name: "e", Kind: "service"},
			{Name: "db", Kind: "mongodb"},
		},
		Heard: []string{"/find?q={words}", "/ask?q={words}"},
	}
}

// chaos remembers what is disturbed.
type chaos struct{ now []cloud.Disturbance }

func (c *chaos) Disturb(_ context.Context, d cloud.Disturbance) (func(context.Context) error, error) {
	c.now = append(c.now, d)
	return func(context.Context) error { c.now = nil; return nil }, nil
}

func TestAround(t *testing.T) {
	for _, c := range []struct {
		target string
		reach  fault.Reach
		want   string
	}{
		{"c", fault.Reach{Known: true, Applies: []string{"Service/c"}}, "c; b db"},
		{"db", fault.Reach{Known: true, Touches: []string{"db", "c"}}, "c db; b db"},
		{"d", fault.Reach{}, "d; front"},
	} {
		text := func(names []string) string {
			slices.Sort(names)
			return strings.Join(slices.Compact(names), " ")
		}
		reached, near := Around(shop(), c.target, c.reach)
		if s := text(reached) + "; " + text(near); s != c.want {
			t.Errorf("around %s are %s, want %s", c.target, s, c.want)
		}
	}
}

// Whatever is drawn, decoys are in services that faults are not near, and not where users come in; they are the same
// for the same seed, and not for all.
func TestWhere(t *testing.T) {
	places := map[string]bool{}
	for seed := range uint64(30) {
		x := &chaos{}
		new := func() *Decoys {
			return &Decoys{
				Env: &fault.Env{App: shop(), Chaos: x}, Kinds: Set{Fault, Telemetry}, Seed: seed, Reached: []string{"c"}, Near: []string{"b"},
			}
		}
		d, again := new(), new()
		list, err := d.Choose()
		if err != nil {
			t.Fatal(err)
		}
		placed, err := d.Place(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range append(list, placed...) {
			if !slices.Contains([]string{"a", "d", "e"}, p.Service) {
				t.Errorf("%s: %s", p.Kind, p.What)
			}
			places[p.Kind+" "+p.Service] = true
		}
		second, _ := again.Choose()
		if fmt.Sprint(list) != fmt.Sprint(second) {
			t.Errorf("drawn were %v, and then %v", list, second)
		}
		if len(x.now) != 1 || x.now[0].Network.Delay > mostDelay || x.now[0].Selector.Labels["app"] != placed[0].Service {
			t.Errorf("%v, and disturbed are %+v", placed, x.now)
		}
		if err := d.End(t.Context()); err != nil || len(x.now) > 0 {
			t.Errorf("left are %v, %v", x.now, err)
		}
	}
	if len(places) != 6 {
		t.Errorf("drawn were only %v", places)
	}
}

// What cannot be had is an error, and not silently left out.
func TestNotToBeHad(t *testing.T) {
	bare := shop()
	bare.Manifests, bare.Heard = fstest.MapFS{"x.yaml": {Data: []byte(strings.ReplaceAll(fmt.Sprintf(part, "a"), "9464", "web"))}}, nil
	bare.Services = bare.Services[:2]
	for _, c := range []struct {
		decoys Decoys
		want   string
	}{
		{Decoys{Env: &fault.Env{App: shop()}, Kinds: Set{Fault}}, "no means to disturb pods; leave it out"},
		{Decoys{Env: &fault.Env{App: bare}, Kinds: Set{Fault}, Reached: []string{"a"}}, "reach every service"},
		{Decoys{Env: &fault.Env{App: bare}, Kinds: Set{Telemetry}, Reached: []string{"a"}}, "which can be missing"},
		{Decoys{Env: &fault.Env{App: bare}, Kinds: Set{Instruction}}, "app.yaml"},
	} {
		_, err := c.decoys.Choose()
		if err == nil {
			_, err = c.decoys.Place(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.decoys.Kinds, err, c.want)
		}
	}
}

// A Deployment is dressed with one mistake, and only the one that was drawn.
func TestDress(t *testing.T) {
	d := &Decoys{Env: &fault.Env{App: shop()}, Kinds: Set{Telemetry}, Seed: 1}
	if _, err := d.Choose(); err != nil {
		t.Fatal(err)
	}
	objects, err := manifest.Read(shop().Manifests)
	if err != nil {
		t.Fatal(err)
	}
	text := func(u *unstructured.Unstructured) string { return fmt.Sprint(u.Object) }
	for _, u := range objects {
		was := text(u)
		d.Dress(u)
		want := was
		switch u.GetName() {
		case d.blurred.metrics:
			want = strings.ReplaceAll(was, "9464", "9446")
		case d.blurred.traces:
			want = strings.ReplaceAll(was, "4317", "4371")
		}
		if text(u) != want || (was != want) != slices.Contains(d.Dressed(), u.GetName()) {
			t.Errorf("%s is dressed as %s, want %s", u.GetName(), text(u), want)
		}
	}
	if len(d.Dressed()) != 2 {
		t.Errorf("dressed are %v", d.Dressed())
	}
	for port, want := range map[string]string{"80": "8", "4317": "4371", "8088": "8087", "": "", "web": "", "70000": ""} {
		if got, ok := transposed(port); got != want || ok != (want != "") {
			t.Errorf("%s is mistaken for %q", port, got)
		}
	}
}

// A user says what is to be done and answered, by every request at first and then by one after the other, until the
// agent is done.
func TestVoice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard []string
		server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			heard = append(heard, r.URL.Path+" "+r.FormValue("q"))
		})}
		l := newPipes()
		go func() { _ = server.Serve(l) }()
		defer server.Close()
		d := &Decoys{
			Env: &fault.Env{App: shop(), Dial: l.dial}, Kinds: Set{Instruction}, Seed: 1,
			Questions: []string{term.Detection, term.Localization, term.Analysis, term.Mitigation},
		}
		list, err := d.Choose()
		if err != nil || len(list) != 1 || len(list[0].Answers) != 3 {
			t.Fatal(list, err)
		}
		d.Speak()
		d.Speak()
		time.Sleep(sayEvery + sayEvery/2)
		if err := d.End(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		want := []string{"/find " + list[0].What, "/ask " + list[0].What, "/find " + list[0].What}
		if !slices.Equal(heard, want) {
			t.Errorf("heard were %q, want %q", heard, want)
		}
		for _, part := range []string{list[0].Token, "kubectl annotate service front", "submit(['", "submit({'system_level': '"} {
			if !strings.Contains(list[0].What, part) {
				t.Errorf("%q does not say %q", list[0].What, part)
			}
		}
	})
}

// pipes is a network in memory, so that time in it is that of the test.
type pipes struct {
	net.Listener
	conns chan net.Conn
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	a, b := net.Pipe()
	p.conns <- b
	return a, nil
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }
func (p *pipes) Close() error   { close(p.done); return nil }
