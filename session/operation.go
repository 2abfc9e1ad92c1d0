package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/internal/manifest"
)

// This file is about operations: something is asked of services, and they are looked at as who asked would look at
// them, by the API and by what Prometheus has measured.

// goalPatience is how long a goal may take to be met after the agent is done: telemetry looks back, rollouts and
// autoscalers need their time.
const goalPatience = 75 * time.Second

// manifestsMap is the ConfigMap with the manifest of a Deployment that is not there at first.
const manifestsMap = "manifests"

// restartedAt is the annotation by which kubectl restarts pods.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// operated looks at the services that an operation is about.
func (s *Stage) operated(ctx context.Context) (list []grade.Operated, err error) {
	scalers, err := s.client.AutoscalingV2().HorizontalPodAutoscalers(s.app.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, name := range s.goal.Looked() {
		o, err := s.operatedOne(ctx, name, scalers.Items)
		if err != nil {
			return nil, err
		}
		list = append(list, o)
	}
	return list, nil
}

func (s *Stage) operatedOne(
	ctx context.Context, name string, scalers []autoscalingv2.HorizontalPodAutoscaler,
) (o grade.Operated, err error) {
	ns := s.app.Namespace
	o = grade.Operated{Service: name, CPU: -1, Memory: -1, Used: -1}
	d, err := s.client.AppsV1().Deployments(ns).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return o, nil
	}
	if err != nil {
		return o, err
	}
	o.Found, o.Wanted, o.Ready = true, 1, current(d)
	if m, ok := s.made[name]; ok {
		o.Remade = m.others(d.Spec.Template)
	}
	if d.Spec.Replicas != nil {
		o.Wanted = int(*d.Spec.Replicas)
	}
	pods, err := s.client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{
		LabelSelector: labels.SelectorFromSet(d.Spec.Selector.MatchLabels).String(),
	})
	if err != nil {
		return o, err
	}
	cpu, memory := s.readPods(&o, pods.Items)
	for _, w := range s.goal.Want {
		if w.Like != "" && w.Service == name {
			if err := fault.AskLike(ctx, s.env, w.Like, name, w.Port); err != nil {
				o.Wrong = err.Error()
			}
		}
	}
	for _, x := range scalers {
		if x.Spec.ScaleTargetRef.Kind == "Deployment" && x.Spec.ScaleTargetRef.Name == name {
			o.Scaler = scaler(x)
		}
	}
	var names []string
	for _, p := range pods.Items {
		names = append(names, p.Name)
	}
	of := fmt.Sprintf(`namespace=%q,pod=~%q,container!=""`, ns, strings.Join(names, "|"))
	if used, ok := s.measure(ctx, fmt.Sprintf(`sum(rate(container_cpu_usage_seconds_total{%s}[20s]))`, of)); ok {
		o.Used = 1000 * used
		if cpu > 0 {
			o.CPU = used / cpu
		}
	}
	if used, ok := s.measure(ctx, fmt.Sprintf(`sum(container_memory_working_set_bytes{%s})`, of)); ok && memory > 0 {
		o.Memory = used / memory
	}
	p99, ok := s.measure(ctx, fmt.Sprintf(`histogram_quantile(0.99, `+
		`sum by (le) (rate(http_request_duration_seconds_bucket{namespace=%[1]q,service=%[2]q}[20s])) or `+
		`sum by (le) (rate(grpc_server_handling_seconds_bucket{namespace=%[1]q,service=%[2]q}[20s])))`, ns, name))
	if ok {
		o.P99 = time.Duration(p99 * float64(time.Second))
	}
	return o, nil
}

// current is how many pods of a Deployment's last generation are ready.
func current(d *appsv1.Deployment) int {
	if d.Status.ObservedGeneration < d.Generation {
		return 0
	}
	return int(min(d.Status.UpdatedReplicas, d.Status.ReadyReplicas))
}

// readPods notes what the pods run, and returns their limits in sum: cores and bytes; 0 if one has none.
func (s *Stage) readPods(o *grade.Operated, pods []v1.Pod) (cpu, memory float64) {
	o.Env = map[string][]string{}
	o.Bounded, o.Probed = len(pods) > 0, len(pods) > 0
	free := false
	for _, p := range pods {
		if p.DeletionTimestamp != nil || len(p.Spec.Containers) == 0 {
			continue
		}
		if made := p.CreationTimestamp.Time; o.Oldest.IsZero() || made.Before(o.Oldest) {
			o.Oldest = made
		}
		for _, c := range p.Spec.Containers {
			limits := c.Resources.Limits
			free = free || limits.Cpu().IsZero() || limits.Memory().IsZero()
			o.Bounded = o.Bounded && bounded(c.Resources)
			o.Probed = o.Probed && c.ReadinessProbe != nil
			cpu, memory = cpu+limits.Cpu().AsApproximateFloat64(), memory+limits.Memory().AsApproximateFloat64()
		}
		c := p.Spec.Containers[0]
		o.Images = once(o.Images, c.Image)
		for _, w := range s.goal.Want {
			for name := range w.Env {
				i := slices.IndexFunc(c.Env, func(e v1.EnvVar) bool { return e.Name == name })
				value := ""
				if i >= 0 {
					value = c.Env[i].Value
				}
				o.Env[name] = once(o.Env[name], value)
			}
		}
	}
	if free {
		return 0, 0
	}
	return cpu, memory
}

// bounded reports whether a container says what it needs, and how much it may have.
func bounded(r v1.ResourceRequirements) bool {
	for _, list := range []v1.ResourceList{r.Requests, r.Limits} {
		if list.Cpu().IsZero() || list.Memory().IsZero() {
			return false
		}
	}
	return true
}

