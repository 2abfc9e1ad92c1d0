package guard

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/aiopslab/aiopslab/guard/policy"
)

// ruled is a guard with a policy in front of a shop.
func ruled(t *testing.T, name string, approve func(context.Context, Question) Answer) (*setup, kubernetes.Interface) {
	t.Helper()
	s := newSetup(t)
	p, err := policy.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	s.guard.opts.Policy, s.guard.opts.Home, s.guard.opts.Approve = p, "shop", approve
	s.add(t, "/api/v1/namespaces/shop/configmaps/x", `{"kind":"ConfigMap","apiVersion":"v1","data":{"a":"1"}}`)
	s.add(t, "/api/v1/namespaces/shop", `{"kind":"Namespace","apiVersion":"v1"}`)
	s.add(t, "/api/v1/namespaces/other/configmaps/x", `{"kind":"ConfigMap","apiVersion":"v1","data":{"a":"1"}}`)
	return s, kubernetes.NewForConfigOrDie(s.config)
}

func change(t *testing.T, c kubernetes.Interface, namespace, name string) error {
	t.Helper()
	_, err := c.CoreV1().ConfigMaps(namespace).Patch(t.Context(), name, types.MergePatchType, []byte(`{"data":{"a":"2"}}`),
		metav1.PatchOptions{})
	return err
}

// dryRuns are the agent's requests that changed nothing, and the others, as methods.
func (s *setup) methods() (dry, real []string) {
	s.fake.mu.Lock()
	defer s.fake.mu.Unlock()
	for _, r := range s.requests {
		if r.URL.Query().Get("dryRun") == "All" {
			dry = append(dry, r.Method)
		} else {
			real = append(real, r.Method)
		}
	}
	return dry, real
}

func TestPolicyDenies(t *testing.T) {
	s, c := ruled(t, "observe", nil)
	err := change(t, c, "shop", "x")
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the policy observe does not allow patch configmaps x in shop, risk low") {
		t.Error(err)
	}
	if _, err := c.CoreV1().ConfigMaps("shop").Get(t.Context(), "x", metav1.GetOptions{}); err != nil {
		t.Errorf("it may read: %v", err)
	}
	if _, real := s.methods(); strings.Join(real, " ") != "GET" {
		t.Errorf("the API server got %v", real)
	}
	e := s.journal()[0]
	if e.Policy == nil || e.Policy.Do != policy.Deny || e.Policy.Risk != policy.Low || e.Status != 403 {
		t.Errorf("%+v, %+v", e, e.Policy)
	}
}

// What a policy wants tried first is sent twice, and only once if the first fails.
func TestPolicyTriesFirst(t *testing.T) {
	s, c := ruled(t, "careful", nil)
	if err := change(t, c, "shop", "x"); err != nil {
		t.Fatal(err)
	}
	if dry, real := s.methods(); len(dry) != 1 || len(real) != 1 {
		t.Errorf("dry runs %v, others %v", dry, real)
	}
	err := change(t, c, "shop", "missing")
	if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "in the dry run; nothing was changed") {
		t.Error(err)
	}
	if dry, real := s.methods(); len(dry) != 2 || len(real) != 1 {
		t.Errorf("dry runs %v, others %v", dry, real)
	}
	if n := len(s.journal()); n != 2 {
		t.Errorf("%d entries", n)
	}
}

func TestDryDelete(t *testing.T) {
	for body, want := range map[string]string{
		`{"kind":"DeleteOptions","propagationPolicy":"Background"}`: `{"dryRun":["All"],"kind":"DeleteOptions","propagationPolicy":"Background"}`,
		`"text"`: "", "null": "", "": "",
	} {
		if got, ok := dryDelete([]byte(body)); string(got) != want || ok != (want != "") {
			t.Errorf("%s: %s, %v", body, got, ok)
		}
	}
}

func TestPolicyAsks(t *testing.T) {
	var asked []Question
	approved := true
	s, c := ruled(t, "careful", func(_ context.Context, q Question) Answer {
		asked = append(asked, q)
		return Answer{Approved: approved, By: "the boss", Why: "not on a Friday"}
	})
	if err := change(t, c, "other", "x"); err != nil {
		t.Fatal(err)
	}
	approved = false
	if err := change(t, c, "other", "x"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "it was not: not on a Friday") {
		t.Error(err)
	}
	if len(asked) != 2 || asked[0].Namespace != "other" || asked[0].Policy != "careful" || asked[0].Request == nil {
		t.Errorf("%+v", asked)
	}
	list := s.journal()
	if p := list[0].Policy; !p.Asked || !p.Approved || p.By != "the boss" {
		t.Errorf("%+v", p)
	}
	if p := list[1].Policy; !p.Asked || p.Approved {
		t.Errorf("%+v", p)
	}
	s.guard.opts.Approve = nil
	if err := change(t, c, "other", "x"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "nobody can be asked here") {
		t.Error(err)
	}
	// What cannot be taken back is not even asked for.
	if err := c.CoreV1().Namespaces().Delete(t.Context(), "shop", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) || len(asked) != 2 {
		t.Error(err)
	}
}
