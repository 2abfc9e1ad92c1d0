package session

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/grade"
)

// theatre is a system whose future is known: what it looks like at a time after the agent was done.
type theatre struct {
	done time.Time
	at   func(t time.Duration) (grade.Look, scene)
	fail func(t time.Duration) error
}

func (h theatre) look(context.Context, []fault.Fault) (grade.Look, error) {
	t := time.Since(h.done)
	if h.fail != nil && h.fail(t) != nil {
		return grade.Look{}, h.fail(t)
	}
	l, _ := h.at(t)
	l.Time = time.Now()
	return l, nil
}

func (h theatre) scene(context.Context) (scene, error) {
	_, s := h.at(time.Since(h.done))
	return s, nil
}

const s = time.Second

// never is later than any test lasts.
const never = time.Hour

// stageAt is a time after the agents of these tests are done; they began a minute before that.
func stageAt(t time.Duration) metav1.Time {
	return metav1.NewTime(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Hour + t))
}

// aPod is a pod of geo.
func aPod(change func(*v1.Pod)) v1.Pod {
	p := v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "geo-1", OwnerReferences: []metav1.OwnerReference{{Name: "geo-rs"}}}}
	p.Spec.NodeName, p.Status.Phase = "node-1", v1.PodRunning
	p.Spec.Containers = []v1.Container{{Name: "geo"}}
	start := stageAt(-50 * s)
	p.Status.StartTime = &start
	change(&p)
	return p
}

func ready(since time.Duration) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: stageAt(since)}}
		p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "geo", Ready: true}}
	}
}

func crashed(finished time.Duration) func(*v1.Pod) {
	return func(p *v1.Pod) {
		c := v1.ContainerStatus{Name: "geo"}
		c.State.Waiting = &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
		c.LastTerminationState.Terminated = &v1.ContainerStateTerminated{FinishedAt: stageAt(finished)}
		p.Status.ContainerStatuses = []v1.ContainerStatus{c}
	}
}

func waiting(reason string, created time.Duration) func(*v1.Pod) {
	return func(p *v1.Pod) {
		start := stageAt(created)
		c := v1.ContainerStatus{Name: "geo"}
		c.State.Waiting = &v1.ContainerStateWaiting{Reason: reason}
		p.Status.StartTime, p.Status.Phase, p.Status.ContainerStatuses = &start, v1.PodPending, []v1.ContainerStatus{c}
	}
}

func running(since time.Duration, probe *v1.Probe) func(*v1.Pod) {
	return func(p *v1.Pod) {
		c := v1.ContainerStatus{Name: "geo"}
		c.State.Running = &v1.ContainerStateRunning{StartedAt: stageAt(since)}
		p.Status.ContainerStatuses = []v1.ContainerStatus{c}
		p.Spec.Containers[0].ReadinessProbe = probe
	}
}

func unscheduled(p *v1.Pod) {
	p.Spec.NodeName, p.Status.Phase, p.Status.StartTime = "", v1.PodPending, nil
}

func going(until time.Duration) func(*v1.Pod) {
	return func(p *v1.Pod) { d := stageAt(until); p.DeletionTimestamp = &d }
}

// starting is a pod that looks ready, and has only just become so.
func starting(since time.Duration) func(*v1.Pod) {
	return func(p *v1.Pod) { ready(since)(p); p.Labels = map[string]string{"sick": "yes"} }
}

func named(name string, p v1.Pod) v1.Pod {
	p.Name = name
	return p
}

// geo is a system with one service, which users get an answer from if it has been ready for some time.
func geo(pods func(t time.Duration) []v1.Pod) func(time.Duration) (grade.Look, scene) {
	return func(t time.Duration) (grade.Look, scene) {
		sc := scene{pods: pods(t)}
		age := time.Duration(-1)
		for i := range sc.pods {
			if at, ok := fault.ReadySince(&sc.pods[i]); ok && sc.pods[i].Name == "geo-1" && sc.pods[i].Labels == nil {
				age = max(age, stageAt(t).Sub(at))
			}
		}
		l := sound(0)
		if age < 0 {
			l.Workloads[0].Ready = 0
		}
		if age < 3*s { // as the faults have it
			l.Symptoms = []string{"geo is not well"}
		}
		if age < 5*s {
			l.Load.Total.Success = 0.5
		}
		return l, sc
	}
}

// one is a list of one pod, which changes with time.
func one(states func(t time.Duration) func(*v1.Pod)) func(time.Duration) []v1.Pod {
	return func(t time.Duration) []v1.Pod { return []v1.Pod{aPod(states(t))} }
}

// then is a pod that is in one state until a time, and ready from then on.
func then(state func(*v1.Pod), until time.Duration) func(time.Duration) (grade.Look, scene) {
	return geo(one(func(t time.Duration) func(*v1.Pod) {
		if t < until {
			return state
		}
		return ready(until)
	}))
}

