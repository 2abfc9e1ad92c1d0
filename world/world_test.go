package world_test

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/robfig/cron/v3"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordination "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/world"
)

const revision = "deployment.kubernetes.io/revision"

// made is when the cluster of the tests was really made, and now when it has its past written.
var (
	made = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	now  = made.Add(11 * time.Second)
)

func at(t time.Time) metav1.Time { return metav1.NewTime(t) }

func meta(namespace, name string, after time.Duration) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID("uid of " + name), Generation: 1,
		CreationTimestamp: at(made.Add(after)), Annotations: map[string]string{revision: "1"},
		Labels: map[string]string{"app": name},
	}
}

// history is of a cluster with as many shops as are asked for, each a Deployment with a pod.
func history(shops int) *cloud.History {
	h := &cloud.History{
		Nodes: []*cloud.Machine{{Name: "node-1", Booted: made}},
		Hash: func(t *v1.PodTemplateSpec) string {
			f := fnv.New32a()
			fmt.Fprint(f, t.String())
			return strconv.FormatUint(uint64(f.Sum32()), 36)
		},
		HasImage: func(name string) bool { return name == "shop:1.2.3" || name == "shop:1.2.2" },
	}
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "lab.example.com/v1", "kind": "Backup",
		"metadata": map[string]any{"name": "nightly", "creationTimestamp": made.Format(time.RFC3339)},
		"spec":     map[string]any{"note": made.Format(time.RFC3339)},
	}}
	h.Objects = append(h.Objects,
		&v1.Namespace{TypeMeta: kind("v1", "Namespace"), ObjectMeta: meta("", "kube-system", 0)},
		&v1.Namespace{TypeMeta: kind("v1", "Namespace"), ObjectMeta: meta("", "shop", 3*time.Second)}, crd,
		&coordination.Lease{
			TypeMeta: kind("coordination.k8s.io/v1", "Lease"), ObjectMeta: meta("kube-node-lease", "node-1", time.Second),
			Spec: coordination.LeaseSpec{RenewTime: ptr.To(metav1.NewMicroTime(made.Add(time.Second)))},
		},
		&v1.Node{
			TypeMeta: kind("v1", "Node"), ObjectMeta: meta("", "node-1", time.Second),
			Status: v1.NodeStatus{Conditions: []v1.NodeCondition{{
				Type: v1.NodeReady, LastTransitionTime: at(made.Add(time.Second)), LastHeartbeatTime: at(made.Add(time.Second)),
			}}},
		})
	for i := range shops {
		addShop(h, fmt.Sprintf("shop-%d", i))
	}
	return h
}

func kind(version, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version, Kind: kind}
}

func addShop(h *cloud.History, name string) {
	template := v1.PodTemplateSpec{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "shop:1.2.4"}}}}
	d := &appsv1.Deployment{
		TypeMeta: kind("apps/v1", "Deployment"), ObjectMeta: meta("shop", name, 4*time.Second),
		Spec: appsv1.DeploymentSpec{Replicas: ptr.To(int32(1)), Template: template},
	}
	d.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl", Time: ptr.To(at(made.Add(4 * time.Second)))}}
	hash := h.Hash(&template)
	set := &appsv1.ReplicaSet{
		TypeMeta: kind("apps/v1", "ReplicaSet"), ObjectMeta: meta("shop", name+"-"+hash, 5*time.Second),
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To(int32(1)), Template: template,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"pod-template-hash": hash}},
		},
		Status: appsv1.ReplicaSetStatus{Replicas: 1, ReadyReplicas: 1, TerminatingReplicas: new(int32)},
	}
	set.Labels["pod-template-hash"] = hash
	set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
	p := &v1.Pod{
		TypeMeta: kind("v1", "Pod"), ObjectMeta: meta("shop", set.Name+"-abcde", 5*time.Second),
		Spec: v1.PodSpec{NodeName: "node-1", Containers: template.Spec.Containers},
	}
	p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	p.Status = v1.PodStatus{
		StartTime:  ptr.To(at(made.Add(5 * time.Second))),
		Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: at(made.Add(7 * time.Second))}},
		ContainerStatuses: []v1.ContainerStatus{{
			Name: "main", ContainerID: "containerd://" + name,
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: at(made.Add(6 * time.Second))}},
		}},
	}
	slice := &discovery.EndpointSlice{TypeMeta: kind("discovery.k8s.io/v1", "EndpointSlice"), ObjectMeta: meta("shop", name+"-xyz12", 5*time.Second)}
	slice.Annotations[v1.EndpointsLastChangeTriggerTime] = made.Add(7 * time.Second).Format(time.RFC3339)
	slice.Endpoints = []discovery.Endpoint{{TargetRef: &v1.ObjectReference{Kind: "Pod", Name: p.Name}}}
	h.Objects = append(h.Objects, d, set, p, slice)
	started := made.Add(6*time.Second + 250*time.Millisecond)
	m := h.Nodes[0]
	m.Sandboxes = append(m.Sandboxes, &cloud.Sandbox{ID: "box of " + name, Created: started.Add(-time.Second)})
	m.Containers = append(m.Containers, &cloud.Container{
		ID: name, Sandbox: "box of " + name, Created: started.Add(-time.Millisecond), Started: started,
		Log: []cloud.Line{{Time: started, Stream: "stdout", Text: started.Format(time.RFC3339) + " open until 2030-01-01T00:00:00Z"}},
	})
}

