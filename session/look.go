package session

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

const (
	// loadWindow is the part of the load's past that a look is about.
	loadWindow = "5s"
	// minCovered is how much of it must be known before it says anything.
	minCovered = 4 * time.Second
	// healthySuccess is the part of requests that must succeed before a fault is injected.
	healthySuccess = 0.98
	// minAftermath is how long a system that is not well is watched at least, after the agent is
	// done.
	minAftermath = 10 * time.Second
	// interruptedAftermath is how long it is watched if the run was interrupted.
	interruptedAftermath = grade.Hold + 2*time.Second
)

// look looks at the system once, and for the faults in it.
func (s *Stage) look(ctx context.Context, faults []fault.Fault) (grade.Look, error) {
	l := grade.Look{Time: time.Now()}
	ns := s.app.Namespace
	deployments, err := s.client.AppsV1().Deployments(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return l, err
	}
	for _, d := range deployments.Items {
		w := grade.Workload{Kind: "deployment", Name: d.Name, Replicas: 1}
		if d.Spec.Replicas != nil {
			w.Replicas = int(*d.Spec.Replicas)
		}
		if d.Status.ObservedGeneration >= d.Generation {
			w.Ready = int(min(d.Status.ReadyReplicas, d.Status.UpdatedReplicas))
		}
		l.Workloads = append(l.Workloads, w)
	}
	sets, err := s.client.AppsV1().StatefulSets(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return l, err
	}
	for _, set := range sets.Items {
		w := grade.Workload{Kind: "statefulset", Name: set.Name, Replicas: 1}
		if set.Spec.Replicas != nil {
			w.Replicas = int(*set.Spec.Replicas)
		}
		if set.Status.ObservedGeneration >= set.Generation {
			w.Ready = int(set.Status.ReadyReplicas)
		}
		l.Workloads = append(l.Workloads, w)
	}
	services, err := s.client.CoreV1().Services(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return l, err
	}
	for _, service := range services.Items {
		l.Services = append(l.Services, service.Name)
	}
	for _, f := range faults {
		symptom, err := f.Manifest(ctx, s.env)
		if err != nil {
			return l, err
		}
		if symptom != "" {
			l.Symptoms = append(l.Symptoms, symptom)
		}
	}
	load := s.load.Snapshot()
	l.Load, l.Late = load.Window(loadWindow), load.Lag.P99
	return l, nil
}

// unhealthy says what is wrong with an application that has no fault yet. Its load must have gone on
// for as long as covered.
func unhealthy(l grade.Look, covered time.Duration) string {
	for _, w := range l.Workloads {
		if w.Ready < w.Replicas {
			return fmt.Sprintf("%s %s: %d of %d ready", w.Kind, w.Name, w.Ready, w.Replicas)
		}
	}
	switch {
	case len(l.Workloads) == 0:
		return "there is no application"
	case l.Load.Covered < covered:
		return "the load has only just begun"
	case l.Load.Total.Success < healthySuccess:
		return fmt.Sprintf("%.1f %% of requests succeed", 100*l.Load.Total.Success)
	}
	for _, o := range l.Load.Operations {
		if o.Requests > 0 && o.Success < healthySuccess {
			return fmt.Sprintf("%.1f %% of %s requests succeed", 100*o.Success, o.Operation)
		}
	}
	return ""
}

// watchAftermath looks at the system after the agent is done: until a mitigation has held, or it is
// clear that it will not; once, if nothing was to be mitigated.
func (r *run) watchAftermath(ctx context.Context, interrupted bool) {
	patience := settleTimeout
	if interrupted {
		patience = interruptedAftermath
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var looks []grade.Look
	failed := 0
	_ = poll(ctx, lookInterval, func() (bool, error) {
		l, err := r.stage.look(ctx, r.faults)
		if err != nil {
			if failed++; failed >= 3 || ctx.Err() != nil {
				r.phase("grading: " + err.Error())
				return true, nil
			}
			return false, nil
		}
		looks = append(looks, l)
		r.event(record.LookEvent, l)
		if r.Problem.Task != problem.Mitigation || grade.Mitigated(r.baseline, looks) {
			return true, nil
		}
		if time.Since(start) < minAftermath || len(grade.Broken(r.baseline, l)) == 0 {
			return false, nil
		}
		return !r.mayRecover(ctx, start), nil
	})
}

// mayRecover reports whether something is under way that may still set the system right: a pod that
// starts or goes, or a container that has not been tried again since the agent was done.
func (r *run) mayRecover(ctx context.Context, done time.Time) bool {
	pods, err := r.stage.client.CoreV1().Pods(r.Problem.App.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return true
	}
	return slices.ContainsFunc(pods.Items, func(p v1.Pod) bool {
		if p.DeletionTimestamp != nil {
			return true
		}
		return slices.ContainsFunc(p.Status.ContainerStatuses, func(c v1.ContainerStatus) bool {
			if c.Ready {
				return false
			}
			w, t := c.State.Waiting, c.LastTerminationState.Terminated
			switch {
			case w == nil: // It runs and is not ready yet: the probe has had its chance by now.
				return c.State.Running != nil && c.State.Running.StartedAt.After(done)
			case w.Reason == "CrashLoopBackOff":
				return t != nil && !t.FinishedAt.After(done)
			}
			return w.Reason == "ContainerCreating" || w.Reason == "PodInitializing"
		})
	})
}

// poll calls f at once and then at intervals, until it says that it is done or fails, or ctx ends.
func poll(ctx context.Context, interval time.Duration, f func() (bool, error)) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		done, err := f()
		if err != nil || done {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
