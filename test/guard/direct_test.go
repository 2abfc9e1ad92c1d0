package guard

import (
	"errors"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/aiopslab/aiopslab/test/labtest"
)

var errStillThere = errors.New("what the agent did has no effect yet")

// directClient is the lab's own, by the way that agents cannot redirect.
func directClient(t *testing.T) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(lab.Cloud.DirectConfig())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRedirectedAPI sends an API of the cluster elsewhere. An agent may not, and who can does not blind
// the lab.
func TestRedirectedAPI(t *testing.T) {
	a := newAgent(t)
	labApplies(t, a.ns, deployment)
	elsewhere := `{"spec":{"insecureSkipTLSVerify":true,"service":{"name":"mine","namespace":"` + a.ns + `","port":443}}}`
	for _, args := range [][]string{
		{"patch", "apiservice", "v1.apps", "--type=merge", "-p", elsewhere},
		{"label", "apiservice", "v1.apps", "kube-aggregator.kubernetes.io/automanaged-"},
		{"delete", "apiservice", "v1.apps"},
		{"delete", "--raw", "/apis/apiregistration.k8s.io/v1/apiservices"},
	} {
		if out, err := a.kubectl(t, "", args...); err == nil || !strings.Contains(out, "orbidden") {
			t.Errorf("kubectl %v: %v\n%s", args, err, out)
		}
	}
	ctx, api := t.Context(), lab.Client.Discovery().RESTClient()
	const services = "/apis/apiregistration.k8s.io/v1/apiservices"
	if err := api.Patch(types.MergePatchType).AbsPath(services, "v1.apps").Body([]byte(elsewhere)).Do(ctx).Error(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		// What is sent back is remembered as stale. What is new is not.
		if err := api.Delete().AbsPath(services, "v1.apps").Do(ctx).Error(); err != nil {
			t.Error(err)
		}
		labtest.Await(t, func() (any, error) {
			_, _, err := lab.Client.Discovery().ServerGroupsAndResources()
			return nil, err
		})
		const own = `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.apps","labels":{"kube-aggregator.kubernetes.io/automanaged":"onstart"}},
			"spec":{"group":"apps","version":"v1","groupPriorityMinimum":17800,"versionPriority":15}}`
		if err := api.Post().AbsPath(services).Body([]byte(own)).Do(ctx).Error(); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Error(err)
		}
		labtest.Await(t, func() (any, error) { return a.client.AppsV1().Deployments(a.ns).List(ctx, metav1.ListOptions{}) })
	}()
	labtest.Await(t, func() (any, error) {
		if _, err := lab.Client.AppsV1().Deployments(a.ns).List(ctx, metav1.ListOptions{}); err == nil {
			return nil, errStillThere
		}
		return nil, nil
	})
	direct := directClient(t).AppsV1().Deployments(a.ns)
	list, err := direct.List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != "shop" {
		t.Fatalf("the lab is blind: %+v, %v", list, err)
	}
	if _, err := direct.Patch(ctx, "shop", types.MergePatchType, []byte(`{"metadata":{"labels":{"by":"us"}}}`), metav1.PatchOptions{}); err != nil {
		t.Errorf("the lab cannot write: %v", err)
	}
}

// TestWebhooksOfTheAgent has the agent refuse writes by webhooks.
func TestWebhooksOfTheAgent(t *testing.T) {
	a := newAgent(t)
	ctx := t.Context()
	nowhere := "https://10.96.0.99/"
	fail, none := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
	here := &metav1.LabelSelector{MatchLabels: map[string]string{v1.LabelMetadataName: a.ns}}
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"configmaps"}},
	}}
	second := int32(1)
	client := admissionregistrationv1.WebhookClientConfig{URL: &nowhere}
	registration := a.client.AdmissionregistrationV1()
	mutating, err := registration.MutatingWebhookConfigurations().Create(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "mine-"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "mutate.mine.example", ClientConfig: client, FailurePolicy: &fail, SideEffects: &none, Rules: rules,
			NamespaceSelector: here, AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: &second,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	validating, err := registration.ValidatingWebhookConfigurations().Create(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "mine-"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "validate.mine.example", ClientConfig: client, FailurePolicy: &fail, SideEffects: &none, Rules: rules,
			NamespaceSelector: here, AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: &second,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = registration.MutatingWebhookConfigurations().Delete(ctx, mutating.Name, metav1.DeleteOptions{})
		_ = registration.ValidatingWebhookConfigurations().Delete(ctx, validating.Name, metav1.DeleteOptions{})
	}()
	configMap := func(name string) *v1.ConfigMap { return &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	labtest.Await(t, func() (any, error) {
		_, err := a.client.CoreV1().ConfigMaps(a.ns).Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "agent-"}}, metav1.CreateOptions{})
		if err == nil {
			return nil, errStillThere
		}
		return nil, nil
	})
	if _, err := directClient(t).CoreV1().ConfigMaps(a.ns).Create(ctx, configMap("ours"), metav1.CreateOptions{}); err != nil {
		t.Errorf("the lab cannot write: %v", err)
	}
}
