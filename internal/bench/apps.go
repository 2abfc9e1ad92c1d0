package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/app/astronomy"
	"github.com/aiopslab/aiopslab/app/flightticket"
	"github.com/aiopslab/aiopslab/app/flower"
	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/app/social"
	"github.com/aiopslab/aiopslab/app/sockshop"
	"github.com/aiopslab/aiopslab/app/tidb"
	"github.com/aiopslab/aiopslab/app/trainticket"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/internal/bench/measure"
	"github.com/aiopslab/aiopslab/internal/manifest"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/workload"
)

const (
	leastRate = 500.0            // requests/s that an environment should hold
	halfRate  = leastRate / 2    // at which CPU time per request is measured, and what is tried first
	rateStep  = 1.25             // how much more is tried next
	rateTime  = 15 * time.Second // for which a rate is held
	socialFor = 5 * time.Minute  // of load, until memory is read
)

// benchApps deploys the applications, and drives as much load through one as it holds.
func benchApps(ctx context.Context, r *run) error {
	c, kube, err := r.embed(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	client, err := manifest.NewClient(c.RESTConfig())
	if err != nil {
		return err
	}
	for _, t := range []struct {
		app    *app.App
		serves question
		target measure.Target
	}{
		{
			hotel.App(), get("/hotels?inDate=2015-04-09&outDate=2015-04-10&lat=37.7854&lon=-122.4005"),
			measure.AtMost(3),
		},
		{social.App(), get("/wrk2-api/home-timeline/read?user_id=1&start=0&stop=10"), measure.AtMost(4)},
		{sockshop.App(), get("/catalogue"), measure.AtMost(3)},
		{astronomy.App(), get("/api/products"), measure.AtMost(5)},
		{tidb.App(), get("/accounts/1"), measure.Target{}},
		{flower.App(), get("/ready"), measure.Target{}},
		{
			flightticket.App(),
			question{"/api/v1/namespaces/_/actions/get-route-by-route-id?blocking=true", `{"rId": 2}`},
			measure.Target{},
		},
		{trainticket.App(), get("/api/v1/stationservice/stations"), measure.Target{}},
	} {
		took := measure.Of("s")
		for round := range r.rounds {
			// A new namespace each time; the names inside are relative to it.
			a := *t.app
			a.Namespace = fmt.Sprintf("%s-%d", a.Namespace, round)
			objects, err := manifest.Read(a.Manifests)
			if err != nil {
				return err
			}
			start := time.Now()
			if err := bringUp(ctx, c, client, &a, objects, t.serves); err != nil {
				return err
			}
			took.Add(time.Since(start).Seconds())
			if err := kube.CoreV1().Namespaces().Delete(ctx, a.Namespace, metav1.DeleteOptions{}); err != nil {
				return err
			}
			if err := until(ctx, "the end of "+a.Namespace, func() bool {
				_, err := kube.CoreV1().Namespaces().Get(ctx, a.Namespace, metav1.GetOptions{})
				return apierrors.IsNotFound(err)
			}); err != nil {
				return err
			}
		}
		r.report(measure.Row{
			What: t.app.Name + ": applied to Ready and serving", Value: took, Target: t.target,
		})
	}
	return r.benchLoad(ctx, c, client)
}

// benchLoad measures what requests to HotelReservation cost without and with telemetry, and how many
// a second it answers with all of it.
func (r *run) benchLoad(ctx context.Context, c cloud.Cloud, client *manifest.Client) error {
	a := hotel.App()
	serves := get("/recommendations?require=rate&lat=38&lon=-122")
	objects, err := manifest.Read(a.Manifests)
	if err != nil {
		return err
	}
	silent := make([]*unstructured.Unstructured, len(objects))
	for i, u := range objects {
		if silent[i], err = withoutTelemetry(u); err != nil {
			return err
		}
	}
	if err := bringUp(ctx, c, client, a, silent, serves); err != nil {
		return err
	}
	off, err := cost(ctx, c, a)
	if err != nil {
		return err
	}
	o, err := observe.New(c.RESTConfig(), c.Dial, nil)
	if err != nil {
		return err
	}
	defer o.Close()
	if err := o.Deploy(ctx, nil); err != nil {
		return err
	}
	if err := bringUp(ctx, c, client, a, objects, serves); err != nil {
		return err
	}
	on, err := cost(ctx, c, a)
	if err != nil {
		return err
	}
	r.report(measure.Row{What: a.Name + ": CPU time of a request, the client's too", Value: measure.Of("ms", 1000*on)})
	r.report(measure.Row{What: a.Name + ": the same without telemetry", Value: measure.Of("ms", 1000*off)})
	r.report(measure.Row{
		What:  a.Name + ": throughput of a core with telemetry to without",
		Value: measure.Of("", off/on), Target: measure.AtLeast(0.8),
	})

	held := measure.Of("requests/s")
	for rate := halfRate; ; rate *= rateStep {
		sli, err := send(ctx, c, a, rate, rateTime)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "  %.0f requests/s: %d of %d failed, p50 %v, p99 %v\n", rate, sli.Failed, sli.Requests,
			sli.P50, sli.P99)
		if sli.Failed > 0 {
			break
		}
		held = measure.Of("requests/s", rate)
	}
	if !held.Known() {
		held.Add(0)
	}
	r.report(measure.Row{
		What: a.Name + ": load held with no failed request", Value: held,
		Target: measure.AtLeast(leastRate),
	})
	return nil
}

// question is what a frontend answers with 200 when its application serves: a page, or what a body asks for.
type question struct{ path, body string }

