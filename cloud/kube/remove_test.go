package kube

import (
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// What cannot be removed is named, with the reason that the cluster gives.
func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := newServer(t)
		a := claim(t, c, "r1", "shop", "well")
		s.add(t, roles, thing("kept", "r1"))
		s.lingering[spaces+"/shop"] = 1 << 30
		s.before = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodDelete && strings.HasPrefix(r.URL.Path, roles) {
				refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden)
				return true
			}
			return false
		}
		s.mu.Lock()
		merge(s.objects[spaces+"/shop"].Object, map[string]any{"status": map[string]any{"conditions": []any{
			map[string]any{"type": "A", "status": "True", "message": "a finalizer remains"},
			map[string]any{"type": "B", "status": "False", "message": "all is well"},
		}}})
		s.mu.Unlock()
		err := a.Close(t.Context())
		for _, want := range []string{
			"remove namespaces/shop: still there after 3m0s; a finalizer remains", "remove clusterroles/kept: ",
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("no %q in: %v", want, err)
			}
		}
		if err != nil && (strings.Contains(err.Error(), "/well") || s.has(spaces+"/well")) {
			t.Errorf("%v; there is %v", err, s.paths())
		}
	})
}

// A finalizer that an agent has left is not in the way of the next run; those that Kubernetes serves are kept.
func TestFinalizers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := newServer(t)
		a := claim(t, c, "r1", "shop")
		const trap, waiting, other = spaces + "/shop/configmaps/trap", spaces + "/shop/configmaps/waiting", spaces + "/other/configmaps/trap"
		for at, finalizers := range map[string][]string{
			trap: {"an.agent/trap", "kubernetes.io/trap", "kubernetes.io/pvc-protection"}, waiting: {"batch.kubernetes.io/job-tracking"},
			other: {"somebody.else/needs-it"},
		} {
			m := thing(path.Base(at), "")
			m.Namespace, m.Finalizers, m.DeletionTimestamp = strings.Split(at, "/")[4], finalizers, ptr.To(metav1.Now())
			s.add(t, path.Dir(at), m)
		}
		s.lingering[spaces+"/shop"] = 1 << 30
		begin, patched := time.Now(), time.Time{}
		s.before = func(w http.ResponseWriter, r *http.Request) bool {
			switch {
			case r.URL.Path == "/api":
				reply(w, http.StatusOK, metav1.APIVersions{Versions: []string{"v1"}})
			case r.URL.Path == "/apis":
				reply(w, http.StatusOK, metav1.APIGroupList{})
			case r.URL.Path == "/api/v1":
				reply(w, http.StatusOK, metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
					{Name: "configmaps", Namespaced: true, Verbs: []string{"list", "patch"}},
					{Name: "bindings", Namespaced: true, Verbs: []string{"create"}},
					{Name: "secrets", Namespaced: true, Verbs: []string{"list", "patch"}},
				}})
			case r.Method == http.MethodPatch && r.URL.Path == trap:
				patched = time.Now()
				s.lingering[spaces+"/shop"] = 1
				return false
			default:
				return false
			}
			return true
		}
		if err := a.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if d := patched.Sub(begin); d < stuckTime || d > stuckTime+time.Second {
			t.Errorf("the finalizer was taken away after %v", d)
		}
		for at, want := range map[string][]string{
			trap: {"kubernetes.io/pvc-protection"}, waiting: {"batch.kubernetes.io/job-tracking"}, other: {"somebody.else/needs-it"},
		} {
			if got := s.objects[at].GetFinalizers(); !slices.Equal(got, want) {
				t.Errorf("%s has finalizers %v", at, got)
			}
		}
	})
}