func write(t *testing.T, h *cloud.History, seed uint64) *cloud.History {
	t.Helper()
	if err := (world.Past{Seed: seed, Now: now}).Write(h); err != nil {
		t.Fatal(err)
	}
	return h
}

func all[T cloud.Object](h *cloud.History) (list []T) {
	for _, o := range h.Objects {
		if o, ok := o.(T); ok {
			list = append(list, o)
		}
	}
	return list
}

// Nothing is as young as the cluster really is, and nothing is older than what it is part of.
func TestAges(t *testing.T) {
	h := write(t, history(40), 1)
	const day = 24 * time.Hour
	created := map[types.UID]time.Time{}
	for _, o := range h.Objects {
		age := now.Sub(o.GetCreationTimestamp().Time)
		created[o.GetUID()] = o.GetCreationTimestamp().Time
		switch o.(type) {
		case *v1.Pod, *appsv1.ReplicaSet:
			if age < 2*time.Minute || age > 31*day {
				t.Errorf("%s is %v old", o.GetName(), age)
			}
		case *v1.Event:
			if age < 0 || age > time.Hour {
				t.Errorf("the event %s is %v old", o.GetName(), age)
			}
		default:
			if age < 20*day || age > 32*day {
				t.Errorf("%s is %v old", o.GetName(), age)
			}
		}
	}
	for _, o := range h.Objects {
		for _, owner := range o.GetOwnerReferences() {
			if o.GetCreationTimestamp().Time.Before(created[owner.UID]) {
				t.Errorf("%s is older than its owner %s", o.GetName(), owner.Name)
			}
		}
	}
	for _, d := range all[*appsv1.Deployment](h) {
		if d.CreationTimestamp.Time.Before(all[*v1.Namespace](h)[1].CreationTimestamp.Time) {
			t.Errorf("%s is older than its namespace", d.Name)
		}
	}
	backup := all[*unstructured.Unstructured](h)[0].Object
	if got := backup["spec"].(map[string]any)["note"]; got != made.Format(time.RFC3339) {
		t.Errorf("what is no time of the object has become %v", got)
	}
	node := all[*v1.Node](h)[0]
	if beat := node.Status.Conditions[0]; now.Sub(beat.LastHeartbeatTime.Time) > time.Second || now.Sub(beat.LastTransitionTime.Time) < 20*day {
		t.Errorf("the node is %+v", beat)
	}
	if l := all[*coordination.Lease](h); !l[0].Spec.RenewTime.Time.Equal(now) || !l[0].CreationTimestamp.Equal(&node.CreationTimestamp) {
		t.Errorf("leases %+v", l)
	}
}

// Pods are as old as in a cluster that people use: most have run for weeks or days, and something was released a few
// minutes ago. That holds for all that nothing releases in the present, whatever it is.
func TestPodsAreOfAllAges(t *testing.T) {
	const shops = 400
	h := history(shops)
	if err := (world.Past{Seed: 1, Now: now, Released: []string{}}).Write(h); err != nil {
		t.Fatal(err)
	}
	const day = 24 * time.Hour
	ages := map[string]int{}
	for _, p := range all[*v1.Pod](h) {
		switch age := now.Sub(p.CreationTimestamp.Time); {
		case age > 7*day:
			ages["weeks"]++
		case age > day:
			ages["days"]++
		case age > time.Hour:
			ages["hours"]++
		default:
			ages["minutes"]++
		}
	}
	for name, least := range map[string]int{"weeks": shops / 3, "days": shops / 8, "hours": shops / 8, "minutes": shops / 8} {
		if ages[name] < least {
			t.Errorf("%d of %d pods are %s old, want %d: %v", ages[name], shops, name, least, ages)
		}
	}
}