func get(path string) question { return question{path: path} }

// ask sends it.
func (q question) ask(h *http.Client, host string) (*http.Response, error) {
	if q.body == "" {
		return h.Get("http://" + host + q.path)
	}
	return h.Post("http://"+host+q.path, "application/json", strings.NewReader(q.body))
}

// bringUp applies an application and waits until it serves.
func bringUp(ctx context.Context, c cloud.Cloud, client *manifest.Client, a *app.App,
	objects []*unstructured.Unstructured, serves question,
) error {
	if err := client.Apply(ctx, a.Namespace, objects); err != nil {
		return err
	}
	if err := client.WaitReady(ctx, a.Namespace, objects); err != nil {
		return err
	}
	h := &http.Client{Transport: &http.Transport{DialContext: c.Dial}}
	defer h.CloseIdleConnections()
	return until(ctx, a.Name+" to serve", func() bool {
		resp, err := serves.ask(h, a.Host())
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// withoutTelemetry is a manifest whose containers send no spans. Without Prometheus nobody reads
// their metrics either.
func withoutTelemetry(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	path := []string{"spec", "template", "spec", "containers"}
	containers, found, err := unstructured.NestedSlice(u.Object, path...)
	if err != nil || !found {
		return u, err
	}
	for _, c := range containers {
		c := c.(map[string]any)
		env, _, err := unstructured.NestedSlice(c, "env")
		if err != nil {
			return nil, err
		}
		c["env"] = slices.DeleteFunc(env, func(v any) bool {
			return v.(map[string]any)["name"] == "OTEL_EXPORTER_OTLP_ENDPOINT"
		})
	}
	u = u.DeepCopy()
	return u, unstructured.SetNestedSlice(u.Object, containers, path...)
}

// cost returns the CPU seconds of a request, of all of this process.
func cost(ctx context.Context, c cloud.Cloud, a *app.App) (float64, error) {
	before, err := measure.CPUOf(os.Getpid())
	if err != nil {
		return 0, err
	}
	sli, err := send(ctx, c, a, halfRate, rateTime)
	if err != nil {
		return 0, err
	}
	after, err := measure.CPUOf(os.Getpid())
	if err != nil {
		return 0, err
	}
	return (after - before).Seconds() / float64(sli.Requests), nil
}

// send sends an application's mix of requests.
func send(ctx context.Context, c cloud.Cloud, a *app.App, rate float64, d time.Duration) (workload.SLI, error) {
	mix, err := workload.FindMix(a.Mixes, a.Mix)
	if err != nil {
		return workload.SLI{}, err
	}
	g, err := workload.New(workload.Spec{
		Mix: mix, Arrivals: &workload.Arrivals{Rate: workload.Rate{{Constant: &rate}}}, Duration: d,
	}, workload.Target{BaseURL: "http://" + a.Host(), DialContext: c.Dial})
	if err != nil {
		return workload.SLI{}, err
	}
	err = g.Run(ctx)
	return g.Snapshot().Window("whole").Total, err
}

// benchSocial watches the memory of an application under load for a while, and what the others need by default.
func benchSocial(ctx context.Context, r *run) error {
	for _, t := range []struct {
		app    string
		load   string
		length time.Duration
		target measure.Target
	}{
		{"social-network", "50", socialFor, measure.AtMost(700)},
		{"hotel-reservation", "10", time.Minute, measure.Target{}},
		{"sock-shop", "10", time.Minute, measure.Target{}},
		{"astronomy-shop", "10", time.Minute, measure.AtMost(800)},
		{"astronomy-shop", "25", time.Minute, measure.AtMost(800)}, // As its problems have it.
	} {
		if err := r.watchApp(ctx, t.app, t.load, t.length, t.target); err != nil {
			return err
		}
	}
	return nil
}

// watchApp runs an application as users do, and reports its memory at a fifth, three fifths and the
// end of the time, and its CPU time.
func (r *run) watchApp(ctx context.Context, name, load string, length time.Duration, target measure.Target) error {
	dir, err := os.MkdirTemp(r.dir, "lab-")
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	cmd := exec.Command(r.binary, "up", "--kubeconfig", kubeconfig, "--app", name, "--load", load)
	cmd.Env = append(os.Environ(), "AIOPSLAB_TMPDIR="+dir)
	c, err := start(ctx, cmd, kubeconfig)
	if err != nil {
		return err
	}
	defer c.close()
	if _, err := c.waitReady(ctx); err != nil {
		return err
	}
	before, err := measure.CPUOf(c.pid())
	if err != nil {
		return err
	}
	begin := time.Now()
	for _, fifths := range []int{1, 3, 5} {
		at := length * time.Duration(fifths) / 5
		if err := sleep(ctx, time.Until(begin.Add(at))); err != nil {
			return err
		}
		m, err := measure.MemoryOf(c.pid())
		if err != nil {
			return err
		}
		row := measure.Row{
			What:  fmt.Sprintf("%s at %s requests/s: resident memory after %v", name, load, at),
			Value: measure.Of("MB", megabytes(m.Resident)),
		}
		if fifths == 5 {
			row.Target = target
		}
		r.report(row)
	}
	after, err := measure.CPUOf(c.pid())
	if err != nil {
		return err
	}
	r.report(measure.Row{
		What:  fmt.Sprintf("%s at %s requests/s: CPU, of a core", name, load),
		Value: measure.Of("%", 100*(after-before).Seconds()/time.Since(begin).Seconds()),
	})
	return nil
}
