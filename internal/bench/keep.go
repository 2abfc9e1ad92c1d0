package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/internal/bench/measure"
	"github.com/aiopslab/aiopslab/internal/manifest"
)

const (
	maxKeep   = 0.6 // seconds
	keptStore = "mongodb-user"
)

// timedKeeper notes how long containers take to be kept.
type timedKeeper struct {
	cloud.Keeper
	took time.Duration // the last
}

func (k *timedKeeper) Keep(ctx context.Context, c cloud.Command) (cloud.Kept, error) {
	start := time.Now()
	defer func() { k.took = time.Since(start) }()
	return k.Keeper.Keep(ctx, c)
}

// benchKeep takes back what a command has written into a store of an application, beside the same command without a
// transaction.
func benchKeep(ctx context.Context, r *run) error {
	c, kube, err := r.embed(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	client, err := manifest.NewClient(c.RESTConfig())
	if err != nil {
		return err
	}
	a := hotel.App()
	objects, err := manifest.Read(a.Manifests)
	if err != nil {
		return err
	}
	if err := bringUp(ctx, c, client, a, objects, get("/recommendations?require=rate&lat=38&lon=-122")); err != nil {
		return err
	}
	keeper := &timedKeeper{Keeper: c}
	g, err := guard.Start(ctx, guard.Options{
		Upstream: c.RESTConfig(), Direct: c.DirectConfig(), Keeper: keeper, Journal: func(guard.Entry) {},
	})
	if err != nil {
		return err
	}
	defer g.Close()
	pods, err := kube.CoreV1().Pods(a.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	store := ""
	for _, p := range pods.Items {
		if strings.HasPrefix(p.Name, keptStore+"-") {
			store = p.Name
		}
	}
	s, err := newStoreShell(g, a.Namespace, store)
	if err != nil {
		return err
	}
	all, plain, begin, keep, abort := measure.Of("s"), measure.Of("s"), measure.Of("ms"), measure.Of("ms"),
		measure.Of("ms")
	for range r.rounds {
		start := time.Now()
		if _, err := g.Begin(ctx); err != nil {
			return err
		}
		begun := time.Now()
		if _, err := s.eval(ctx, `db.kept.insertOne({a: 1})`); err != nil {
			return err
		}
		done := time.Now()
		t, err := g.Abort(ctx)
		if err != nil {
			return err
		}
		all.Add(time.Since(start).Seconds())
		begin.Add(begun.Sub(start).Seconds() * 1e3)
		keep.Add(keeper.took.Seconds() * 1e3)
		abort.Add(time.Since(done).Seconds() * 1e3)
		if len(t.Undone) != 1 || len(t.Undone[0].Left) > 0 {
			return fmt.Errorf("it was not taken back: %+v", t.Undone)
		}
		start = time.Now()
		n, err := s.eval(ctx, `db.kept.count()`)
		plain.Add(time.Since(start).Seconds())
		if err != nil || strings.TrimSpace(n) != "0" {
			return fmt.Errorf("the store has %q after the abort, %v", n, err)
		}
	}
	what := "transaction with a command in " + keptStore + " of " + a.Name
	r.report(measure.Row{
		What: what + ": begin, command, abort", Value: all, Stock: plain, Target: measure.AtMost(maxKeep),
	})
	r.report(measure.Row{What: what + ": begin", Value: begin})
	r.report(measure.Row{What: what + ": the container kept", Value: keep})
	r.report(measure.Row{What: what + ": abort", Value: abort})
	return nil
}

// storeShell runs the shell of MongoDB in a pod, as an agent does.
type storeShell struct {
	config *rest.Config
	client kubernetes.Interface
	ns     string
	pod    string
}

func newStoreShell(g *guard.Guard, ns, pod string) (*storeShell, error) {
	b, err := g.Kubeconfig(ns)
	if err != nil {
		return nil, err
	}
	s := &storeShell{ns: ns, pod: pod}
	if s.config, err = clientcmd.RESTConfigFromKubeConfig(b); err != nil {
		return nil, err
	}
	s.client, err = kubernetes.NewForConfig(s.config)
	return s, err
}

func (s *storeShell) eval(ctx context.Context, text string) (string, error) {
	req := s.client.CoreV1().RESTClient().Post().Namespace(s.ns).Resource("pods").Name(s.pod).SubResource("exec").
		Param("stdout", "true").Param("stderr", "true")
	for _, arg := range []string{"mongo", "--quiet", "--eval", text} {
		req = req.Param("command", arg)
	}
	e, err := remotecommand.NewSPDYExecutor(s.config, http.MethodPost, req.URL())
	if err != nil {
		return "", err
	}
	var out, complaint bytes.Buffer
	err = e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &complaint})
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s%s", text, err, out.String(), complaint.String())
	}
	return out.String(), nil
}
