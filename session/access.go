package session

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/guard/policy"
	"github.com/aiopslab/aiopslab/internal/manifest"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/workload/remote"
)

// hands do what an agent asks for: an [aci.Interface].
type hands interface {
	Do(ctx context.Context, call *aci.Call) aci.Result
	Hold() (release func())
	Confinement() string
	Close() error
}

// access is an agent's way to the cloud.
type access struct {
	aci        hands
	guard      *guard.Guard
	kubeconfig []byte
	dir        string // of temporary files
	monitor    *monitor
	observer   *observe.Observer // that the agent's actions use
}

// newAccess puts the guard and the agent's interface before the cloud.
func (l *Local) newAccess(ctx context.Context) (_ *access, err error) {
	a := &access{}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	if a.dir, err = os.MkdirTemp(l.Scratch, "aiopslab-agent-"); err != nil {
		return nil, err
	}
	root := filepath.Join(a.dir, "root")
	if err := os.Mkdir(root, 0o700); err != nil {
		return nil, err
	}
	o := guard.Options{
		Upstream: l.stage.cloud.RESTConfig(), Direct: cloud.DirectConfig(l.stage.cloud),
		Revision: cloud.Revision(l.stage.cloud), Journal: l.journal, Severity: l,
		Transaction: func(t guard.Transaction) { l.tell(record.TransactionEvent, t) }, Log: l.setting.Log,
	}
	if l.setting.Policy != nil {
		if o.Policy, err = policy.Parse("the policy", l.setting.Policy); err != nil {
			return nil, err
		}
		o.Home = l.setting.Problem.App.Namespace
	}
	if l.setting.Approves {
		o.Approve = func(ctx context.Context, q guard.Question) guard.Answer {
			return l.approvals.ask(ctx, q, a.aci.Hold, l.tell)
		}
	}
	if t := cloud.TenancyOf(l.stage.cloud); t != nil {
		o.Groups, o.Namespaces, o.Labels = []string{guard.DefaultGroup + "-" + t.Run}, t.Namespaces, t.Labels
		o.Hide = hidden(t)
		for _, f := range l.faults {
			if b, ok := f.(fault.Borrower); ok {
				o.Volumes = append(o.Volumes, b.Volumes()...)
			}
		}
		objects, err := manifest.Read(l.setting.Problem.App.Manifests)
		if err != nil {
			return nil, err
		}
		o.Custom = manifest.Resources(objects)
	}
	o.Keeper, _ = l.stage.cloud.(cloud.Keeper) // Without one, commands in containers are refused in transactions.
	if a.guard, err = guard.Start(ctx, o); err != nil {
		return nil, err
	}
	l.putUpGate(a.guard)
	p := l.setting.Problem
	if a.kubeconfig, err = a.guard.Kubeconfig(p.App.Namespace); err != nil {
		return nil, err
	}
	a.monitor = startMonitor(a.guard.Requests, func() time.Duration { return l.stage.load.Lag().Recent })
	if a.observer, err = l.newObserver(); err != nil {
		return nil, err
	}
	options := aci.Options{
		Task: string(p.Task), Questions: questionsOf(p), App: p.App, Observer: a.observer,
		Dial: a.monitor.counted(l.stage.cloud.Dial), Kubeconfig: a.kubeconfig, API: a.guard.Address(), Dir: root,
		Self: l.Self, Transactions: a.guard,
	}
	if l.shift != nil {
		options.Pager = l.shift.pager
	}
	i, err := aci.New(options)
	if err != nil {
		return nil, err
	}
	a.aci = i
	return a, nil
}

// hidden is what no agent sees of a tenancy. It has no rights to any of it, either.
func hidden(t *cloud.Tenancy) []guard.Rule {
	name, _, _ := strings.Cut(remote.ImageName, ":")
	rules := []guard.Rule{{Image: name}}
	if t.Load != "" {
		rules = append(rules, guard.Rule{Namespace: t.Load})
	}
	return rules
}

// newObserver is what the agent's actions read telemetry with. What a run is judged by is the lab's own in any case.
func (l *Local) newObserver() (*observe.Observer, error) {
	if l.Telemetry == (observe.External{}) {
		return l.stage.observer, nil
	}
	o, err := observe.New(cloud.DirectConfig(l.stage.cloud), l.stage.cloud.Dial, cloud.TenancyOf(l.stage.cloud))
	if err != nil {
		return nil, err
	}
	return o, o.Use(l.Telemetry)
}

// act does what a response asks for.
func (a *access) act(ctx context.Context, response string, begun func(action string)) (Reply, error) {
	call, res := perform(ctx, a.aci, response, begun)
	r := Reply{
		Action: call, Text: res.Text, Failed: res.Failed, Submitted: res.Submitted, Question: res.Question,
		Next: res.Next,
	}
	if res.Submitted || res.Question != "" {
		var err error
		if r.Answer, err = json.Marshal(res.Answer); err != nil {
			r.Answer, _ = json.Marshal(fmt.Sprint(res.Answer))
		}
	}
	return r, nil
}

// journal records a write of the agent.
func (l *Local) journal(e guard.Entry) {
	if runsOn(e) {
		l.runOn.Add(1)
	}
	l.tell(record.WriteEvent, e)
}

// close ends what the agent left running, and removes its files.
func (a *access) close() {
	if a.aci != nil {
		_ = a.aci.Close()
	}
	if a.monitor != nil {
		a.monitor.end()
	}
	if a.guard != nil {
		_ = a.guard.Shut()
	}
	if a.dir != "" {
		_ = os.RemoveAll(a.dir)
	}
}