func TestAftermath(t *testing.T) {
	slow := &v1.Probe{InitialDelaySeconds: 60, PeriodSeconds: 5, SuccessThreshold: 1, FailureThreshold: 3}
	quick := &v1.Probe{PeriodSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3}
	for _, tt := range []struct {
		name string
		at   func(time.Duration) (grade.Look, scene)
		hold time.Duration
		well bool
		most time.Duration // the longest that it may be watched
	}{
		// Right fixes that take their time.
		{"it is well at once", then(nil, -20*s), 0, true, 7 * s},
		{"the role is granted, and the container is tried again soon", then(crashed(-2*s), 8*s), 0, true, 25 * s},
		{"the role is granted, and the back-off is long", then(crashed(-10*s), 85*s), 0, true, 100 * s},
		{"the role is granted, and the back-off is the longest there is", then(crashed(-10*s), 290*s), 0, true, 310 * s},
		{"a rollout whose probe waits for a minute", then(running(-s, slow), 65*s), 0, true, 80 * s},
		{"a rollout that began before the submission and is slow to be ready", then(running(-5*s, quick), 20*s), 0, true, 40 * s},
		{"a rollout whose old pod takes its time to go", geo(func(t time.Duration) []v1.Pod {
			if t < 30*s {
				return []v1.Pod{aPod(going(30 * s))}
			}
			return []v1.Pod{aPod(ready(33 * s))}
		}), 0, true, 50 * s},
		{"a claim is bound, then the pod is scheduled, created and started", func(t time.Duration) (grade.Look, scene) {
			bound := v1.PersistentVolumeClaim{}
			if t >= 7*s {
				bound.Status.Phase = v1.ClaimBound
			}
			l, sc := geo(one(func(t time.Duration) func(*v1.Pod) {
				switch {
				case t < 14*s:
					return unscheduled
				case t < 40*s:
					return waiting("ContainerCreating", 14*s)
				case t < 50*s:
					return running(40*s, quick)
				}
				return ready(50 * s)
			}))(t)
			sc.claims = []v1.PersistentVolumeClaim{bound}
			return l, sc
		}, 0, true, 70 * s},
		{"a node is open again, and the scheduler comes round to the pod", func(t time.Duration) (grade.Look, scene) {
			l, sc := then(unscheduled, 12*s)(t)
			sc.nodes = []v1.Node{{Spec: v1.NodeSpec{Unschedulable: t < 4*s}}}
			return l, sc
		}, 0, true, 30 * s},
		{"an autoscaler that takes three of its rounds", func(t time.Duration) (grade.Look, scene) {
			l, sc := then(running(-70*s, quick), 50*s)(t)
			h := autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "geo", CreationTimestamp: stageAt(-2 * s)}}
			h.Status.CurrentReplicas, h.Status.DesiredReplicas = 1, 1
			if t > 35*s {
				h.Status.DesiredReplicas = 3
			}
			sc.scalers = []autoscalingv2.HorizontalPodAutoscaler{h}
			return l, sc
		}, 0, true, 70 * s},
		{"a service fails once more, because its database comes back after it", geo(func(t time.Duration) []v1.Pod {
			service, db := crashed(-5*s), crashed(-20*s)
			switch {
			case t >= 95*s:
				service = ready(95 * s)
			case t >= 15*s:
				service = crashed(15 * s)
			}
			if t >= 20*s {
				db = ready(20 * s)
			}
			return []v1.Pod{aPod(service), named("mongodb-1", aPod(db))}
		}), 0, true, 120 * s},
		{"users are served late", func(t time.Duration) (grade.Look, scene) {
			l, sc := then(nil, -20*s)(t)
			if t < 60*s {
				l.Load.Total.Success = 0.2
			}
			return l, sc
		}, 0, true, 75 * s},

		// Wrong fixes.
		{"nothing was done", then(running(-55*s, quick), never), 0, false, 20 * s},
		{"a container fails again when it is tried", geo(one(func(t time.Duration) func(*v1.Pod) {
			switch {
			case t < 20*s:
				return crashed(-20 * s)
			case t < 60*s:
				return crashed(20 * s)
			}
			return crashed(60 * s)
		})), 0, false, 40 * s},
		{"a container is ready for a moment each time", geo(one(func(t time.Duration) func(*v1.Pod) {
			if n := t / (40 * s); t-n*40*s < 2*s {
				return ready(n * 40 * s)
			} else {
				return crashed(n*40*s + 2*s)
			}
		})), 0, false, 60 * s},
		{"an image that does not exist", then(waiting("ImagePullBackOff", -5*s), never), 0, false, 20 * s},
		{"a pod that no node takes", then(unscheduled, never), 0, false, 20 * s},
		{"a container that never gets ready", then(running(-s, quick), never), 0, false, 60 * s},
		{"a pod that is never created", then(waiting("ContainerCreating", -s), never), 0, false, 90 * s},
		{"a pod that never goes", then(going(30*s), never), 0, false, 60 * s},
		{"pods that are killed as soon as they run", geo(func(t time.Duration) []v1.Pod {
			return []v1.Pod{aPod(waiting("ContainerCreating", t.Truncate(3*s)))}
		}), 0, false, 110 * s},
		{"two containers that wait for each other", geo(func(t time.Duration) []v1.Pod {
			n := t / (40 * s)
			states := []func(*v1.Pod){starting(n * 40 * s), crashed(n*40*s - 20*s)}
			return []v1.Pod{aPod(states[n%2]), named("rate-1", aPod(states[1-n%2]))}
		}), 0, false, aftermathTimeout + 30*s},
		{"users are never served", func(t time.Duration) (grade.Look, scene) {
			l, sc := then(nil, -20*s)(t)
			l.Load.Total.Success = 0.2
			return l, sc
		}, 0, false, 100 * s},
		{"an autoscaler that does nothing", func(t time.Duration) (grade.Look, scene) {
			l, sc := then(running(-70*s, quick), never)(t)
			sc.scalers = []autoscalingv2.HorizontalPodAutoscaler{{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: stageAt(-s)}}}
			return l, sc
		}, 0, false, 70 * s},
		{"it is well for four seconds, and never again", geo(one(func(t time.Duration) func(*v1.Pod) {
			if t < 4*s {
				return ready(-20 * s)
			}
			return running(-55*s, quick)
		})), 0, false, 30 * s},
		{"a fix that is undone after 20 seconds, and a longer hold", geo(one(func(t time.Duration) func(*v1.Pod) {
			if t < 20*s {
				return ready(-20 * s)
			}
			return running(-55*s, quick)
		})), leftHold, false, 60 * s},
		{"a fix that lasts, and a longer hold", then(nil, -20*s), leftHold, true, 32 * s},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(stageAt(0).Time))
				hold := max(tt.hold, grade.Hold)
				a := &aftermath{
					eyes: theatre{done: time.Now(), at: tt.at}, mends: true, baseline: sound(0), hold: hold,
					quiet: minQuiet, limit: aftermathTimeout + hold, times: times{began: time.Now().Add(-time.Minute), done: time.Now()},
					saw: func(grade.Look) {}, blind: func(err error) { t.Error(err) },
				}
				a.watch(t.Context())
				took := time.Since(a.times.done)
				last := a.looks[len(a.looks)-1]
				if got := grade.Mitigated(a.baseline, a.looks, hold); got != tt.well {
					t.Errorf("mitigated is %v after %v: %v; under way: %v", got, took, grade.Complaints(a.baseline, last), last.UnderWay)
				}
				if took > tt.most {
					t.Errorf("it was watched for %v, want at most %v; under way: %v", took, tt.most, last.UnderWay)
				}
			})
		})
	}
}