// What the API says of a container is what its runtime says, and what its log says.
func TestContainersAgree(t *testing.T) {
	h := write(t, history(40), 1)
	ages := map[bool]int{}
	for i, p := range all[*v1.Pod](h) {
		c, s := h.Nodes[0].Containers[i], h.Nodes[0].Sandboxes[i]
		started := p.Status.ContainerStatuses[0].State.Running.StartedAt
		if !c.Started.Truncate(time.Second).Equal(started.Time) || !c.Created.Before(c.Started) || !s.Created.Before(c.Created) {
			t.Errorf("%s started at %v; its container at %v, its sandbox at %v", p.Name, started, c.Started, s.Created)
		}
		if d := started.Sub(p.CreationTimestamp.Time); d != time.Second && p.Status.ContainerStatuses[0].RestartCount == 0 {
			t.Errorf("%s started %v after it was made", p.Name, d)
		}
		l := c.Log[0]
		if want := c.Started.Format(time.RFC3339) + " open until 2030-01-01T00:00:00Z"; !l.Time.Equal(c.Started) || l.Text != want {
			t.Errorf("the log has %q of %v, want %q of %v", l.Text, l.Time, want, c.Started)
		}
		ages[now.Sub(started.Time) < 24*time.Hour]++
	}
	if ages[true] < 3 || ages[false] < 3 {
		t.Errorf("%d pods of this day, %d older ones", ages[true], ages[false])
	}
}

// Some containers were restarted: the API, the runtime and the logs tell the same of it.
func TestRestarts(t *testing.T) {
	const shops = 60
	h := write(t, history(shops), 1)
	byID := map[string]*cloud.Container{}
	for _, c := range h.Nodes[0].Containers {
		byID["containerd://"+c.ID] = c
	}
	n := 0
	for _, p := range all[*v1.Pod](h) {
		s := p.Status.ContainerStatuses[0]
		c, end := byID[s.ContainerID], s.LastTerminationState.Terminated
		if c.Restarts != int(s.RestartCount) || (end == nil) != (s.RestartCount == 0) {
			t.Errorf("%s: %d restarts by its status, %d by its runtime, %v", p.Name, s.RestartCount, c.Restarts, end)
		}
		if end == nil {
			continue
		}
		n++
		before := byID[end.ContainerID]
		if before == nil || before.Like != c.ID || before.Restarts != c.Restarts-1 || before.Sandbox != c.Sandbox || before.ExitCode != 137 || end.ExitCode != 137 || before.Reason != end.Reason {
			t.Fatalf("%s: %+v was before, and ended so: %+v", p.Name, before, end)
		}
		moments := []time.Time{p.CreationTimestamp.Time, end.StartedAt.Time, end.FinishedAt.Time, s.State.Running.StartedAt.Time, now.Add(-time.Minute)}
		if !slices.IsSortedFunc(moments, time.Time.Compare) || !before.Created.Before(c.Created) {
			t.Errorf("%s: it was made, began, ended, began again and has run since %v", p.Name, moments)
		}
		if !before.Finished.Truncate(time.Second).Equal(end.FinishedAt.Time) || !before.Started.Truncate(time.Second).Equal(end.StartedAt.Time) {
			t.Errorf("%s: %+v, but %+v", p.Name, before, end)
		}
		if l := before.Log[0]; !l.Time.Equal(before.Started) || !strings.HasPrefix(l.Text, before.Started.Format(time.RFC3339)) {
			t.Errorf("%s: its log begins with %+v, it began at %v", p.Name, l, before.Started)
		}
		if ready := p.Status.Conditions[0].LastTransitionTime; ready.Before(&s.State.Running.StartedAt) {
			t.Errorf("%s has been ready since %v, its container has run since %v", p.Name, ready, s.State.Running.StartedAt)
		}
	}
	if n < shops/12 || n > shops/2 {
		t.Errorf("%d of %d were restarted", n, shops)
	}
	since := map[string]time.Time{}
	for _, p := range all[*v1.Pod](h) {
		since[p.Name] = p.Status.Conditions[0].LastTransitionTime.Time
	}
	for _, s := range all[*discovery.EndpointSlice](h) {
		if want := since[s.Endpoints[0].TargetRef.Name].UTC().Format(time.RFC3339Nano); s.Annotations[v1.EndpointsLastChangeTriggerTime] != want {
			t.Errorf("%s last changed at %s, its pod got ready at %s", s.Name, s.Annotations[v1.EndpointsLastChangeTriggerTime], want)
		}
	}
}

