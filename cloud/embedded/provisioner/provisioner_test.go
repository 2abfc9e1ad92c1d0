package provisioner

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// disks remembers what was removed. Removing fails as long as it is full of errors.
type disks struct {
	mu      sync.Mutex
	removed []string
	failing int
}

func (d *disks) RemoveDir(node, dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failing > 0 {
		d.failing--
		return errors.New("the disk is busy")
	}
	d.removed = append(d.removed, node+":"+dir)
	return nil
}

// start runs a provisioner over objects until the test ends, and lets it settle.
func start(t *testing.T, d *disks, objects ...runtime.Object) (*fake.Clientset, *record.FakeRecorder) {
	t.Helper()
	c := fake.NewClientset(append(objects, StorageClass())...)
	f := informers.NewSharedInformerFactory(c, 0)
	events := record.NewFakeRecorder(64)
	p, err := New(c, f, d, events)
	if err != nil {
		t.Fatal(err)
	}
	f.StartWithContext(t.Context())
	f.WaitForCacheSync(t.Context().Done())
	go p.Run(t.Context())
	synctest.Wait()
	return c, events
}

func claim(change func(*v1.PersistentVolumeClaim)) *v1.PersistentVolumeClaim {
	c := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "u1", Annotations: map[string]string{provisionerAnnotation: Name, selectedNode: "n2"}},
		Spec: v1.PersistentVolumeClaimSpec{
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, StorageClassName: ptr.To(ClassName),
			Resources: v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	if change != nil {
		change(c)
	}
	return c
}

func drain(events *record.FakeRecorder) (list []string) {
	for {
		select {
		case e := <-events.Events:
			list = append(list, e)
		default:
			return list
		}
	}
}

func TestProvision(t *testing.T) {
	immediate := StorageClass()
	immediate.Name, immediate.VolumeBindingMode = "now", ptr.To(storagev1.VolumeBindingImmediate)
	immediate.ReclaimPolicy = ptr.To(v1.PersistentVolumeReclaimRetain)
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	tests := []struct {
		name   string
		change func(*v1.PersistentVolumeClaim)
		node   string // where the volume is, or none
		event  string // the last one
	}{
		{"where the pod is", nil, "n2", "Normal ProvisioningSucceeded Successfully provisioned volume pvc-u1"},
		{"no pod yet", func(c *v1.PersistentVolumeClaim) { delete(c.Annotations, selectedNode) }, "", ""},
		{"anywhere", func(c *v1.PersistentVolumeClaim) {
			delete(c.Annotations, selectedNode)
			c.Spec.StorageClassName = ptr.To("now")
		}, "n1", "Normal ProvisioningSucceeded Successfully provisioned volume pvc-u1"},
		{"somebody else's", func(c *v1.PersistentVolumeClaim) { c.Annotations[provisionerAnnotation] = "ebs.csi.aws.com" }, "", ""},
		{"bound", func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv" }, "", ""},
		{"going", func(c *v1.PersistentVolumeClaim) {
			c.DeletionTimestamp, c.Finalizers = ptr.To(metav1.Now()), []string{"kubernetes.io/pvc-protection"}
		}, "", ""},
		{"shared", func(c *v1.PersistentVolumeClaim) {
			c.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteMany}
		}, "", `Warning ProvisioningFailed failed to provision volume with StorageClass "standard": NodePath only supports ReadWriteOnce and ReadWriteOncePod (1.22+) access modes`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, events := start(t, &disks{}, claim(tt.change), immediate, node)
				all := drain(events)
				if tt.event == "" && len(all) > 0 || tt.event != "" && (len(all) == 0 || all[len(all)-1] != tt.event) {
					t.Errorf("events %q", all)
				}
				pv, err := c.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-u1", metav1.GetOptions{})
				if tt.node == "" {
					if !apierrors.IsNotFound(err) {
						t.Errorf("%v, %v", pv, err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if got := pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values; got[0] != tt.node {
					t.Errorf("on %v", got)
				}
			})
		})
	}
}

func TestVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := start(t, &disks{}, claim(nil))
		pv, err := c.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-u1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if pv.Spec.HostPath.Path != root+"/pvc-u1_shop_data" || pv.Spec.ClaimRef.UID != "u1" || pv.Annotations[provisionedBy] != Name {
			t.Errorf("%+v", pv)
		}
		if q := pv.Spec.Capacity[v1.ResourceStorage]; q.String() != "1Gi" || pv.Spec.PersistentVolumeReclaimPolicy != v1.PersistentVolumeReclaimDelete {
			t.Errorf("%+v", pv.Spec)
		}
	})
}

func TestReclaim(t *testing.T) {
	volume := func(change func(*v1.PersistentVolume)) *v1.PersistentVolume {
		pv := &v1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pv", UID: "u9", Annotations: map[string]string{provisionedBy: Name}},
			Spec: v1.PersistentVolumeSpec{
				PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimDelete,
				PersistentVolumeSource:        v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: root + "/pv"}},
				NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
					MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn, Values: []string{"n2"}}},
				}}}},
			},
			Status: v1.PersistentVolumeStatus{Phase: v1.VolumeReleased},
		}
		if change != nil {
			change(pv)
		}
		return pv
	}
	tests := []struct {
		name    string
		change  func(*v1.PersistentVolume)
		removed bool
	}{
		{"released", nil, true},
		{"bound", func(pv *v1.PersistentVolume) { pv.Status.Phase = v1.VolumeBound }, false},
		{"kept", func(pv *v1.PersistentVolume) {
			pv.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRetain
		}, false},
		{"somebody else's", func(pv *v1.PersistentVolume) { pv.Annotations = nil }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &disks{failing: 3} // It is tried again.
				c, _ := start(t, d, volume(tt.change))
				time.Sleep(time.Minute)
				synctest.Wait()
				_, err := c.CoreV1().PersistentVolumes().Get(t.Context(), "pv", metav1.GetOptions{})
				if apierrors.IsNotFound(err) != tt.removed {
					t.Errorf("%v", err)
				}
				var want []string
				if tt.removed {
					want = []string{"n2:" + root + "/pv"}
				}
				if diff := cmp.Diff(want, d.removed); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestStorageClassIsTheDefault(t *testing.T) {
	c := StorageClass()
	if c.Annotations["storageclass.kubernetes.io/is-default-class"] != "true" || !strings.Contains(c.Provisioner, "local-path") {
		t.Errorf("%+v", c)
	}
}
