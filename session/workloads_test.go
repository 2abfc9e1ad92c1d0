package session

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/grade"
)

// Whatever runs the application's pods is looked at, and what is not yet observed counts as not ready.
func TestWorkloads(t *testing.T) {
	meta := func(name string, generation int64) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: "test", Generation: generation}
	}
	client := fake.NewClientset(
		&appsv1.Deployment{
			ObjectMeta: meta("front", 2), Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](3)},
			Status: appsv1.DeploymentStatus{ObservedGeneration: 2, ReadyReplicas: 3, UpdatedReplicas: 1},
		},
		&appsv1.StatefulSet{ObjectMeta: meta("store", 1), Status: appsv1.StatefulSetStatus{ObservedGeneration: 1, ReadyReplicas: 1}},
		&appsv1.DaemonSet{ObjectMeta: meta("agent", 1), Status: appsv1.DaemonSetStatus{
			ObservedGeneration: 1, DesiredNumberScheduled: 3, NumberReady: 3, UpdatedNumberScheduled: 2,
		}},
		&appsv1.DaemonSet{ObjectMeta: meta("proxy", 2), Status: appsv1.DaemonSetStatus{
			ObservedGeneration: 1, DesiredNumberScheduled: 3, NumberReady: 3, UpdatedNumberScheduled: 3,
		}},
	)
	list, err := (&Stage{app: &app.App{Namespace: "test"}, client: client}).workloads(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []grade.Workload
	for _, w := range list {
		got = append(got, w.Workload)
	}
	want := []grade.Workload{
		{Kind: "deployment", Name: "front", Replicas: 3, Ready: 1},
		{Kind: "statefulset", Name: "store", Replicas: 1, Ready: 1},
		{Kind: "daemonset", Name: "agent", Replicas: 3, Ready: 2},
		{Kind: "daemonset", Name: "proxy", Replicas: 3},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