// A workload was released several times, each time with a difference.
func TestReleases(t *testing.T) {
	h := write(t, history(40), 1)
	sets := map[types.UID][]*appsv1.ReplicaSet{}
	for _, s := range all[*appsv1.ReplicaSet](h) {
		sets[s.OwnerReferences[0].UID] = append(sets[s.OwnerReferences[0].UID], s)
	}
	counts, images := map[int]int{}, map[string]bool{}
	for _, d := range all[*appsv1.Deployment](h) {
		counts[len(sets[d.UID])]++
		seen := map[string]bool{}
		for _, s := range sets[d.UID] {
			image := strings.TrimPrefix(s.Spec.Template.Spec.Containers[0].Image, "docker.io/library/") // It may be spelled so.
			images[image] = true
			hash, n := s.Labels["pod-template-hash"], s.Annotations[revision]
			if seen[hash] || seen[n] || s.Spec.Selector.MatchLabels["pod-template-hash"] != hash || !strings.HasSuffix(s.Name, hash) {
				t.Errorf("%s of revision %s has the hash %s", s.Name, n, hash)
			}
			seen[hash], seen[n] = true, true
			if current := *s.Spec.Replicas == 1; current != (n == d.Annotations[revision]) || current != (n == strconv.Itoa(len(sets[d.UID]))) {
				t.Errorf("%s is revision %s of %d", s.Name, n, len(sets[d.UID]))
			}
			if s.Status.TerminatingReplicas == nil { // Its controller would write it when it starts.
				t.Errorf("the status of %s does not count pods that end", s.Name)
			}
		}
		if d.Generation != d.Status.ObservedGeneration && len(sets[d.UID]) > 1 {
			t.Errorf("%s: generation %d, seen %d", d.Name, d.Generation, d.Status.ObservedGeneration)
		}
	}
	if len(counts) < 4 {
		t.Errorf("workloads by how often they were released: %v", counts)
	}
	if len(images) != 3 || images["shop:1.2.1"] {
		t.Errorf("images %v", images)
	}
	if len(all[*v1.Event](h)) == 0 {
		t.Error("nothing has happened within the last hour")
	}
}

// What is released in the present was released once less: the number of ReplicaSets is as high as where nothing is
// released. That there are images of fewer versions does not show in it.
func TestReleasedInThePresent(t *testing.T) {
	const shops = 120
	mean := func(seed uint64, released []string, images bool) float64 {
		h := history(shops)
		if !images {
			h.HasImage = func(string) bool { return false }
		}
		if err := (world.Past{Seed: seed, Now: now, Released: released}).Write(h); err != nil {
			t.Fatal(err)
		}
		return float64(len(all[*appsv1.ReplicaSet](h))) / shops
	}
	names := []string{}
	for i := range shops {
		names = append(names, fmt.Sprintf("shop/shop-%d", i))
	}
	for seed := range uint64(3) {
		none, every := mean(seed, []string{}, true), mean(seed, names, true)
		if d := none - every; d < 0.8 || d > 1.01 {
			t.Errorf("seed %d: %v ReplicaSets each, %v of what is released again", seed, none, every)
		}
		if few := mean(seed, []string{}, false); few < none-0.3 {
			t.Errorf("seed %d: %v ReplicaSets each, %v without other images", seed, none, few)
		}
	}
}

