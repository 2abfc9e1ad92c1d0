package kube

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/aiopslab/aiopslab/cloud"
)

// controller does as Chaos Mesh's: it chooses the pod of an object once, a while after the object is there; it says that
// an object is injected wherever it was to be before it has chosen; it keeps what is deleted until it has undone it.
// It works whenever somebody looks.
type controller struct {
	*apiServer
	// What is wrong with it: it fails with a message, never chooses, or never undoes.
	fails, blind, stuck string
	effects             map[string]string // by the path of the object: the pod, and what is done
	kills               []string          // containers, as "pod/container"
	most                map[string]int    // effects that a pod had at a time
	rank                map[string]int    // how often an object was seen
}

const (
	meshPath  = "/apis/chaos-mesh.org/v1alpha1/namespaces/aiopslab-r1/"
	shopPods  = spaces + "/shop/pods"
	otherPods = spaces + "/other/pods"
)

// withMesh is a cluster with Chaos Mesh, where a run has claimed the namespaces shop and observe.
func withMesh(t *testing.T) (*controller, *Cloud) {
	t.Helper()
	s, c := newServer(t)
	k := &controller{apiServer: s, effects: map[string]string{}, most: map[string]int{}, rank: map[string]int{}}
	s.before = k.answer
	c.mesh.resources = []string{podChaos, networkChaos, stressChaos, ioChaos, meshSecond}
	c.run, c.names.allowed = "r1", []string{"observe", "shop"}
	return k, c
}

func (k *controller) answer(w http.ResponseWriter, r *http.Request) bool {
	if !strings.HasPrefix(r.URL.Path, meshPath) {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch r.Method {
	case http.MethodGet:
		for _, at := range slices.Sorted(maps.Keys(k.objects)) {
			if strings.HasPrefix(at, meshPath) {
				k.reconcile(at, k.objects[at])
			}
		}
	case http.MethodDelete:
		o := k.objects[r.URL.Path]
		if o == nil {
			return false
		}
		now := metav1.Now()
		o.SetDeletionTimestamp(&now)
		reply(w, http.StatusOK, o)
		return true
	}
	return false
}

func (k *controller) reconcile(at string, o *unstructured.Unstructured) {
	k.rank[at]++
	spec := o.Object["spec"].(map[string]any)
	switch {
	case o.GetDeletionTimestamp() != nil:
		if k.stuck == "" {
			delete(k.effects, at)
			delete(k.objects, at)
		}
		return
	case k.effects[at] != "":
		return
	case k.rank[at] == 1 || k.blind != "": // Nothing is chosen yet, so nothing is missing.
		k.say(o, false, "")
		if k.blind != "" {
			k.put(spaces+"/aiopslab-r1/events/e", &unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"name": "e"}, "reason": "Failed", "message": k.blind,
				"involvedObject": map[string]any{"name": o.GetName()},
			}})
		}
		return
	case k.fails != "":
		k.say(o, true, k.fails)
		return
	}
	space, pod := chosenPod(spec)
	p := k.objects[spaces+"/"+space+"/pods/"+pod]
	if p == nil {
		return
	}
	k.say(o, true, "")
	loss, _, _ := unstructured.NestedString(spec, "loss", "loss")
	k.effects[at] = fmt.Sprintf("%s %v %s", pod, spec["action"], loss)
	if spec["action"] == string(cloud.ContainerKill) {
		name := spec["containerNames"].([]any)[0].(string)
		k.kills = append(k.kills, pod+"/"+name)
		setContainer(p, name, "")
	}
	n := 0
	for _, e := range k.effects {
		if strings.HasPrefix(e, pod+" ") {
			n++
		}
	}
	k.most[pod] = max(k.most[pod], n)
}

func chosenPod(spec map[string]any) (space, pod string) {
	pods := spec["selector"].(map[string]any)["pods"].(map[string]any)
	for space, names := range pods {
		return space, names.([]any)[0].(string)
	}
	return "", ""
}

// say sets what an object tells of itself.
func (k *controller) say(o *unstructured.Unstructured, selected bool, failure string) {
	word := map[bool]string{true: "True", false: "False"}
	status := map[string]any{"conditions": []any{
		map[string]any{"type": "AllInjected", "status": word[failure == ""]},
		map[string]any{"type": "Selected", "status": word[selected]},
	}}
	if failure != "" {
		status["experiment"] = map[string]any{"containerRecords": []any{map[string]any{"events": []any{
			map[string]any{"type": "Succeeded", "operation": "Recover"},
			map[string]any{"type": "Failed", "operation": "Apply", "message": failure},
		}}}}
	}
	o.Object["status"] = status
}

// setContainer has a container of a pod run, with an ID, or not.
func setContainer(p *unstructured.Unstructured, name, id string) {
	state := map[string]any{}
	if id != "" {
		state["running"] = map[string]any{}
	}
	status := p.Object["status"].(map[string]any)
	for _, s := range status["containerStatuses"].([]any) {
		if s := s.(map[string]any); s["name"] == name {
			s["state"] = state
			if id != "" {
				s["containerID"] = id
			}
		}
	}
}

// pod is one that runs, with a container that has its name and a volume.
func pod(space, name, app string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: space, UID: types.UID(name), Labels: map[string]string{"app": app}},
		Spec: v1.PodSpec{NodeName: "n1", Containers: []v1.Container{{
			Name: app, VolumeMounts: []v1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "db", MountPath: "/data/db/"}},
		}}},
		Status: v1.PodStatus{Phase: v1.PodRunning, PodIP: "10.0.0.1", ContainerStatuses: []v1.ContainerStatus{{
			Name: app, ContainerID: "c1-" + name, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}},
		}}},
	}
}

// look calls f while nothing changes.
func (k *controller) look(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
}

// done are the effects that there are.
func (k *controller) done() (all []string) {
	k.look(func() { all = slices.Sorted(maps.Values(k.effects)) })
	return all
}

// killed are the containers that were killed so far.
func (k *controller) killed() (all []string) {
	k.look(func() { all = slices.Clone(k.kills) })
	return all
}

// atOnce is how many effects a pod had at most at a time.
func (k *controller) atOnce(pod string) (n int) {
	k.look(func() { n = k.most[pod] })
	return n
}

// restart has the container of a pod run again.
func (k *controller) restart(pod, name, id string) {
	k.look(func() { setContainer(k.objects[shopPods+"/"+pod], name, id) })
}

// drop removes an object as if it had never been.
func (k *controller) drop(at string) {
	k.look(func() { delete(k.objects, at) })
}
