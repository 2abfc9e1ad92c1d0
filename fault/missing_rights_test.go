package fault

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/aiopslab/aiopslab/app/flightticket"
)

// Who gives the service back what it lost has solved it, and who gives it the whole cluster has not.
func TestRights(t *testing.T) {
	a := flightticket.App()
	f := bind(t, "missing_rights", a, "owdev-controller", "").(*unauthorised)
	for name, tt := range map[string]struct {
		may  func(verb, resource string) bool
		want string
	}{
		"nothing": {
			func(string, string) bool { return false },
			"the service account owdev-controller of owdev-controller may not list pods",
		},
		"the rule, as it was": {func(verb, resource string) bool { return verb == "list" && resource == "pods" }, ""},
		"to read all but secrets": {
			func(verb, resource string) bool {
				return slices.Contains([]string{"get", "list"}, verb) && resource != "secrets"
			}, "",
		},
		"everything": {
			func(string, string) bool { return true },
			"the service account owdev-controller of owdev-controller may get secrets now, which it never could",
		},
		"every verb": {
			func(_, resource string) bool { return resource == "pods" },
			"the service account owdev-controller of owdev-controller may create pods now, which it never could",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: f.service}}
			d.Spec.Template.Spec.ServiceAccountName = "owdev-controller"
			c := fake.NewClientset(d)
			c.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
				r := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
				r.Status.Allowed = tt.may(r.Spec.ResourceAttributes.Verb, r.Spec.ResourceAttributes.Resource)
				return true, r, nil
			})
			got, err := f.rights(t.Context(), &Env{Client: c, App: a}, d)
			if err != nil || got != tt.want {
				t.Errorf("%q, %v; want %q", got, err, tt.want)
			}
		})
	}
}