// A namespace has a job that was run on the last days, and is not due while anybody looks.
func TestJobs(t *testing.T) {
	for seed := range uint64(20) {
		h := history(3)
		h.HasImage = func(string) bool { return true }
		write(t, h, seed)
		crons, jobs := all[*batchv1.CronJob](h), all[*batchv1.Job](h)
		if len(crons) != 1 || len(jobs) != 3 {
			t.Fatalf("%d CronJobs, %d jobs", len(crons), len(jobs))
		}
		s, err := cron.ParseStandard(crons[0].Spec.Schedule)
		if err != nil {
			t.Fatal(err)
		}
		if next := s.Next(now); next.Sub(now) < 2*time.Hour {
			t.Errorf("it is due in %v", next.Sub(now))
		}
		if next := s.Next(crons[0].Status.LastScheduleTime.UTC()); !next.After(now) {
			t.Errorf("it was due at %v, and not run", next)
		}
		for _, j := range jobs {
			age := now.Sub(j.CreationTimestamp.Time)
			if age < 0 || age > 4*24*time.Hour || !metav1.IsControlledBy(j, crons[0]) || j.CreationTimestamp.Before(&crons[0].CreationTimestamp) {
				t.Errorf("%s is %v old; its CronJob is of %v", j.Name, age, crons[0].CreationTimestamp)
			}
			if at := s.Next(j.CreationTimestamp.Add(-time.Second)); !at.Equal(j.CreationTimestamp.Time) || j.Status.CompletionTime.Before(j.Status.StartTime) {
				t.Errorf("%s was not run when it was due, at %v", j.Name, at)
			}
		}
	}
}

// Some workloads were scaled in the last hour, so that who has most events need not be who fails. What was
// done is over, and the pods of it are gone.
func TestScaling(t *testing.T) {
	h := write(t, history(40), 1)
	pods, count := map[string]bool{}, map[string]int{}
	for _, p := range all[*v1.Pod](h) {
		pods[p.Name] = true
	}
	for _, e := range all[*v1.Event](h) {
		first, last := now.Sub(e.FirstTimestamp.Time), now.Sub(e.LastTimestamp.Time)
		if first < last || last < time.Minute || first > time.Hour+time.Minute || e.Count < 1 {
			t.Errorf("%s of %s: %d times from %v to %v ago", e.Reason, e.InvolvedObject.Name, e.Count, first, last)
		}
		if e.Reason == "Killing" && pods[e.InvolvedObject.Name] {
			t.Errorf("%s was killed and is there", e.InvolvedObject.Name)
		}
		count[strings.Join(strings.Split(e.InvolvedObject.Name, "-")[:2], "-")] += int(e.Count)
	}
	busy := 0
	for _, n := range count {
		if n > 30 { // More than a pod has that does not become ready.
			busy++
		}
	}
	if busy < 4 || busy > 20 {
		t.Errorf("%d of 40 have many events: %v", busy, count)
	}
	for _, s := range all[*appsv1.ReplicaSet](h) {
		if s.Status.ObservedGeneration != 0 && s.Generation != s.Status.ObservedGeneration {
			t.Errorf("%s: generation %d, seen %d", s.Name, s.Generation, s.Status.ObservedGeneration)
		}
	}
}

// One seed is one past; another is another.
func TestSeeds(t *testing.T) {
	a, b, c := write(t, history(10), 1), write(t, history(10), 1), write(t, history(10), 2)
	if diff := cmp.Diff(a.Objects, b.Objects); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(a.Objects, c.Objects) {
		t.Error("two seeds have one past")
	}
}

// The names of pods end by luck. They have no part in the past.
func TestPodsNamedOtherwise(t *testing.T) {
	type fate struct {
		born     metav1.Time
		restarts int32
	}
	fates := func(suffix string) map[string]fate {
		h, list := history(20), map[string]fate{}
		for _, p := range all[*v1.Pod](h) {
			p.Name = strings.TrimSuffix(p.Name, "abcde") + suffix
		}
		for _, p := range all[*v1.Pod](write(t, h, 1)) {
			list[strings.TrimSuffix(p.Name, suffix)] = fate{p.CreationTimestamp, p.Status.ContainerStatuses[0].RestartCount}
		}
		return list
	}
	if a, b := fates("abcde"), fates("zyxwv"); !maps.Equal(a, b) {
		t.Errorf("one seed has two pasts: %v and %v", a, b)
	}
}

// Where nothing was ever released, there is nothing but age.
func TestSteady(t *testing.T) {
	h := history(10)
	if err := (world.Past{Seed: 1, Now: now, Steady: []string{"shop"}}).Write(h); err != nil {
		t.Fatal(err)
	}
	if sets, events := all[*appsv1.ReplicaSet](h), all[*v1.Event](h); len(sets) != 10 || len(events) != 0 {
		t.Errorf("%d ReplicaSets, %d events", len(sets), len(events))
	}
	for _, p := range all[*v1.Pod](h) {
		if age := now.Sub(p.CreationTimestamp.Time); age < 20*24*time.Hour {
			t.Errorf("%s is %v old", p.Name, age)
		}
	}
}
