package fault

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/app/tidb"
)

// Each fault of a TidbCluster changes one value, and its solution puts that right.
func TestWrongCluster(t *testing.T) {
	for _, tt := range []struct {
		kind, target string
		path         []string
		want         any
		solution     string
	}{
		{
			"overload_replicas", "basic-tidb",
			[]string{"tidb", "replicas"},
			int64(100000),
			`{"op": "replace", "path": "/spec/tidb/replicas", "value": 2}`,
		},
		{
			"non_existent_storage", "basic-pd",
			[]string{"pd", "storageClassName"},
			"ThisIsAStorageClass",
			`{"op": "remove", "path": "/spec/pd/storageClassName"}`,
		},
		{
			"invalid_affinity_toleration", "basic-tidb",
			[]string{"tidb", "tolerations"},
			[]any{map[string]any{
				"key": "test-keys", "operator": "Equal", "value": "test-value", "effect": "TAKE_SOME_EFFECT",
				"tolerationSeconds": int64(0),
			}},
			`{"op": "remove", "path": "/spec/tidb/tolerations"}`,
		},
		{
			"security_context_fault", "basic-tidb",
			[]string{"tidb", "podSecurityContext", "runAsUser"},
			int64(-1),
			`{"op": "replace", "path": "/spec/tidb/podSecurityContext/runAsUser", "value": 1000}`,
		},
		{
			"wrong_update_strategy", "basic-tidb",
			[]string{"tidb", "statefulSetUpdateStrategy"},
			"SomeStrategyForUpdata",
			`{"op": "remove", "path": "/spec/tidb/statefulSetUpdateStrategy"}`,
		},
	} {
		k, err := Find(Kinds(), tt.kind)
		if err != nil {
			t.Fatal(err)
		}
		if list := k.Targets(hotel.App()); len(list) > 0 {
			t.Errorf("%s can go to %v, which no operator makes", tt.kind, list)
		}
		target := Target{App: tidb.App(), Service: tt.target}
		f, err := k.New(target, nil)
		if err != nil {
			t.Fatal(err)
		}
		c := f.(*wrongCluster)
		path := append([]string{"spec"}, tt.path...)
		got, _, _ := unstructured.NestedFieldNoCopy(c.wrong.Object, path...)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.kind, diff)
		}
		// All else is as it was deployed.
		before, ok, _ := unstructured.NestedFieldCopy(c.right.Object, path...)
		if unstructured.RemoveNestedField(c.wrong.Object, path...); ok {
			_ = unstructured.SetNestedField(c.wrong.Object, before, path...)
		}
		if diff := cmp.Diff(c.right.Object, c.wrong.Object); diff != "" {
			t.Errorf("%s changes more: %s", tt.kind, diff)
		}
		if fix, err := k.Fix(target, nil); err != nil || !strings.Contains(fix[0], tt.solution) {
			t.Errorf("%s: %v, %v", tt.kind, fix, err)
		}
		if r := ReachOf(f); !r.Known || !cmp.Equal(r.Applies, []string{"TidbCluster/basic"}) {
			t.Errorf("%s reaches %+v", tt.kind, r)
		}
	}
}

// A cluster is ready if its operator says so.
func TestNotReady(t *testing.T) {
	of := func(conditions ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": conditions}}}
	}
	for want, u := range map[string]*unstructured.Unstructured{
		"":                          of(map[string]any{"type": "Ready", "status": "True"}),
		"it has no condition Ready": of(),
		"PDUnhealthy: PD(s) are not healthy": of(map[string]any{
			"type": "Ready", "status": "False", "reason": "PDUnhealthy", "message": "PD(s) are not healthy",
		}),
	} {
		if got := notReady(u); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
