package apps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/internal/manifest"
	"github.com/aiopslab/aiopslab/test/labtest"
	"github.com/aiopslab/aiopslab/workload"
)

// application is one that runs on the lab's cloud.
type application struct {
	*app.App
	objects  []*unstructured.Unstructured
	http     *http.Client
	deployed time.Time
}

// deploy brings an application up, and says how long it took until it served.
func deploy(t *testing.T, a *app.App, path string) *application {
	t.Helper()
	objects, err := manifest.Read(a.Manifests)
	if err != nil {
		t.Fatal(err)
	}
	x := &application{
		App: a, objects: objects, deployed: time.Now(),
		http: &http.Client{Transport: &http.Transport{DialContext: lab.Cloud.Dial}},
	}
	t.Cleanup(x.http.CloseIdleConnections)
	if err := lab.Apply.Apply(t.Context(), a.Namespace, objects); err != nil {
		t.Fatal(err)
	}
	x.waitReady(t)
	labtest.Await(t, func() (string, error) { return x.get(path) })
	t.Logf("%s serves %v after it was applied", a.Name, time.Since(x.deployed).Round(time.Millisecond))
	return x
}

func (x *application) waitReady(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := lab.Apply.WaitReady(ctx, x.Namespace, x.objects); err != nil {
		t.Fatal(err)
	}
}

// get reads a page of the front door. A status other than 200 is an error.
func (x *application) get(path string) (string, error) {
	resp, err := x.http.Get("http://" + x.Host() + path)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, resp.Status, b)
	}
	return string(b), err
}

// load is requests under way.
type load struct {
	*workload.Generator
	done chan struct{}
}

// load begins to send the application's mix of requests, as many a second as rate says.
func (x *application) load(t *testing.T, rate float64) *load {
	t.Helper()
	mix, err := workload.FindMix(x.Mixes, x.Mix)
	if err != nil {
		t.Fatal(err)
	}
	g, err := workload.New(workload.Spec{
		Mix: mix, Arrivals: &workload.Arrivals{Rate: workload.Rate{{Constant: &rate}}},
	}, workload.Target{BaseURL: "http://" + x.Host(), DialContext: lab.Cloud.Dial})
	if err != nil {
		t.Fatal(err)
	}
	l := &load{g, make(chan struct{})}
	go func() {
		defer close(l.done)
		_ = g.Run(context.Background()) // It ends by Stop alone.
	}()
	t.Cleanup(func() { l.end() })
	return l
}

// end ends the load and returns what came of it.
func (l *load) end() *workload.Snapshot {
	l.Stop()
	<-l.done
	return l.Snapshot()
}

// quiet is for how long no request may fail until an application counts as well again.
const quiet = 10 * time.Second

// survive harms the application under load and waits until no request fails any more. It prints what
// that cost its users.
func (l *load) survive(t *testing.T, what string, harm func()) {
	t.Helper()
	before := l.Snapshot()
	harm()
	after := labtest.Await(t, func() (*workload.Snapshot, error) {
		s := l.Snapshot()
		w := s.Window(quiet.String())
		switch {
		case w.Total.Failed > 0:
			return nil, fmt.Errorf("%s: %d of the last %d requests failed: %+v", what, w.Total.Failed, w.Total.Requests, s.Failures)
		case s.Elapsed-before.Elapsed < quiet, w.Total.Requests == 0:
			return nil, errors.New(what + ": it is too early to tell")
		}
		return s, nil
	})
	a, b := before.Window("whole").Total, after.Window("whole").Total
	n, failed := b.Requests-a.Requests, b.Failed-a.Failed
	t.Logf("%s: %d of %d requests failed (%.2f %%); well again %v later", what, failed, n,
		100*float64(failed)/float64(n), (after.Elapsed - before.Elapsed - quiet).Round(100*time.Millisecond))
	for _, f := range after.Failures {
		t.Logf("  so far %d %s, such as %s: %s", f.Count, f.Class, f.Operation, strings.TrimSpace(f.Sample))
	}
}

// kill deletes the pods of a service at once, as the loss of a process does.
func (x *application) kill(t *testing.T, service string) {
	t.Helper()
	err := lab.Client.CoreV1().Pods(x.Namespace).DeleteCollection(t.Context(),
		metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}, metav1.ListOptions{LabelSelector: x.Label + "=" + service})
	if err != nil {
		t.Fatal(err)
	}
	x.waitReady(t)
}

// restart does what kubectl rollout restart does, to all deployments.
func (x *application) restart(t *testing.T) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":%q}}}}}`, time.Now().Format(time.RFC3339))
	for _, s := range x.Services {
		x.patch(t, s.Name, patch)
	}
	x.waitReady(t)
}

// scale changes how many pods a service has.
func (x *application) scale(t *testing.T, service string, replicas int) *appsv1.Deployment {
	t.Helper()
	return x.patch(t, service, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
}

func (x *application) patch(t *testing.T, service string, patch []byte) *appsv1.Deployment {
	t.Helper()
	d, err := lab.Client.AppsV1().Deployments(x.Namespace).Patch(t.Context(), service, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}
