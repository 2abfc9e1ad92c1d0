package guard

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// An agent that is a guest may take a volume of its application from a claim that is gone. It may give it to nobody
// else, and change nothing that says what becomes of the storage: that is somebody's.
func TestVolumesOfGuests(t *testing.T) {
	const pv = `{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"annotations":{"pv.kubernetes.io/bound-by-controller":"yes"}},
		"spec":{"persistentVolumeReclaimPolicy":"Retain","capacity":{"storage":"1Gi"},"csi":{"driver":"d","volumeHandle":"h"},
		"claimRef":{"namespace":"shop","name":"data","uid":"1"}}}`
	for name, tt := range map[string]struct {
		patch string
		want  string // in the refusal; empty for none
	}{
		"freed":                  {`{"spec":{"claimRef":null}}`, ""},
		"freed, and unbound":     {`{"metadata":{"annotations":{"pv.kubernetes.io/bound-by-controller":null}},"spec":{"claimRef":null}}`, ""},
		"for another claim":      {`{"spec":{"claimRef":{"namespace":"shop","name":"other","uid":null}}}`, ""},
		"for somebody's claim":   {`{"spec":{"claimRef":{"namespace":"bank","name":"data","uid":null}}}`, "anything but the claimRef"},
		"for no namespace":       {`{"spec":{"claimRef":{"namespace":null}}}`, "anything but the claimRef"},
		"deleted with its claim": {`{"spec":{"persistentVolumeReclaimPolicy":"Delete","claimRef":null}}`, "anything but the claimRef"},
		"another volume":         {`{"spec":{"csi":{"volumeHandle":"of-somebody"}}}`, "anything but the claimRef"},
		"a secret for its end":   {`{"metadata":{"annotations":{"volume.kubernetes.io/provisioner-deletion-secret-name":"x"}}}`, "anything but the claimRef"},
		"without a finalizer":    {`{"metadata":{"finalizers":["mine"]}}`, "anything but the claimRef"},
		"a label":                {`{"metadata":{"labels":{"a":"b"}}}`, "anything but the claimRef"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t)
			s.guard.opts.Volumes, s.guard.opts.Namespaces = []string{"pv-1"}, []string{"shop"}
			s.add(t, "/api/v1/persistentvolumes/pv-1", pv)
			s.add(t, "/api/v1/persistentvolumes/pv-2", pv)
			c := kubernetes.NewForConfigOrDie(s.config)
			patch := func(name string) error {
				_, err := c.CoreV1().PersistentVolumes().Patch(t.Context(), name, types.MergePatchType, []byte(tt.patch), metav1.PatchOptions{})
				return err
			}
			err := patch("pv-1")
			_, real := s.methods()
			switch {
			case tt.want == "" && (err != nil || len(real) != 1):
				t.Errorf("refused: %v; requests %v", err, real)
			case tt.want != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tt.want) || len(real) > 0):
				t.Errorf("%v; requests %v", err, real)
			}
			if err := patch("pv-2"); err != nil { // The API server does.
				t.Errorf("the guard judges a volume that is none of the run's: %v", err)
			}
		})
	}
}

// What cannot be read is not allowed.
func TestOnlyClaimOfNothing(t *testing.T) {
	for _, docs := range [][2]string{{"", `{"spec":{}}`}, {`{"spec":{}}`, ""}, {`{}`, `{}`}, {`{"spec":{}}`, `{"spec":{"claimRef":[]}}`}} {
		if onlyClaim([]byte(docs[0]), []byte(docs[1]), []string{"", "shop"}) {
			t.Errorf("%q", docs)
		}
	}
}