// A system that cannot be looked at is not watched for ever, and one that can be now and then is.
func TestAftermathBlind(t *testing.T) {
	for name, tt := range map[string]struct {
		fail  func(t time.Duration) error
		blind bool
	}{
		"never":        {func(time.Duration) error { return errors.New("no such host") }, true},
		"at first":     {func(t time.Duration) error { return failIf(t < 20*s) }, false},
		"in between":   {func(t time.Duration) error { return failIf(t/s%2 == 0) }, false},
		"from then on": {func(t time.Duration) error { return failIf(t > 3*s) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(stageAt(0).Time))
				var blind error
				a := &aftermath{
					eyes: theatre{time.Now(), then(nil, -20*s), tt.fail}, mends: true, baseline: sound(0), hold: grade.Hold,
					quiet: minQuiet, limit: aftermathTimeout, times: times{done: time.Now()},
					saw: func(grade.Look) {}, blind: func(err error) { blind = err },
				}
				a.watch(t.Context())
				if (blind != nil) != tt.blind || time.Since(a.times.done) > blindTimeout+10*s {
					t.Errorf("blind: %v, after %v", blind, time.Since(a.times.done))
				}
			})
		})
	}
}

func failIf(fails bool) error {
	if fails {
		return errors.New("no such host")
	}
	return nil
}

// What was to be found is looked at until it is there again: the agent's last requests may have been
// in its way for a moment.
func TestAftermathOfAnAnswer(t *testing.T) {
	for name, tt := range map[string]struct {
		shows time.Duration // from when on the fault shows
		most  time.Duration
	}{
		"as it was":        {-s, 0},
		"after a moment":   {5 * s, 5 * s},
		"it does not show": {never, clearTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &aftermath{
					eyes: theatre{done: time.Now(), at: func(at time.Duration) (grade.Look, scene) {
						l := sound(0)
						if at >= tt.shows {
							l.Symptoms = []string{"geo fails"}
						}
						return l, scene{}
					}},
					baseline: sound(0), faults: make([]fault.Fault, 1), limit: aftermathTimeout,
					times: times{done: time.Now()}, saw: func(grade.Look) {}, blind: func(err error) { t.Error(err) },
				}
				a.watch(t.Context())
				if took := time.Since(a.times.done); took != tt.most {
					t.Errorf("it was watched for %v, want %v", took, tt.most)
				}
			})
		})
	}
}
