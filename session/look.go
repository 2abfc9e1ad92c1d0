package session

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/problem"
)

const (
	// loadWindow is the part of the load's past that a look is about.
	loadWindow = "5s"
	// minCovered is how much of it must be known before it says anything, and minPrompt how much is enough if all users
	// are served, 95 % of them within prompt: others are compared with that, so it must not be a slow moment.
	minCovered = 4 * time.Second
	minPrompt  = 2 * time.Second
	prompt     = 100 * time.Millisecond
	// healthySuccess is the part of requests that must succeed before a fault is injected.
	healthySuccess = 0.98
)

// look looks at the system once, and for the faults in it.
func (s *Stage) look(ctx context.Context, faults []fault.Fault) (grade.Look, error) {
	l := grade.Look{Time: time.Now()}
	workloads, err := s.workloads(ctx)
	if err != nil {
		return l, err
	}
	for _, w := range workloads {
		l.Workloads = append(l.Workloads, w.Workload)
	}
	services, err := s.client.CoreV1().Services(s.app.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return l, err
	}
	for _, service := range services.Items {
		l.Services = append(l.Services, service.Name)
	}
	if l.Serving, err = s.identify(ctx, services.Items); err != nil {
		return l, err
	}
	if s.goal != nil {
		if l.Operated, err = s.operated(ctx); err != nil {
			return l, err
		}
	}
	if s.goal != nil && s.began != nil {
		if l.Spent, err = s.spent(ctx); err != nil {
			return l, err
		}
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
	load, err := s.load.Snapshot(ctx)
	if err != nil {
		return l, err
	}
	l.Load, l.Late, l.Waited = load.Window(loadWindow), load.Lag.Recent, s.hunger.waited(l.Time)
	return l, nil
}

// scene looks for what is under way.
func (s *Stage) scene(ctx context.Context) (sc scene, err error) {
	ns, all := s.app.Namespace, metav1.ListOptions{}
	pods, err := s.client.CoreV1().Pods(ns).List(ctx, all)
	if err != nil {
		return sc, err
	}
	claims, err := s.client.CoreV1().PersistentVolumeClaims(ns).List(ctx, all)
	if err != nil {
		return sc, err
	}
	scalers, err := s.client.AutoscalingV2().HorizontalPodAutoscalers(ns).List(ctx, all)
	if err != nil {
		return sc, err
	}
	nodes, err := s.client.CoreV1().Nodes().List(ctx, all)
	if err != nil {
		return sc, err
	}
	return scene{pods.Items, claims.Items, scalers.Items, nodes.Items}, nil
}

// unhealthy says what is wrong with an application that has no fault yet. Its load must have gone on
// for as long as covered.
func unhealthy(l grade.Look, covered time.Duration) string {
	for _, w := range l.Workloads {
		if w.Ready < w.Replicas && !w.Elastic {
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

// enough is how long the load of an application must have gone on that serves all users promptly. Users who wait for
// answers come all at once at first: in a shorter time there may be far more of them than there usually are, or fewer.
func enough(l *problem.Load) time.Duration {
	if l.Users != nil {
		return minCovered
	}
	return minPrompt
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
