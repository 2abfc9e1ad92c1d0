package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/aci/tool"
	"github.com/aiopslab/aiopslab/app"
	questions "github.com/aiopslab/aiopslab/app/ask"
	"github.com/aiopslab/aiopslab/cloud/cloudtest"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/problem"
)

// TestMain is also the lab's binary, for an agent's shell.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "tool" {
		os.Exit(tool.Run(os.Args[2:], map[string]tool.Program{aci.ShellName: aci.Shell(nil)}))
	}
	goleak.VerifyTestMain(m)
}

// shopManifest is an application of two parts. Users see the frontend, which needs the cart.
const shopManifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: 1
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: %[1]s, image: "example/%[1]s:v1", ports: [{containerPort: 80}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec: {selector: {app: %[1]s}, ports: [{port: 80}]}
---
`

func shop() *app.App {
	var manifests string
	for _, name := range []string{"frontend", "cart"} {
		manifests += fmt.Sprintf(shopManifest, name)
	}
	return &app.App{
		Name: "shop", Title: "Shop", Namespace: "test-shop", Label: "app",
		Manifests: fstest.MapFS{"shop.yaml": {Data: []byte(manifests)}},
		Frontend:  app.Endpoint{Service: "frontend", Port: 80},
		Services: []app.Service{
			{Name: "frontend", Kind: "service", Calls: []string{"cart"}, Ask: greet}, {Name: "cart", Kind: "service", Ask: greet},
		},
		Mix:   "shop",
		Mixes: fstest.MapFS{"shop.yaml": {Data: []byte("name: shop\noperations: [{name: buy, weight: 1, path: /}]\n")}},
	}
}

// greet asks a service of the shop something.
func greet(ctx context.Context, dial questions.Dial, address string) error {
	client := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	return errors.Join(resp.Body.Close(), ok(resp.StatusCode))
}

func ok(status int) error {
	if status != http.StatusOK {
		return fmt.Errorf("it answers %d", status)
	}
	return nil
}

// shopDocument is a shop with something wrong with its cart.
const shopDocument = `
id: shop-{task}-1
title: something is wrong with the cart
app: shop
load: {rate: 4}
faults: [{kind: %s, target: cart}]
tasks: [%s]
answer:
  components: [{name: cart}]
  cause: {system_level: Virtualization, fault_type: Operation Error}
`

// shopProblem is a task about a shop whose cart is scaled to no pods.
func shopProblem(task problem.Task) *problem.Problem { return shopWith("scale_pods_to_zero", task) }

// shopWith is a task about a shop with a fault in its cart.
func shopWith(kind string, task problem.Task) *problem.Problem {
	library, err := problem.New([]*app.App{shop()}, fault.Kinds())
	if err != nil {
		panic(err)
	}
	list, err := library.Parse("shop.yaml", fmt.Appendf(nil, shopDocument, kind, task))
	if err != nil {
		panic(err)
	}
	return list[0]
}

// fakeShop is a shop in a cloud in memory, with what a test does to it.
type fakeShop struct {
	*cloudtest.Cloud
	*Local
	client    kubernetes.Interface
	visits    atomic.Int64 // of users
	alerts    atomic.Value // a string: the rules that Prometheus has, in its JSON
	firing    atomic.Value // a string: the alerts that it has, in its JSON
	act       func(ctx context.Context, command string) string
	interrupt context.CancelFunc
	session   *Session
	broken    bool // for good
	answered  int  // questions of an incident
}

// An alert that is always there.
const noisy = `{"name":"Noisy","type":"alerting","query":"1","labels":{},"annotations":{},"duration":0,` +
	`"alerts":[{"labels":{"alertname":"Noisy","pod":"cart-0"},"annotations":{},"state":"firing","value":"1"}]}`

func newShop(t *testing.T) *fakeShop {
	t.Helper()
	c := cloudtest.New(t)
	w := &fakeShop{Cloud: c, Local: &Local{Cloud: c}}
	w.alerts.Store("")
	w.firing.Store("")
	var err error
	if w.client, err = kubernetes.NewForConfig(c.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	w.Local.admit = w.admitted
	c.Serve("cart.test-shop:80", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	c.Serve("frontend.test-shop:80", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.visits.Add(1)
		if err := greet(r.Context(), c.Dial, "cart.test-shop:80"); err != nil {
			http.Error(rw, err.Error(), http.StatusBadGateway)
		}
	}))
	c.Serve(strings.TrimSuffix(observe.PrometheusHost(nil), ".svc.cluster.local")+":80", http.HandlerFunc(w.prometheus))
	return w
}

// prometheus answers what is asked about alerts.
func (w *fakeShop) prometheus(rw http.ResponseWriter, r *http.Request) {
	rw.Header().Set("Content-Type", "application/json")
	switch path.Base(r.URL.Path) {
	case "rules":
		fmt.Fprintf(rw, `{"status":"success","data":{"groups":[{"name":"g","interval":5,"rules":[%s]}]}}`, w.alerts.Load())
		return
	case "alerts":
		fmt.Fprintf(rw, `{"status":"success","data":{"alerts":[%s]}}`, w.firing.Load())
		return
	}
	_, _ = io.WriteString(rw, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
}

// scale gives a Deployment other replicas, as kubectl scale does.
func (w *fakeShop) scale(ctx context.Context, name string, replicas int32) error {
	d, err := w.client.AppsV1().Deployments("test-shop").Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	d.Spec.Replicas = ptr.To(replicas)
	_, err = w.client.AppsV1().Deployments("test-shop").Update(ctx, d, metav1.UpdateOptions{})
	return err
}

// admitted gives the agent hands, without a guard: that one is on the machine's network, where time is
// real.
func (w *fakeShop) admitted(context.Context) (*access, error) {
	late := func() time.Duration { return w.stage.load.Lag().Recent }
	return &access{aci: grip{w}, monitor: startMonitor(func() int64 { return 0 }, late)}, nil
}

// grip does what an agent asks for. Its one command scales the cart.
type grip struct{ *fakeShop }

func (grip) Confinement() string    { return "none" }
func (grip) Hold() (release func()) { return func() {} }
func (grip) Close() error           { return nil }

func (g grip) Do(ctx context.Context, c *aci.Call) aci.Result {
	if asked := questionsOf(g.setting.Problem); c.Name == "submit" && g.answered < len(asked) {
		res := aci.Result{Question: asked[g.answered]}
		if len(c.Args) > 0 {
			res.Answer = c.Args[0]
		}
		if g.answered++; g.answered < len(asked) {
			res.Next = asked[g.answered]
			res.Text = aci.Ask(res.Next)
		}
		res.Submitted = g.answered == len(asked)
		return res
	}
	switch {
	case c.Name == "submit" && g.shift != nil:
		var services []string
		if len(c.Args) > 0 {
			for _, s := range c.Args[0].([]any) {
				services = append(services, s.(string))
			}
		}
		text, answer, over := g.shift.pager.Answer(ctx, services, 5*time.Minute)
		return aci.Result{Text: "\n" + text, Answer: answer, Submitted: over, Question: "page"}
	case c.Name == "submit" && len(c.Args) > 0:
		return aci.Result{Submitted: true, Answer: c.Args[0]}
	case c.Name == "submit":
		return aci.Result{Submitted: true}
	case g.act != nil:
		return aci.Result{Text: g.act(ctx, fmt.Sprint(c.Args...))}
	case strings.Contains(fmt.Sprint(c.Args...), "scale"):
		if err := g.scale(ctx, "cart", 1); err != nil {
			return aci.Result{Failed: true, Text: err.Error()}
		}
		g.journal(guard.Entry{Verb: "update", Resource: "deployments", Namespace: "test-shop", Name: "cart", Status: 200})
	}
	return aci.Result{Text: "done"}
}
