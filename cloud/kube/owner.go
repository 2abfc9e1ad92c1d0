package kube

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// RunLabel is on every namespace and every cluster-scoped object that the lab makes. Its value is the run.
	RunLabel = "aiopslab.io/run"
	// ownerAnnotation is on every namespace that the lab makes, and tells until when its run is alive.
	ownerAnnotation = "aiopslab.io/owner"

	// A run says every renewTime that it is alive. It counts as dead if it has not for leaseTime.
	renewTime = 20 * time.Second
	leaseTime = 90 * time.Second
)

// owner is what the annotation of a namespace says. It names the namespace: a copy of one, with all its labels and
// annotations, is not the lab's.
type owner struct {
	Namespace string    `json:"namespace"`
	Since     time.Time `json:"since"`
	Until     time.Time `json:"until"`
}

func (o owner) annotation() string {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err) // It is a string and two times.
	}
	return string(b)
}

// ownerOf returns the run that has made a namespace, and when it was alive. It is not ok if the lab has not made it.
func ownerOf(m *metav1.ObjectMeta) (run string, o owner, ok bool) {
	run = m.Labels[RunLabel]
	err := json.Unmarshal([]byte(m.Annotations[ownerAnnotation]), &o)
	return run, o, run != "" && err == nil && o.Namespace == m.Name && !o.Until.IsZero()
}

// describe tells of a run that is alive.
func describe(run string, o owner) string {
	return fmt.Sprintf("run %s, since %s", run, o.Since.UTC().Format(time.DateTime+" UTC"))
}
