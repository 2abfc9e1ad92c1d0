package fault

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/internal/term"
)

type rightsParams struct {
	Resource string `yaml:"resource" doc:"the resource that the service may not see any more"`
}

func missingRights() *Kind {
	return Define(Kind{
		Name:  "missing_rights",
		Title: "A service may not see in the API what it works with",
		Description: `A resource is taken out of the Role that the service account of a service has, and the service is started
anew. The API server refuses what it asks for, and it says so in its log. An operator gives the Role its
rule back.`,
		Cause: Cause{term.Virtualization, term.Authentication},
		Targets: func(a *app.App) []string {
			return services(a, func(s app.Service) bool {
				_, _, err := withoutRight(a, s.Name, defaultRight)
				return err == nil
			})
		},
	}, rightsParams{Resource: defaultRight}, func(t Target, p rightsParams) (Fault, error) {
		right, wrong, err := withoutRight(t.App, t.Service, p.Resource)
		if err != nil {
			return nil, fmt.Errorf("missing_rights: parameter \"resource\": %w", err)
		}
		return &unauthorised{t.Service, p.Resource, right, wrong}, nil
	}, func(t Target, p rightsParams) []string {
		right, _, err := withoutRight(t.App, t.Service, p.Resource)
		if err != nil {
			return nil
		}
		rules, err := json.Marshal(right.Object["rules"])
		if err != nil {
			return nil
		}
		return append([]string{
			fmt.Sprintf(`kubectl patch role %s --type=json -p '[{"op": "replace", "path": "/rules", "value": %s}]'`,
				right.GetName(), rules),
		}, restart(t, []string{t.Service})...)
	})
}

// defaultRight is what is taken away if nothing else is said.
const defaultRight = "pods"

// withoutRight is the Role of a service as it is, and without the right to a resource.
func withoutRight(a *app.App, service, resource string) (right, wrong *unstructured.Unstructured, err error) {
	o, err := read(a)
	if err != nil {
		return nil, nil, err
	}
	name := o.role(o.controller(service).template.Spec.ServiceAccountName)
	if name == "" {
		return nil, nil, fmt.Errorf("%s has no Role", service)
	}
	if right, err = o.object(a, "Role", name); err != nil {
		return nil, nil, err
	}
	wrong = right.DeepCopy()
	rules, _, err := unstructured.NestedSlice(wrong.Object, "rules")
	if err != nil {
		return nil, nil, err
	}
	var kept []any
	found := false
	for _, x := range rules {
		rule, _ := x.(map[string]any)
		names, _, _ := unstructured.NestedStringSlice(rule, "resources")
		n := len(names)
		names = slices.DeleteFunc(names, func(r string) bool { return r == resource })
		found = found || len(names) < n
		if len(names) == 0 {
			continue
		}
		if err := unstructured.SetNestedStringSlice(rule, names, "resources"); err != nil {
			return nil, nil, err
		}
		kept = append(kept, rule)
	}
	if !found {
		return nil, nil, fmt.Errorf("the Role %s has no right to %q", name, resource)
	}
	return right, wrong, unstructured.SetNestedSlice(wrong.Object, kept, "rules")
}

// role is the name of the Role that a service account is bound to, or "".
func (p parts) role(account string) string {
	for _, u := range p {
		if u.GetKind() != "RoleBinding" || account == "" {
			continue
		}
		b := typed[rbacv1.RoleBinding](p, "RoleBinding", u.GetName())
		if b.RoleRef.Kind == "Role" && slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool {
			return s.Kind == rbacv1.ServiceAccountKind && s.Name == account
		}) {
			return b.RoleRef.Name
		}
	}
	return ""
}

// unauthorised is a service without a right that it needs.
type unauthorised struct {
	service, resource string
	right, wrong      *unstructured.Unstructured // of the Role
}

func (f *unauthorised) Inject(ctx context.Context, e *Env) error {
	if err := apply(ctx, e, f.wrong); err != nil {
		return err
	}
	return deletePods(ctx, e, f.service)
}

// Manifest asks the API server whether the service may do what it needs, however it comes to that, and nothing that it
// must not, and then the service.
func (f *unauthorised) Manifest(ctx context.Context, e *Env) (string, error) {
	d, err := e.Client.AppsV1().Deployments(e.App.Namespace).Get(ctx, f.service, metav1.GetOptions{})
	if err != nil {
		symptom, healthErr := health(ctx, e, f.service) // It says that there is none.
		if symptom == "" && healthErr == nil {
			healthErr = err
		}
		return symptom, healthErr
	}
	if symptom, err := f.rights(ctx, e, d); symptom != "" || err != nil {
		return symptom, err
	}
	return health(ctx, e, f.service)
}

// tooMuch are rights with which a service could do harm far beyond its own. One that had none of them is not to get
// them with what it lost: whoever makes it master of the cluster has set nothing right.
var tooMuch = []rbacv1.PolicyRule{
	{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}},
	{Verbs: []string{"create"}, APIGroups: []string{""}, Resources: []string{"pods"}},
	{Verbs: []string{"delete"}, APIGroups: []string{"apps"}, Resources: []string{"deployments"}},
	{Verbs: []string{"create"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}},
}

// rights asks the API server whether the service may do what it needs, and no more that matters than it could before.
func (f *unauthorised) rights(ctx context.Context, e *Env, d *appsv1.Deployment) (symptom string, err error) {
	account := cmp.Or(d.Spec.Template.Spec.ServiceAccountName, "default")
	may := func(rule rbacv1.PolicyRule) (bool, error) {
		question := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: fmt.Sprintf("system:serviceaccount:%s:%s", e.App.Namespace, account),
			Groups: []string{
				"system:serviceaccounts", "system:serviceaccounts:" + e.App.Namespace, "system:authenticated",
			},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: e.App.Namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: rule.Resources[0],
			},
		}}
		reviews := e.Client.AuthorizationV1().SubjectAccessReviews()
		review, err := reviews.Create(ctx, question, metav1.CreateOptions{})
		return err == nil && review.Status.Allowed, err
	}
	needed := rbacv1.PolicyRule{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{f.resource}}
	switch ok, err := may(needed); {
	case err != nil:
		return "", err
	case !ok:
		return fmt.Sprintf("the service account %s of %s may not list %s", account, f.service, f.resource), nil
	}
	var had rbacv1.Role
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(f.right.Object, &had); err != nil {
		return "", err
	}
	for _, rule := range tooMuch {
		if covered, _ := validation.Covers(had.Rules, []rbacv1.PolicyRule{rule}); covered {
			continue
		}
		switch ok, err := may(rule); {
		case err != nil:
			return "", err
		case ok:
			return fmt.Sprintf("the service account %s of %s may %s %s now, which it never could", account, f.service,
				rule.Verbs[0], rule.Resources[0]), nil
		}
	}
	return "", nil
}

func (f *unauthorised) Recover(ctx context.Context, e *Env) error {
	return errors.Join(apply(ctx, e, f.right), restartUnready(ctx, e, f.service))
}
