package session

import (
	"context"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/workload/remote"
)

// guesthouse is the cloud of a shop as a cluster of somebody's, with a node that runs load generators.
type guesthouse struct {
	*fakeShop
	t      *testing.T
	status v1.PodStatus // what becomes of a pod instead of running it; none if it has no phase

	mu      sync.Mutex
	kill    context.CancelFunc // of the program
	listens chan net.Conn
	pods    []v1.Pod // that were started
	secrets []v1.Secret
}

var (
	_ cloud.Shared    = (*guesthouse)(nil)
	_ cloud.PodDialer = (*guesthouse)(nil)
)

// newGuesthouse puts a guesthouse around the shop of an environment.
func newGuesthouse(t *testing.T, w *fakeShop) *guesthouse {
	g := &guesthouse{fakeShop: w, t: t, listens: make(chan net.Conn)}
	w.Local.Cloud = g
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	wg.Go(func() {
		for ctx.Err() == nil {
			g.runPods(ctx, &wg)
			select {
			case <-time.After(300 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	return g
}

func (g *guesthouse) RESTConfig() *rest.Config { return g.fakeShop.Cloud.RESTConfig() }

func (g *guesthouse) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return g.fakeShop.Cloud.Dial(ctx, network, address)
}

func (g *guesthouse) Close() error { return g.fakeShop.Cloud.Close() }

func (g *guesthouse) Tenancy() cloud.Tenancy {
	return cloud.Tenancy{Run: "r1", Labels: map[string]string{"aiopslab.io/run": "r1"}, Load: LoadNamespace}
}

func (g *guesthouse) DialPod(ctx context.Context, namespace, pod string, port int) (net.Conn, error) {
	g.mu.Lock()
	runs := g.kill != nil && namespace == LoadNamespace && pod == g.pods[len(g.pods)-1].Name && port == remote.Port
	g.mu.Unlock()
	if !runs {
		return nil, syscall.ECONNREFUSED
	}
	here, there := net.Pipe()
	select {
	case g.listens <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// runPods is what a node does.
func (g *guesthouse) runPods(ctx context.Context, wg *sync.WaitGroup) {
	all, err := g.client.CoreV1().Pods(LoadNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range all.Items {
		if p.Status.Phase != "" || p.Namespace != LoadNamespace {
			continue
		}
		p.Status = g.status
		if p.Status.Phase == "" {
			p.Status.Phase = v1.PodRunning
			g.start(ctx, &p, wg)
		}
		g.pods = append(g.pods, p)
		if _, err := g.client.CoreV1().Pods(p.Namespace).Update(ctx, &p, metav1.UpdateOptions{}); err != nil {
			g.t.Error(err)
		}
	}
}

// start runs the program of a pod.
func (g *guesthouse) start(ctx context.Context, p *v1.Pod, wg *sync.WaitGroup) {
	secret, err := g.client.CoreV1().Secrets(p.Namespace).Get(ctx, p.Spec.Volumes[0].Secret.SecretName, metav1.GetOptions{})
	if err != nil {
		g.t.Error(err)
		return
	}
	g.secrets = append(g.secrets, *secret)
	order, err := remote.Unpack(secret.Data[remote.OrderFile])
	if err != nil {
		g.t.Error(err)
		return
	}
	s, err := remote.NewServer(order, string(secret.Data[remote.TokenFile]), g.Dial)
	if err != nil {
		g.t.Error(err)
		return
	}
	ctx, g.kill = context.WithCancel(ctx)
	ln := &web{conns: g.listens, done: make(chan struct{})}
	wg.Go(func() {
		if err := s.Run(ctx, ln); err != nil {
			g.t.Error(err)
		}
	})
}

// end has the program of the pod end, as a node tells of it.
func (g *guesthouse) end(ctx context.Context, status v1.PodStatus) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.kill()
	g.kill = nil
	p := g.pods[len(g.pods)-1].DeepCopy()
	p.ResourceVersion, p.Status = "", status
	if _, err := g.client.CoreV1().Pods(p.Namespace).Update(ctx, p, metav1.UpdateOptions{}); err != nil {
		g.t.Error(err)
	}
}

var killed = v1.PodStatus{Phase: v1.PodFailed, ContainerStatuses: []v1.ContainerStatus{{State: v1.ContainerState{
	Terminated: &v1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137},
}}}}

// runWith is a run with its load from the cluster or, if cluster is false, from here.
func runWith(t *testing.T, cluster bool, a agent.Entry, set func(*guesthouse)) (o *Outcome, g *guesthouse, rec *record.Record) {
	results := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newShop(t)
		if cluster {
			g = newGuesthouse(t, w)
			if set != nil {
				set(g)
			}
		}
		s := &Session{Problem: shopProblem(problem.Mitigation), Agent: a, Environment: w.Local, Results: results, Seed: 7}
		w.session = s
		var err error
		if o, err = s.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.Local.Close()
		w.checkOver(t)
		if rec, err = record.Read(o.Record); err != nil {
			t.Fatal(err)
		}
		if g != nil {
			checkTidy(t, g)
		}
	})
	return o, g, rec
}

// checkTidy shows that a run leaves neither its generator nor what that was told.
func checkTidy(t *testing.T, g *guesthouse) {
	t.Helper()
	pods, err := g.client.CoreV1().Pods(LoadNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) > 0 {
		t.Errorf("%d pods are left, %v", len(pods.Items), err)
	}
	secrets, err := g.client.CoreV1().Secrets(LoadNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(secrets.Items) > 0 {
		t.Errorf("%d Secrets are left, %v", len(secrets.Items), err)
	}
}

// TestLoadFromCluster shows that a run has the same verdict wherever its load comes from, and that its record says
// where that was.
func TestLoadFromCluster(t *testing.T) {
	scale, done := agent.Call("exec_shell", "kubectl scale deployment/cart"), agent.Call("submit")
	for name, a := range map[string]agent.Entry{"mended": scripted(scale, done), "not mended": scripted(done)} {
		t.Run(name, func(t *testing.T) {
			here, _, _ := runWith(t, false, a, nil)
			there, g, rec := runWith(t, true, a, nil)
			if here.Verdict.Class != there.Verdict.Class || here.Verdict.Why != there.Verdict.Why {
				t.Errorf("here %s: %s\nthere %s: %s", here.Verdict.Class, here.Verdict.Why, there.Verdict.Class, there.Verdict.Why)
			}
			if len(g.pods) != 1 || len(g.secrets) != 1 || g.pods[0].Labels["aiopslab.io/run"] != "r1" ||
				g.secrets[0].Labels["aiopslab.io/run"] != "r1" {
				t.Errorf("%d pods: %+v", len(g.pods), g.pods)
			}
			var from record.Load
			for _, e := range rec.Events {
				if e.Kind == record.LoadEvent {
					if err := e.Decode(&from); err != nil {
						t.Fatal(err)
					}
				}
			}
			if diff := cmp.Diff(record.Load{From: "cluster", Namespace: LoadNamespace, Pod: g.pods[0].Name}, from); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLoadIsLost shows that a generator that has ended is told as that, at any time of a run, and is never taken for
// an application that serves nobody.
func TestLoadIsLost(t *testing.T) {
	done := agent.Call("submit")
	const lost = "what users got is not known: the load generator, pod load-"
	for name, tt := range map[string]struct {
		set  func(*guesthouse)
		dies bool // in the agent's turn
		want Class
		why  []string
	}{
		"its image is missing": {
			set: func(g *guesthouse) {
				g.status = v1.PodStatus{Phase: v1.PodPending, ContainerStatuses: []v1.ContainerStatus{{State: v1.ContainerState{
					Waiting: &v1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off pulling image"},
				}}}}
			},
			want: Infra,
			why:  []string{"the load generator does not start, as pod load-", ": ImagePullBackOff Back-off pulling image; ", "--load-from here"},
		},
		"there is no room": {
			set: func(g *guesthouse) {
				g.status = v1.PodStatus{Phase: v1.PodPending, Conditions: []v1.PodCondition{
					{Type: v1.PodScheduled, Status: v1.ConditionFalse, Message: "0/1 nodes are available"},
				}}
			},
			want: Infra, why: []string{"it has not started within 3m0s: 0/1 nodes are available"},
		},
		"it cannot read its order": {
			set: func(g *guesthouse) {
				g.status = v1.PodStatus{Phase: v1.PodFailed, ContainerStatuses: []v1.ContainerStatus{{State: v1.ContainerState{
					Terminated: &v1.ContainerStateTerminated{Reason: "Error", ExitCode: 1, Message: "the order is of\nversion 2"},
				}}}}
			},
			want: Infra, why: []string{"it has ended: Error (exit code 1) the order is of version 2; "},
		},
		"it dies before the agent's turn": {
			set: func(g *guesthouse) {
				time.AfterFunc(3*time.Second, func() { g.end(context.Background(), killed) })
			},
			want: Infra, why: []string{lost, "in " + LoadNamespace + ", has lost count: it has ended: OOMKilled (exit code 137)"},
		},
		"it dies in the agent's turn": {
			dies: true, want: GraderFailed, why: []string{lost, "OOMKilled"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var g *guesthouse
			a := acting(func(ctx context.Context, n int) (string, error) {
				if n == 1 && tt.dies {
					g.end(ctx, killed)
					return agent.Call("exec_shell", "kubectl scale deployment/cart"), nil
				}
				return done, nil
			})
			o, _, _ := runWith(t, true, a, func(house *guesthouse) {
				g = house
				if tt.set != nil {
					tt.set(house)
				}
			})
			if o.Verdict.Class != tt.want || strings.Contains(o.Verdict.Why, "\n") {
				t.Errorf("%s: %s", o.Verdict.Class, o.Verdict.Why)
			}
			for _, why := range tt.why {
				if !strings.Contains(o.Verdict.Why, why) {
					t.Errorf("%q is not in %q", why, o.Verdict.Why)
				}
			}
		})
	}
}

// TestLoadPod shows that the pod of a load generator is restricted, is never started again, and has its bounds.
func TestLoadPod(t *testing.T) {
	spec := loadPod(remote.ImageName, "secret")
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	if r := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &metav1.ObjectMeta{}, &spec)); !r.Allowed {
		t.Error(r.ForbiddenDetail())
	}
	c := spec.Containers[0]
	if spec.RestartPolicy != v1.RestartPolicyNever || len(c.Resources.Requests) != 2 || len(c.Resources.Limits) != 2 {
		t.Errorf("%+v", spec)
	}
}

// TestHidden shows that an agent is shown nothing of the load generator.
func TestHidden(t *testing.T) {
	hides := func(tenancy cloud.Tenancy) (list []string) {
		for _, r := range hidden(&tenancy) {
			list = append(list, r.Namespace+r.Image)
		}
		return list
	}
	if diff := cmp.Diff([]string{"aiopslab/load"}, hides(cloud.Tenancy{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"aiopslab/load", "aiopslab-load-2"}, hides(cloud.Tenancy{Load: "aiopslab-load-2"})); diff != "" {
		t.Error(diff)
	}
}
