package guard

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/aiopslab/aiopslab/test/labtest"
)

// suspicious are words that would tell an agent where it is.
var suspicious = regexp.MustCompile(`(?i)aiopslab|chaos|inject|\blab\b|loadgen|referee|managedFields`)

// innocent are those that any cluster has, and the names of images.
var innocent = regexp.MustCompile(`aiopslab/[\w.-]+:[\w.-]+|preserve-unknown-fields|status\.managedFields`)

// chaosMesh is what Chaos Mesh leaves in a cluster, in small.
const chaosMesh = `
{apiVersion: v1, kind: Namespace, metadata: {name: chaos-mesh}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: chaos-daemon, namespace: chaos-mesh}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: chaos-mesh-chaos-daemon}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: chaos-daemon}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: chaos-daemon, namespace: chaos-mesh}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: podchaos.chaos-mesh.org}
spec:
  group: chaos-mesh.org
  scope: Namespaced
  names: {plural: podchaos, singular: podchaos, kind: PodChaos, listKind: PodChaosList}
  versions:
  - {name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// TestNothingToFind reads everything that the API has, as the agent, and looks for traces of the lab.
func TestNothingToFind(t *testing.T) {
	a := behind(t)
	labApplies(t, "", chaosMesh)
	dyn, err := dynamic.NewForConfig(lab.Config)
	if err != nil {
		t.Fatal(err)
	}
	podChaos := schema.GroupVersionResource{Group: "chaos-mesh.org", Version: "v1alpha1", Resource: "podchaos"}
	labtest.Await(t, func() (any, error) { return dyn.Resource(podChaos).List(t.Context(), metav1.ListOptions{}) })
	kill := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "chaos-mesh.org/v1alpha1", "kind": "PodChaos", "metadata": map[string]any{"name": "kill"}}}
	if _, err := dyn.Resource(podChaos).Namespace(a.ns).Create(t.Context(), kill, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	labtest.Await(t, func() (string, error) {
		// The API server publishes documents of new resources after a while.
		b, err := lab.Client.Discovery().RESTClient().Get().AbsPath("/openapi/v3").DoRaw(t.Context())
		if err == nil && !strings.Contains(string(b), "chaos-mesh.org") {
			err = fmt.Errorf("no document yet")
		}
		return "", err
	})

	look := func(what, doc string) {
		t.Helper()
		doc = innocent.ReplaceAllString(doc, "")
		for _, m := range suspicious.FindAllStringIndex(doc, 5) {
			t.Errorf("%s: ...%s...", what, doc[max(0, m[0]-80):min(len(doc), m[1]+80)])
		}
	}
	_, lists, err := a.client.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, l := range lists {
		for _, r := range l.APIResources {
			look("discovery", l.GroupVersion+"/"+r.Name)
			if !slices.Contains(r.Verbs, "list") {
				continue
			}
			path := "/apis/" + l.GroupVersion + "/" + r.Name
			if l.GroupVersion == "v1" {
				path = "/api/v1/" + r.Name
			}
			for _, accept := range []string{"application/json", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"} {
				b, err := a.client.Discovery().RESTClient().Get().AbsPath(path).SetHeader("Accept", accept).DoRaw(t.Context())
				if err != nil {
					t.Errorf("%s: %v", path, err)
				}
				look(path, string(b))
			}
			count++
		}
	}
	if count < 50 {
		t.Errorf("only %d resources were looked at", count)
	}
	for _, path := range []string{"/", "/apis", "/version", "/openapi/v2", "/openapi/v3", "/api/v1/nodes/node-1/proxy/metrics", "/api/v1/nodes/node-1/proxy/metrics/cadvisor", "/api/v1/nodes/node-1/proxy/stats/summary", "/readyz?verbose"} {
		uri, query, _ := strings.Cut(path, "?")
		req := a.client.Discovery().RESTClient().Get().AbsPath(uri)
		if query != "" {
			req = req.Param(query, "")
		}
		b, err := req.DoRaw(t.Context())
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if !strings.HasPrefix(path, "/openapi/v2") { // Its descriptions tell what managed fields are.
			look(path, string(b))
		} else if strings.Contains(string(b), "PodChaos") {
			t.Errorf("%s tells of PodChaos", path)
		}
	}
	if _, err := a.client.Discovery().OpenAPISchema(); err != nil {
		t.Errorf("the document as protobuf: %v", err)
	}
}
