package kube

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/aiopslab/aiopslab/cloud"
)

func volume(name string, policy v1.PersistentVolumeReclaimPolicy) *v1.PersistentVolume {
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: policy},
	}
}

// policyOf is the reclaim policy of a volume.
func policyOf(t *testing.T, c *Cloud, name string) v1.PersistentVolumeReclaimPolicy {
	t.Helper()
	pv, err := c.client.CoreV1().PersistentVolumes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pv.Spec.PersistentVolumeReclaimPolicy
}

func keep(t *testing.T, c *Cloud, name string) {
	t.Helper()
	_, err := c.client.CoreV1().PersistentVolumes().Patch(t.Context(), name, types.MergePatchType,
		[]byte(`{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// However a run ends, volumes that it was lent have the policies that they had: when it closes, and when somebody clears
// away what it has left. They are not removed, and nobody else's are touched.
func TestLend(t *testing.T) {
	for _, dies := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, c := newServer(t)
			c.run = "mine"
			mine := claim(t, c, "mine", "shop")
			s.add(t, pvs, volume("one", v1.PersistentVolumeReclaimDelete), volume("two", v1.PersistentVolumeReclaimRecycle),
				volume("gone", v1.PersistentVolumeReclaimDelete), volume("users", v1.PersistentVolumeReclaimDelete))
			if err := c.Lend(t.Context(), "one"); err != nil {
				t.Fatal(err)
			}
			keep(t, c, "one")
			// What was noted first counts.
			if err := c.Lend(t.Context(), "one", "two", "gone"); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"two", "gone", "users"} {
				keep(t, c, name)
			}
			// Another volume has taken the name of one since.
			s.mu.Lock()
			delete(s.objects, pvs+"/gone")
			s.mu.Unlock()
			s.add(t, pvs, volume("gone", v1.PersistentVolumeReclaimRetain))
			if dies {
				mine.die()
				time.Sleep(leaseTime)
				if _, err := c.Cleanup(t.Context()); err != nil {
					t.Fatal(err)
				}
			} else if err := mine.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			for name, want := range map[string]v1.PersistentVolumeReclaimPolicy{
				"one": v1.PersistentVolumeReclaimDelete, "two": v1.PersistentVolumeReclaimRecycle,
				"gone": v1.PersistentVolumeReclaimRetain, "users": v1.PersistentVolumeReclaimRetain,
			} {
				if got := policyOf(t, c, name); got != want {
					t.Errorf("dies %v: %s has %s, want %s", dies, name, got, want)
				}
			}
			for _, path := range s.paths() {
				if strings.HasPrefix(path, roles) {
					t.Errorf("dies %v: %s is left", dies, path)
				}
			}
		})
	}
}

// A run that turns out to be alive while somebody clears away keeps what it was lent.
func TestLentToTheLiving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := newServer(t)
		c.run = "mine"
		mine := claim(t, c, "mine", "shop")
		s.add(t, pvs, volume("one", v1.PersistentVolumeReclaimDelete))
		if err := c.Lend(t.Context(), "one"); err != nil {
			t.Fatal(err)
		}
		keep(t, c, "one")
		if _, err := s.connect(t).Cleanup(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := policyOf(t, c, "one"); got != v1.PersistentVolumeReclaimRetain {
			t.Errorf("it has %s", got)
		}
		if err := mine.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A note that nobody can read is told, and nothing is guessed.
func TestLendErrors(t *testing.T) {
	s, c := newServer(t)
	c.run = "mine"
	s.add(t, pvs, volume("one", v1.PersistentVolumeReclaimDelete))
	if err := c.Lend(t.Context(), "nobody"); err == nil {
		t.Error("a volume is lent that is not there")
	}
	if err := c.Lend(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	_, err := c.client.RbacV1().ClusterRoles().Patch(t.Context(), lentName("mine"), types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"aiopslab.io/volumes":"?"}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"lend": c.Lend(t.Context(), "one"), "give back": c.giveBack(t.Context(), "mine")} {
		if err == nil || !strings.Contains(err.Error(), "read how volumes were: clusterroles/"+lentName("mine")) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// What a cluster lets the lab have is seen when it is opened.
func TestMissing(t *testing.T) {
	const sets = "/apis/apps/v1/daemonsets"
	for name, tt := range map[string]struct {
		sets              []string // names of DaemonSets
		may, known        bool
		policies, volumes string // in the reasons
	}{
		"all of it":        {[]string{"node-exporter", "calico-node"}, true, true, "", ""},
		"no policies":      {[]string{"kube-flannel-ds"}, true, true, "Flannel does not enforce them", ""},
		"one enforces":     {[]string{"kube-flannel-ds", "kube-network-policies"}, true, true, "", ""},
		"no known plug-in": {[]string{"node-exporter"}, true, true, "no DaemonSet of a network plug-in", ""},
		"may not":          {[]string{"cilium"}, false, true, "", "you may not patch persistentvolumes"},
		"does not say":     {nil, true, false, "whether this cluster enforces them is not known", "whether you may patch persistentvolumes is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := newServer(t)
			for _, set := range tt.sets {
				s.add(t, "/apis/apps/v1/namespaces/kube-system/daemonsets", thing(set, ""))
			}
			s.before = func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case !tt.known:
					refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden)
				case strings.HasSuffix(r.URL.Path, "selfsubjectaccessreviews"):
					reply(w, http.StatusCreated, map[string]any{"status": map[string]any{"allowed": tt.may}})
				case r.URL.Path == sets:
					list := map[string]any{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
					var items []any
					for _, name := range tt.sets {
						items = append(items, thing(name, ""))
					}
					list["items"] = items
					reply(w, http.StatusOK, list)
				default:
					return false
				}
				return true
			}
			c.host = c.look(t.Context())
			for f, want := range map[cloud.Facility]string{cloud.Policies: tt.policies, cloud.Volumes: tt.volumes} {
				if got := c.Missing(f); (got == "") != (want == "") || !strings.Contains(got, want) {
					t.Errorf("%v: %q, want %q", f, got, want)
				}
			}
		})
	}
}
