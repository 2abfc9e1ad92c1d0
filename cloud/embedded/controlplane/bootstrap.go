package controlplane

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
	schedulingv1 "k8s.io/kubernetes/pkg/apis/scheduling/v1"
	"k8s.io/kubernetes/pkg/controlplane/controller/defaultservicecidr"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

const (
	bootstrapWorkers = 8
	bootstrapRetry   = 5 * time.Millisecond
)

// bootstrap creates the default priority classes and RBAC objects, the work of the slowHooks. It
// starts before the API server is ready and retries until it is.
func bootstrap(ctx context.Context, c clientset.Interface, serviceCIDR string) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(bootstrapWorkers)
	create := func(kind string, f func() error) {
		g.Go(func() error {
			for {
				err := f()
				switch {
				case err == nil, apierrors.IsAlreadyExists(err):
					return nil
				case apierrors.IsInvalid(err), ctx.Err() != nil:
					return fmt.Errorf("create default %s: %w", kind, err)
				}
				time.Sleep(bootstrapRetry)
			}
		})
	}
	opts := metav1.CreateOptions{}
	// The API server makes this one itself, but looks for it again so soon that it does not find it
	// and complains of a conflict in an event.
	create("service range", func() error {
		_, err := c.NetworkingV1().ServiceCIDRs().Create(ctx, &networkingv1.ServiceCIDR{
			ObjectMeta: metav1.ObjectMeta{Name: defaultservicecidr.DefaultServiceCIDRName},
			Spec:       networkingv1.ServiceCIDRSpec{CIDRs: []string{serviceCIDR}},
		}, opts)
		return err
	})
	for _, p := range schedulingv1.SystemPriorityClasses() {
		create("priority class", func() error {
			_, err := c.SchedulingV1().PriorityClasses().Create(ctx, p, opts)
			return err
		})
	}
	rbac := c.RbacV1()
	for _, r := range append(bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles()...) {
		create("cluster role", func() error { _, err := rbac.ClusterRoles().Create(ctx, &r, opts); return err })
	}
	for _, b := range append(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()...) {
		create("cluster role binding", func() error {
			_, err := rbac.ClusterRoleBindings().Create(ctx, &b, opts)
			return err
		})
	}
	for ns, roles := range bootstrappolicy.NamespaceRoles() {
		for _, r := range roles {
			create("role", func() error { _, err := rbac.Roles(ns).Create(ctx, &r, opts); return err })
		}
	}
	for ns, bindings := range bootstrappolicy.NamespaceRoleBindings() {
		for _, b := range bindings {
			create("role binding", func() error { _, err := rbac.RoleBindings(ns).Create(ctx, &b, opts); return err })
		}
	}
	return g.Wait()
}
