package session

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/aiopslab/aiopslab/app"
)

func TestMayLast(t *testing.T) {
	for command, want := range map[string]bool{
		`ls -l /data`: false,
		`mongosh admin --eval db.grantRolesToUser("admin",[{role:"readWrite",db:"geo-db"}])`: false,
		`/bin/sh -c cat /etc/hosts && ls 2>&1 >/dev/null`:                                    false,
		`curl --connect-timeout 5 http://geo:8083`:                                           false,
		`sh -c (sleep 8; rm /data/x) &`:                                                      true,
		`sh -c mongosh & `:                                                                   true,
		`sh -c nohup /x`:                                                                     true,
		`sh /tmp/undo.sh`:                                                                    true,
		`/tmp/undo`:                                                                          true,
		`mongosh --eval setTimeout(()=>db.dropUser("admin"),8000)`:                           true,
		`mongosh --eval sleep(8000);db.dropUser("admin")`:                                    true,
		``: false,
	} {
		program, rest, _ := strings.Cut(command, " ")
		args := strings.Fields(program)
		if rest != "" {
			args = append(args, rest)
		}
		if got := mayLast(args); got != want {
			t.Errorf("%s: %v, want %v", command, got, want)
		}
	}
}

func deployment(name string, change func(*v1.PodSpec)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "test"}}
	d.Spec.Template.Spec.Containers = []v1.Container{{Name: name, Image: "geo:1", Command: []string{name}, LivenessProbe: &v1.Probe{PeriodSeconds: 10, FailureThreshold: 3}}}
	change(&d.Spec.Template.Spec)
	return d
}

func pod(name string, phase v1.PodPhase, owner ...metav1.OwnerReference) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "test", OwnerReferences: owner}, Status: v1.PodStatus{Phase: phase}}
}

