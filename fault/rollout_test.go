package fault

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/app/hotel"
)

// A wrong template leaves what a rollout leaves: the pods of the release before are gone, scaled down by
// the controller, as its event says. Other ReplicaSets are left alone.
func TestReplaceLooksLikeARollout(t *testing.T) {
	a := hotel.App()
	l := newLab(t, a, nil)
	owner, err := l.AppsV1().Deployments(a.Namespace).Get(t.Context(), "geo", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owner.UID = "geo"
	if err := l.Tracker().Update(appsv1.SchemeGroupVersion.WithResource("deployments"), owner, a.Namespace); err != nil {
		t.Fatal(err)
	}
	for i, replicas := range []int32{0, 2, 1} {
		s := set(a.Namespace, fmt.Sprintf("geo-%d", 8+i), replicas)
		s.Annotations = map[string]string{"deployment.kubernetes.io/revision": fmt.Sprint(8 + i)}
		s.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
		if err := l.Tracker().Add(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Tracker().Add(set(a.Namespace, "rate-1", 1)); err != nil {
		t.Fatal(err)
	}
	var writers []string
	l.PrependReactor("update", "replicasets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		u := action.(clienttesting.UpdateActionImpl)
		writers = append(writers, u.UpdateOptions.FieldManager+" "+u.Object.(metav1.Object).GetName())
		return false, nil, nil
	})
	f := bind(t, "misconfig_app", a, "geo", "")
	for range 2 { // It can be tried again.
		if err := f.Inject(t.Context(), l.env); err != nil {
			t.Fatal(err)
		}
	}
	if len(writers) != 1 || writers[0] != "kube-controller-manager geo-9" {
		t.Errorf("ReplicaSets were written by %v", writers)
	}
	events, err := l.CoreV1().Events(a.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(events.Items) != 1 || events.Items[0].Message != "Scaled down replica set geo-9 from 2 to 0" ||
		events.Items[0].InvolvedObject.Name != "geo" {
		t.Errorf("events %+v", events.Items)
	}
}

func set(namespace, name string, replicas int32) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       appsv1.ReplicaSetSpec{Replicas: ptr.To(replicas)},
	}
}