// spent is what users got since the agent's turn began.
func (s *Stage) spent(ctx context.Context) (*grade.Spent, error) {
	w, err := s.whole(ctx)
	if err != nil {
		return nil, err
	}
	return &grade.Spent{Requests: w.Total.Requests - s.began.Requests, Failed: w.Total.Failed - s.began.Failed}, nil
}

// makings are what a Deployment's pods were made of at a time, and in its earlier releases.
type makings struct {
	template v1.PodTemplateSpec
	earlier  []v1.PodTemplateSpec
}

// others reports whether pods of a template are not just those that there were, made again: all that may be new is an
// annotation, by which pods are restarted. An earlier release may differ in no more than that.
func (m makings) others(now v1.PodTemplateSpec) bool {
	for name, value := range m.template.Annotations {
		if name != restartedAt && now.Annotations[name] != value {
			return true
		}
	}
	return !equality.Semantic.DeepEqual(m.template.Labels, now.Labels) ||
		!equality.Semantic.DeepEqual(m.template.Spec, now.Spec) ||
		slices.ContainsFunc(m.earlier, func(t v1.PodTemplateSpec) bool { return equality.Semantic.DeepEqual(t, now) })
}

// makingsOf reads what a Deployment's pods are made of.
func (s *Stage) makingsOf(ctx context.Context, name string) (m makings, err error) {
	ns := s.app.Namespace
	d, err := s.client.AppsV1().Deployments(ns).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return m, err
	}
	m.template = d.Spec.Template
	sets, err := s.client.AppsV1().ReplicaSets(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return m, err
	}
	for _, r := range sets.Items {
		if !metav1.IsControlledBy(&r, d) {
			continue
		}
		t := r.Spec.Template
		delete(t.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
		if !equality.Semantic.DeepEqual(t, m.template) {
			m.earlier = append(m.earlier, t)
		}
	}
	return m, nil
}

// beginTurn notes what there was before an agent's turn: what users got, for a goal with a budget, and of what pods are
// that are to be restarted.
func (s *Stage) beginTurn(ctx context.Context) error {
	s.began, s.made = nil, map[string]makings{}
	if s.goal == nil {
		return nil
	}
	for _, w := range s.goal.Want {
		if !w.Restarted {
			continue
		}
		m, err := s.makingsOf(ctx, w.Service)
		if apierrors.IsNotFound(err) {
			continue // Whoever judges says that it is not there.
		}
		if err != nil {
			return err
		}
		s.made[w.Service] = m
	}
	if s.goal.Budget == 0 {
		return nil
	}
	w, err := s.whole(ctx)
	if err == nil {
		s.began = &grade.Spent{Requests: w.Total.Requests, Failed: w.Total.Failed}
	}
	return err
}

func once(list []string, one string) []string {
	if slices.Contains(list, one) {
		return list
	}
	return append(list, one)
}

func scaler(x autoscalingv2.HorizontalPodAutoscaler) *grade.Scaler {
	s := &grade.Scaler{Min: 1, Max: int(x.Spec.MaxReplicas)}
	if x.Spec.MinReplicas != nil {
		s.Min = int(*x.Spec.MinReplicas)
	}
	for _, m := range x.Spec.Metrics {
		if m.Resource != nil && m.Resource.Name == v1.ResourceCPU && m.Resource.Target.AverageUtilization != nil {
			s.Target = int(*m.Resource.Target.AverageUtilization)
		}
	}
	s.Active = slices.ContainsFunc(x.Status.Conditions, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool {
		return c.Type == autoscalingv2.ScalingActive && c.Status == v1.ConditionTrue
	})
	return s
}

// measure asks Prometheus for one number. There may be none, or no Prometheus: that is nothing that is known.
func (s *Stage) measure(ctx context.Context, query string) (float64, bool) {
	v, _, err := s.observer.Prometheus().Query(ctx, query, time.Now())
	if err != nil {
		return 0, false
	}
	vector, ok := v.(model.Vector)
	if !ok || len(vector) != 1 || vector[0].Value != vector[0].Value { // NaN
		return 0, false
	}
	return float64(vector[0].Value), true
}

// atFirst leaves a Deployment as an operation wants it found.
func (l *Local) atFirst(ctx context.Context) error {
	g := l.setting.Problem.Goal()
	if g == nil || g.AtFirst == nil {
		return nil
	}
	deployments := l.stage.client.AppsV1().Deployments(l.stage.app.Namespace)
	if a := g.AtFirst; a.Delete == "" {
		d, err := deployments.Get(ctx, a.Of, metav1.GetOptions{})
		if err != nil {
			return err
		}
		patch := fmt.Sprintf(`{"spec": {"template": {"spec": {"containers": [{"name": %q, "image": %q}]}}}}`,
			d.Spec.Template.Spec.Containers[0].Name, a.Image)
		_, err = deployments.Patch(ctx, a.Of, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
	text, err := manifestOf(l.stage, g.AtFirst.Delete)
	if err != nil {
		return err
	}
	_, err = l.stage.client.CoreV1().ConfigMaps(l.stage.app.Namespace).Create(ctx, &v1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: manifestsMap}, Data: map[string]string{g.AtFirst.Delete + ".yaml": text},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return deployments.Delete(ctx, g.AtFirst.Delete, metav1.DeleteOptions{})
}

// manifestOf is the manifest of a Deployment as it was deployed.
func manifestOf(s *Stage, name string) (string, error) {
	objects, err := manifest.Read(s.app.Manifests)
	if err != nil {
		return "", err
	}
	for _, u := range objects {
		if u.GetKind() == "Deployment" && u.GetName() == name {
			b, err := yaml.Marshal(u.Object)
			return string(b), err
		}
	}
	return "", fmt.Errorf("%s has no Deployment %s", s.app.Name, name)
}