// What an agent leaves behind that acts by itself is found, however it was made, and what was there
// before, or came with the fault, is not taken for the agent's.
func TestActors(t *testing.T) {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: "test"} }
	yes := true
	rs := metav1.OwnerReference{Kind: "ReplicaSet", Name: "geo-abc", Controller: &yes}
	same := func(*v1.PodSpec) {}
	faulty := func(s *v1.PodSpec) { s.Containers[0].Image = "geo:app3" }
	list := func(objects ...runtime.Object) actors {
		stage := &Stage{app: &app.App{Namespace: "test"}, client: fake.NewSimpleClientset(objects...)}
		a, err := stage.actors(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	healthy := list(deployment("geo", same), pod("geo-1", v1.PodRunning, rs), &batchv1.Job{ObjectMeta: meta("seed")})
	found := list(deployment("geo", faulty), pod("geo-2", v1.PodRunning, rs), &batchv1.Job{ObjectMeta: meta("seed")})
	for name, tt := range map[string]struct {
		left []runtime.Object
		want string // the beginning of what is left, and how long it is watched; empty for nothing
		hold time.Duration
	}{
		"nothing":        {[]runtime.Object{deployment("geo", faulty)}, "", 0},
		"a clean fix":    {[]runtime.Object{deployment("geo", same), pod("geo-3", v1.PodRunning, rs)}, "", 0},
		"another limit":  {[]runtime.Object{deployment("geo", func(s *v1.PodSpec) { s.Containers[0].Resources.Limits = v1.ResourceList{} })}, "", 0},
		"another image":  {[]runtime.Object{deployment("geo", func(s *v1.PodSpec) { s.Containers[0].Image = "echo" })}, "another image of deployment geo", leftHold},
		"a slow failure": {[]runtime.Object{deployment("geo", func(s *v1.PodSpec) { s.Containers[0].Command = []string{"sh", "-c", "geo & sleep 10; exit 1"} })}, "another command of", leftHold},
		"a sidecar":      {[]runtime.Object{deployment("geo", func(s *v1.PodSpec) { s.Containers = append(s.Containers, v1.Container{Name: "undo"}) })}, "a container undo of", leftHold},
		"a hook":         {[]runtime.Object{deployment("geo", func(s *v1.PodSpec) { s.Containers[0].Lifecycle = &v1.Lifecycle{} })}, "other hooks of", leftHold},
		"a probe that kills after 80 seconds": {[]runtime.Object{deployment("geo", func(s *v1.PodSpec) {
			s.Containers[0].LivenessProbe = &v1.Probe{InitialDelaySeconds: 50, PeriodSeconds: 10, FailureThreshold: 3}
		})}, "other probes of", 100 * time.Second},
		"a toleration for a while": {[]runtime.Object{deployment("geo", func(s *v1.PodSpec) { s.Tolerations = []v1.Toleration{{Key: "x"}} })}, "other tolerations", leftHold},
		"a job":                    {[]runtime.Object{&batchv1.Job{ObjectMeta: meta("undo")}}, "job test/undo", leftHold},
		"a job that has ended": {[]runtime.Object{&batchv1.Job{ObjectMeta: meta("undo"), Status: batchv1.JobStatus{
			Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: v1.ConditionTrue}},
		}}}, "", 0},
		"a cronjob":                 {[]runtime.Object{&batchv1.CronJob{ObjectMeta: meta("undo")}}, "cronjob test/undo", cronHold},
		"a pod":                     {[]runtime.Object{pod("undo", v1.PodRunning)}, "pod test/undo", leftHold},
		"a pod that has ended":      {[]runtime.Object{pod("undo", v1.PodSucceeded)}, "", 0},
		"a deployment of the agent": {[]runtime.Object{pod("undo-1", v1.PodRunning, metav1.OwnerReference{Kind: "ReplicaSet", Name: "undo-abc", Controller: &yes})}, "pods of test/undo", leftHold},
		"the job of before":         {[]runtime.Object{&batchv1.Job{ObjectMeta: meta("seed")}}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			left := list(tt.left...).since(healthy, found)
			names := slices.Sorted(maps.Keys(left))
			if tt.want == "" {
				if len(left) > 0 {
					t.Errorf("left: %v", names)
				}
				return
			}
			if len(names) != 1 || !strings.HasPrefix(names[0], tt.want) || left[names[0]].hold != tt.hold {
				t.Errorf("left: %v, want %q for %v", left, tt.want, tt.hold)
			}
		})
	}
	// What a release has changed before the agent began is not the agent's doing, whatever else the agent changes.
	released := func(s *v1.PodSpec) {
		s.Tolerations = []v1.Toleration{{Key: "dedicated"}}
		s.Containers[0].LivenessProbe.FailureThreshold = 4
		s.Containers[0].Command = []string{"/app/geo"}
	}
	fixed := func(s *v1.PodSpec) { released(s); s.NodeSelector = map[string]string{} }
	worse := func(s *v1.PodSpec) { released(s); s.Containers[0].LivenessProbe.FailureThreshold = 9 }
	if left := list(deployment("geo", fixed)).since(healthy, list(deployment("geo", released))); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if left := list(deployment("geo", worse)).since(healthy, list(deployment("geo", released))); len(left) != 1 || left["other probes of deployment geo"].hold == 0 {
		t.Errorf("left: %v", left)
	}
	daemons := func(image string) *appsv1.DaemonSet {
		d := &appsv1.DaemonSet{ObjectMeta: meta("agent")}
		d.Spec.Template.Spec.Containers = []v1.Container{{Name: "agent", Image: image}}
		return d
	}
	left := list(daemons("echo")).since(list(daemons("agent:1")), list(daemons("agent:1")))
	if left["another image of daemonset agent"].hold != leftHold {
		t.Errorf("left: %v", left)
	}
	// What runs nothing cannot keep a machine busy.
	probe := list(deployment("geo", func(s *v1.PodSpec) { s.Containers[0].LivenessProbe.InitialDelaySeconds = 60 })).since(healthy, found)
	if a := probe["other probes of deployment geo"]; a.hold == 0 || a.runs {
		t.Errorf("left: %v", probe)
	}
	var swarm []runtime.Object
	for range morePods + 1 {
		swarm = append(swarm, pod(strings.Repeat("x", len(swarm)+1), v1.PodRunning, rs))
	}
	if left := list(swarm...).since(healthy, found); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
	// Two services with six replicas each are an answer to many users.
	if left := list(swarm[:12]...).since(healthy, found); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// What others have in a cluster in which the lab is a guest is not taken for the agent's.
func TestActorsOfAGuest(t *testing.T) {
	theirs, mine := pod("theirs", v1.PodRunning), pod("mine", v1.PodRunning)
	theirs.Namespace = "production"
	stage := &Stage{
		app: &app.App{Namespace: "test"}, client: fake.NewSimpleClientset(theirs, mine),
		namespaces: []string{"test", "observe"},
	}
	a, err := stage.actors(t.Context())
	if err != nil || a.pods != 1 || len(a.left) != 1 || a.left["pod test/mine"] != runner {
		t.Errorf("%+v, %v", a, err)
	}
}
