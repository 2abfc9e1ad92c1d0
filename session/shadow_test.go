package session

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/cloud/cloudtest"
	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// proposer is an agent that tries to write by its kubeconfig, and then takes some steps.
type proposer struct {
	t      *testing.T
	b      agent.Briefing
	steps  []string
	seen   []string
	wrote  bool
	client kubernetes.Interface
}

func (p *proposer) Act(ctx context.Context, observation string) (string, error) {
	p.seen = append(p.seen, observation)
	if !p.wrote {
		p.wrote = true
		err := p.client.AppsV1().Deployments("test-shop").Delete(ctx, "cart", metav1.DeleteOptions{})
		if err == nil || !strings.Contains(err.Error(), "shadow run: nothing is written") {
			p.t.Errorf("got %v", err)
		}
		err = p.client.CoreV1().Pods("test-shop").Delete(ctx, "web", metav1.DeleteOptions{DryRun: []string{"All"}})
		if err == nil || !strings.Contains(err.Error(), "a dry run is not sent either") {
			p.t.Errorf("got %v", err)
		}
	}
	step := p.steps[0]
	p.steps = p.steps[1:]
	return step, nil
}

// A shadow run writes nothing, deploys nothing and has no verdict. Its record has what was proposed.
func TestShadowRun(t *testing.T) {
	metrics := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"status":"success","data":{"alerts":[{"labels":{"alertname":"Slow","namespace":"test-shop"},"state":"firing","activeAt":"2026-01-01T00:00:00Z","value":"1"}]}}`))
	}))
	defer metrics.Close()
	c := cloudtest.New(t)
	var writes, reads atomic.Int64
	c.Before(func(r *http.Request) error {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			reads.Add(1)
			return nil
		}
		writes.Add(1)
		t.Errorf("the cluster got %s %s", r.Method, r.URL)
		return nil
	})
	who := &proposer{t: t, steps: []string{
		agent.Call("get_logs", "other", "web"), agent.Call("get_traces", "test-shop"), agent.Call("get_alerts", "test-shop"),
		agent.Call("submit"),
	}}
	s := Session{
		Problem: ShadowProblem(problem.Mitigation, []string{"test-shop"}), Shadow: true, Results: t.TempDir(),
		Environment: &Shadow{
			Cloud: c, Namespaces: []string{"test-shop"}, Scratch: t.TempDir(), Self: []string{os.Args[0], "tool"},
			Telemetry: observe.External{Prometheus: metrics.URL},
		},
		Agent: agent.Entry{Name: "proposer", New: func(b agent.Briefing) (agent.Agent, error) {
			config, err := clientcmd.RESTConfigFromKubeConfig(b.Kubeconfig)
			if err != nil {
				return nil, err
			}
			who.b = b
			who.client, err = kubernetes.NewForConfig(config)
			return who, err
		}},
	}
	o, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if o.Verdict.Class != ShadowRun || o.Verdict.Why != "1 proposal" {
		t.Errorf("%+v", o.Verdict)
	}
	if list, _ := o.Verdict.Results["proposals"].([]string); !slices.Equal(list, []string{"delete deployments cart in test-shop"}) {
		t.Errorf("proposals %v", o.Verdict.Results)
	}
	if _, ok := o.Verdict.Results["success"]; ok || writes.Load() != 0 || reads.Load() == 0 {
		t.Errorf("%v, %d writes, %d reads", o.Verdict.Results, writes.Load(), reads.Load())
	}
	if !strings.Contains(who.b.Description, "This is a shadow run") {
		t.Error("the agent is not told")
	}
	for i, want := range []string{"", `namespace "other" is not shown`, "this is a shadow run: the cluster's network cannot be reached", "Slow"} {
		if !strings.Contains(who.seen[i], want) {
			t.Errorf("observation %d: %s", i, who.seen[i])
		}
	}
	rec, err := record.Read(o.Record)
	if err != nil {
		t.Fatal(err)
	}
	var proposals []guard.Entry
	for _, e := range rec.Events {
		switch e.Kind {
		case record.ProposalEvent:
			var p guard.Entry
			if err := e.Decode(&p); err != nil {
				t.Fatal(err)
			}
			proposals = append(proposals, p)
		case record.WriteEvent, record.FaultEvent, record.BaselineEvent, record.LookEvent:
			t.Errorf("the record has a %s", e.Kind)
		}
	}
	if len(proposals) != 2 || !proposals[0].Proposal || proposals[0].Verb != "delete" || !proposals[1].DryRun {
		t.Errorf("%+v", proposals)
	}
	if again, err := Grade(rec); err != nil || again.Class != ShadowRun || again.Why != o.Verdict.Why {
		t.Errorf("judged again: %+v, %v", again, err)
	}
}
