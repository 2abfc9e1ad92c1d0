package guard

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

const (
	tableType = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	pods      = "/api/v1/namespaces/shop/pods"
)

// names are those of the objects in a list, a table or an object.
func names(t *testing.T, doc string) []string {
	t.Helper()
	type object struct{ Metadata struct{ Name string } }
	var d struct {
		object
		Items []object
		Rows  []struct{ Cells []any }
	}
	if err := json.Unmarshal([]byte(doc), &d); err != nil {
		t.Fatalf("%v: %s", err, doc)
	}
	var out []string
	for _, i := range d.Items {
		out = append(out, i.Metadata.Name)
	}
	for _, r := range d.Rows {
		out = append(out, fmt.Sprint(r.Cells[0]))
	}
	if d.Metadata.Name != "" {
		out = append(out, d.Metadata.Name)
	}
	return out
}

func TestWhoMayAsk(t *testing.T) {
	s := newSetup(t)
	s.add(t, pods+"/web", `{"kind":"Pod","apiVersion":"v1"}`)
	if got := names(t, s.get(t, pods+"/web")); !slices.Equal(got, []string{"web"}) {
		t.Errorf("the agent sees %v", got)
	}
	h := s.last().Header
	if h.Get("Authorization") != "Bearer lab" || h.Get("Impersonate-User") != "sre" || h.Get("Impersonate-Group") != "sre-team" {
		t.Errorf("the API server hears from %v", h)
	}
	if !s.has("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/sre-team") {
		t.Error("the agent's group has no rights")
	}
	for _, header := range []string{"Bearer wrong", "Bearer ", "Basic " + s.guard.token, s.guard.token} {
		if code, body := s.do(t, "GET", pods, "", "Authorization", header); code != 401 || !strings.Contains(body, `"reason":"Unauthorized"`) {
			t.Errorf("%q: %d %s", header, code, body)
		}
	}
	config := rest.CopyConfig(s.config)
	config.Impersonate.UserName = "system:admin"
	_, err := kubernetes.NewForConfigOrDie(config).CoreV1().Pods("shop").Get(t.Context(), "web", metav1.GetOptions{})
	if want := `users "system:admin" is forbidden: User "sre" cannot impersonate resource "users" in API group "" at the cluster scope`; !apierrors.IsForbidden(err) || err.Error() != want {
		t.Errorf("as somebody else: %v, want %s", err, want)
	}
	if code, _ := s.do(t, "GET", pods, "", "Impersonate-Extra-X", "y"); code != 403 {
		t.Errorf("as somebody with more: %d", code)
	}
	s.pages["/version"] = "{}"
	s.get(t, "/version", "Impersonate-User", "system:admin", "Impersonate-Group", "system:masters")
	if h := s.last().Header; h.Get("Impersonate-User") != "sre" || h.Get("Impersonate-Group") != "sre-team" {
		t.Errorf("the API server hears from %v", h)
	}
	s.get(t, pods, "X-Remote-User", "system:admin", "X-Forwarded-For", "1.2.3.4")
	if h := s.last().Header; h.Get("X-Remote-User") != "" || h.Get("X-Forwarded-For") != "" {
		t.Errorf("the API server hears %v", h)
	}
}

// hidden fills a fake with what the rules of hidden hide, and what they do not.
func hidden(t *testing.T) *setup {
	s := newSetup(t,
		Rule{Resource: "pods", Labels: "role=loadgen"},
		Rule{Resource: "configmaps", Namespace: "shop", Name: "truth-*"},
		Rule{Source: "referee"},
	)
	s.add(t, pods+"/web", `{"kind":"Pod","apiVersion":"v1","metadata":{"annotations":{"a":"b","chaos-mesh.org/x":"y","chaos-mesh-d1-pod-failure-web-normal-image":"web:v1"}}}`)
	s.add(t, pods+"/load", `{"kind":"Pod","apiVersion":"v1","metadata":{"labels":{"role":"loadgen"}}}`)
	s.add(t, "/api/v1/namespaces/aiopslab-r1/configmaps/plan", `{"kind":"ConfigMap","apiVersion":"v1"}`)
	s.add(t, "/api/v1/namespaces/aiopslab-r1/events/chaos.4", `{"kind":"Event","apiVersion":"v1","involvedObject":{"apiVersion":"v1","kind":"Pod","namespace":"shop","name":"web"}}`)
	s.add(t, "/api/v1/namespaces/chaos-mesh/pods/daemon", `{"kind":"Pod","apiVersion":"v1"}`)
	s.add(t, "/api/v1/namespaces/shop/configmaps/truth-1", `{"kind":"ConfigMap","apiVersion":"v1"}`)
	s.add(t, "/api/v1/namespaces/shop/configmaps/settings", `{"kind":"ConfigMap","apiVersion":"v1"}`)
	for _, ns := range []string{"shop", "chaos-mesh", "chaos-testing", "aiopslab", "aiopslab-r1"} {
		s.add(t, "/api/v1/namespaces/"+ns, `{"kind":"Namespace","apiVersion":"v1"}`)
	}
	event := func(name, rest string) {
		s.add(t, "/api/v1/namespaces/shop/events/"+name, `{"kind":"Event","apiVersion":"v1",`+rest+`}`)
	}
	event("web.1", `"involvedObject":{"apiVersion":"v1","kind":"Pod","namespace":"shop","name":"web","uid":"uid of `+pods+`/web"}`)
	event("load.1", `"involvedObject":{"apiVersion":"v1","kind":"Pod","namespace":"shop","name":"load","uid":"uid of `+pods+`/load"}`)
	event("chaos.1", `"involvedObject":{"apiVersion":"chaos-mesh.org/v1alpha1","kind":"PodChaos","namespace":"shop","name":"x"}`)
	event("chaos.3", `"involvedObject":{"apiVersion":"chaos-mesh.org/v1alpha1","kind":"PodNetworkChaos","namespace":"shop","name":"web"},"source":{"component":"podnetworkchaos"}`)
	event("chaos.2", `"involvedObject":{"apiVersion":"v1","kind":"Namespace","name":"chaos-mesh"}`)
	event("judge.1", `"involvedObject":{"apiVersion":"v1","kind":"Pod","namespace":"shop","name":"web"},"source":{"component":"referee"}`)
	const rbac = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/"
	s.add(t, rbac+"lab", `{"kind":"ClusterRoleBinding","subjects":[{"kind":"User","name":"the-lab"}]}`)
	s.add(t, rbac+"daemon", `{"kind":"ClusterRoleBinding","subjects":[{"kind":"ServiceAccount","namespace":"chaos-mesh","name":"daemon"}]}`)
	s.add(t, rbac+"both", `{"kind":"ClusterRoleBinding","subjects":[{"kind":"User","name":"the-lab"},{"kind":"User","name":"ann"}]}`)
	s.add(t, "/apis/certificates.k8s.io/v1/certificatesigningrequests/lab", `{"kind":"CertificateSigningRequest","spec":{"username":"the-lab"}}`)
	s.add(t, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podchaos.chaos-mesh.org", `{"kind":"CustomResourceDefinition"}`)
	s.add(t, "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.chaos-mesh.org", `{"kind":"APIService"}`)
	s.add(t, "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/inject", `{"kind":"MutatingWebhookConfiguration","webhooks":[{"clientConfig":{"service":{"namespace":"chaos-mesh"}}}]}`)
	s.add(t, "/api/v1/persistentvolumes/pv", `{"kind":"PersistentVolume","spec":{"claimRef":{"namespace":"aiopslab","name":"x"}}}`)
	s.add(t, "/api/v1/nodes/node-1", `{"kind":"Node","apiVersion":"v1","status":{"images":[{"names":["ghcr.io/chaos-mesh/chaos-daemon:1"]},{"names":["nginx"]}]}}`)
	return s
}

func TestHiddenObjects(t *testing.T) {
	s := hidden(t)
	const partialList = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
	forms := map[string]string{
		"JSON": "application/json", "nothing": "", "protobuf first": "application/vnd.kubernetes.protobuf, */*", "YAML": "application/yaml",
		"a table": tableType, "metadata": partialList,
	}
	for _, tt := range []struct {
		path string
		want []string
	}{
		{pods, []string{"web"}},
		{"/api/v1/pods", []string{"web"}},
		{"/api/v1/namespaces/chaos-mesh/pods", nil},
		{"/api/v1/namespaces/aiopslab-r1/configmaps", nil},
		{"/api/v1/configmaps", []string{"settings"}},
		{"/api/v1/namespaces/shop/configmaps", []string{"settings"}},
		{"/api/v1/namespaces", []string{"shop"}},
		{"/api/v1/events", []string{"web.1"}},
		{"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", []string{"both", "sre-team"}},
		{"/apis/certificates.k8s.io/v1/certificatesigningrequests", nil},
		{"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", nil},
		{"/apis/apiregistration.k8s.io/v1/apiservices", nil},
		{"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", nil},
		{"/api/v1/persistentvolumes", nil},
		{"/api/v1/nodes", []string{"node-1"}},
	} {
		for form, accept := range forms {
			for _, include := range []string{"", "?includeObject=None", "?includeObject=Object"} {
				doc := s.get(t, tt.path+include, "Accept", accept)
				if got := names(t, doc); !slices.Equal(got, tt.want) {
					t.Errorf("%s%s as %s: %v, want %v", tt.path, include, form, got, tt.want)
				}
				for _, word := range []string{"managedFields", "chaos-", "remainingItemCount", "protobuf"} {
					if strings.Contains(doc, word) {
						t.Errorf("%s%s as %s says %s: %s", tt.path, include, form, word, doc)
					}
				}
				objects := strings.Contains(doc, `"object"`)
				if form == "a table" && len(tt.want) > 0 && objects == (include == "?includeObject=None") {
					t.Errorf("%s%s: a table that carries objects: %v: %s", tt.path, include, objects, doc)
				}
				if form == "metadata" && (strings.Contains(doc, "involvedObject") || !strings.Contains(doc, `"kind":"PartialObjectMetadataList"`)) {
					t.Errorf("%s as metadata: %s", tt.path, doc)
				}
			}
		}
	}
	client, err := metadata.NewForConfig(s.config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.Resource(gvr("", "v1", "events")).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != "web.1" {
		t.Errorf("the metadata of events: %v, %v", list, err)
	}
}

func TestHiddenObjectsAreAbsent(t *testing.T) {
	s := hidden(t)
	for _, path := range []string{
		"/api/v1/namespaces/aiopslab-r1", "/api/v1/namespaces/aiopslab-r1/configmaps/plan", "/api/v1/namespaces/shop/events/chaos.3",
		pods + "/load", "/api/v1/namespaces/chaos-mesh", "/api/v1/namespaces/chaos-mesh/pods/daemon", "/api/v1/namespaces/shop/configmaps/truth-1",
		"/api/v1/namespaces/shop/events/load.1", "/api/v1/namespaces/shop/events/chaos.1", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podchaos.chaos-mesh.org",
		"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/lab",
	} {
		target, _ := parseTarget("GET", mustURL(path))
		want := string(statusJSON(target.notFound()))
		before := len(s.journal())
		for _, method := range []string{"GET", "PUT", "PATCH", "DELETE"} {
			body := `{"metadata":{}}`
			if method == "GET" {
				body = ""
			}
			for _, accept := range []string{"application/json", tableType} {
				code, got := s.do(t, method, path, body, "Accept", accept)
				if code != 404 || got != want {
					t.Errorf("%s %s: %d %s, want %s", method, path, code, got, want)
				}
			}
		}
		if !s.has(path) {
			t.Errorf("%s was deleted", path)
		}
		for _, e := range s.journal()[before:] {
			if e.Status != 404 || e.Before != nil {
				t.Errorf("%s: %+v", path, e)
			}
		}
	}
	for _, path := range []string{pods + "/load/log", pods + "/load/exec?command=ls", pods + "/http:load:80/proxy/", "/api/v1/namespaces/chaos-mesh/pods/daemon/log", pods + "/load/status"} {
		if code, body := s.do(t, "GET", path, ""); code != 404 || !strings.Contains(body, "not found") {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	code, body := s.do(t, "POST", "/api/v1/namespaces/chaos-mesh/pods", `{"kind":"Pod","metadata":{"name":"mine"}}`)
	if code != 404 || !strings.Contains(body, `namespaces \"chaos-mesh\" not found`) {
		t.Errorf("a new pod in a hidden namespace: %d %s", code, body)
	}
	if code, body := s.do(t, "GET", "/apis/chaos-mesh.org/v1alpha1/namespaces/shop/podchaos", ""); code != 404 || body != "404 page not found\n" {
		t.Errorf("a hidden group: %d %s", code, body)
	}
	s.do(t, "DELETE", "/apis/chaos-mesh.org/v1alpha1/namespaces/shop/podchaos/x", "")
	j := s.journal()
	if e := j[len(j)-1]; e.Group != "chaos-mesh.org" || e.Status != 404 {
		t.Errorf("an attempt on a hidden group: %+v", e)
	}
}

func TestDeleteCollection(t *testing.T) {
	s := hidden(t)
	code, body := s.do(t, "DELETE", pods, "")
	if got := names(t, body); code != 200 || !slices.Equal(got, []string{"web"}) {
		t.Errorf("%d %s", code, body)
	}
	if s.has(pods+"/web") || !s.has(pods+"/load") {
		t.Error("not what is visible was deleted, or something else")
	}
	if h := s.last().Header; h.Get("Impersonate-User") != "sre" {
		t.Errorf("deleted as %v", h)
	}
	if code, body := s.do(t, "DELETE", "/api/v1/namespaces/chaos-mesh/pods", ""); code != 200 || len(names(t, body)) != 0 || !s.has("/api/v1/namespaces/chaos-mesh/pods/daemon") {
		t.Errorf("%d %s", code, body)
	}
	s.add(t, "/api/v1/namespaces/shop/secrets/a", `{"kind":"Secret"}`)
	if code, _ := s.do(t, "DELETE", "/api/v1/namespaces/shop/secrets", ""); code != 200 || s.has("/api/v1/namespaces/shop/secrets/a") {
		t.Errorf("a collection without anything hidden: %d", code)
	}
	j := s.journal()
	if len(j) != 3 || j[0].Verb != "deletecollection" || !slices.Equal(names(t, string(j[0].Before)), []string{"web"}) || strings.Contains(string(j[0].Before), "managedFields") {
		t.Errorf("%+v", j)
	}
	if !slices.Equal(names(t, string(j[2].Before)), []string{"a"}) || j[2].Status != 200 {
		t.Errorf("%+v", j[2])
	}
}

// watching is a watch of the fake, opened through the guard.
type watching struct {
	*bufio.Scanner
	t *testing.T
}

// watch opens a watch that ends with ctx. One fake sends each of its events to one watch alone, whichever takes it: a
// test has one watch.
func (s *setup) watch(ctx context.Context, t *testing.T, path, accept string) watching {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "GET", s.config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	w := watching{bufio.NewScanner(resp.Body), t}
	w.Buffer(nil, 1<<20)
	return w
}

// want reads the next event, which must have the parts and nothing that is hidden.
func (w watching) want(parts ...string) string {
	w.t.Helper()
	if !w.Scan() {
		w.t.Fatal("the watch ended: ", w.Err())
	}
	got := w.Text()
	for _, p := range parts {
		if !strings.Contains(got, p) {
			w.t.Errorf("%s lacks %s", got, p)
		}
	}
	if strings.Contains(got, "managedFields") || strings.Contains(got, "loadgen") {
		w.t.Errorf("%s says too much", got)
	}
	return got
}

func TestWatch(t *testing.T) {
	s := hidden(t)
	event := func(kind, name, labels string) string {
		return fmt.Sprintf(`{"type":%q,"object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"shop",`+
			`"labels":{%s},"managedFields":[{}]}}}`, kind, name, labels)
	}
	const secret = `"role":"loadgen"`
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := s.watch(ctx, t, pods+"?watch=true", "application/vnd.kubernetes.protobuf;stream=watch, application/json")
	s.events <- event("ADDED", "load", secret)
	s.events <- event("ADDED", "web", "")
	w.want(`"ADDED"`, `"web"`)
	s.events <- event("DELETED", "load", secret)
	s.events <- `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"9"}}}`
	w.want("BOOKMARK", `"9"`)
	// What becomes hidden looks deleted, once.
	s.events <- event("MODIFIED", "web", secret)
	w.want(`"DELETED"`, `"web"`)
	s.events <- event("MODIFIED", "web", secret)
	s.events <- event("DELETED", "web", secret)
	s.events <- event("ADDED", "api", "")
	w.want(`"ADDED"`, `"api"`)
	s.events <- `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","code":410,"message":"too old"}}`
	w.want("ERROR", "410")
	cancel()
	for w.Scan() {
		t.Errorf("after the end: %s", w.Text())
	}
}

// TestWatchTable shows that a table's columns come with its first event, even if that is hidden.
func TestWatchTable(t *testing.T) {
	s := hidden(t)
	w := s.watch(t.Context(), t, "/api/v1/namespaces/shop/events?watch=1", tableType)
	row := func(kind, columns, name, component string) string {
		return fmt.Sprintf(`{"type":%q,"object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},`+
			`"columnDefinitions":%s,"rows":[{"cells":[%[3]q],"object":{"kind":"Event","metadata":`+
			`{"name":%[3]q,"namespace":"shop"},"source":{"component":%q}}}]}}`, kind, columns, name, component)
	}
	s.events <- row("ADDED", `[{"name":"Reason"}]`, "one", "referee")
	s.events <- row("ADDED", "[]", "two", "kubelet")
	got := w.want(`"Reason"`, `"two"`, `"PartialObjectMetadata"`)
	if strings.Contains(got, "kubelet") {
		t.Errorf("%s has more than was asked for", got)
	}
	if q := s.last().URL.Query().Get("includeObject"); q != "Object" {
		t.Errorf("the API server was asked for %q", q)
	}
}

func TestDiscovery(t *testing.T) {
	s := newSetup(t)
	s.pages["/apis"] = `{"kind":"APIGroupList","groups":[{"name":"apps"},{"name":"chaos-mesh.org"}]}`
	s.pages["/"] = `{"paths":["/apis/apps","/apis/chaos-mesh.org","/apis/chaos-mesh.org/v1alpha1","/debug/pprof","/healthz"]}`
	s.pages["/openapi/v2"] = `{"paths":{"/apis/apps/v1/":{},"/apis/chaos-mesh.org/v1alpha1/podchaos":{}},"definitions":{"io.k8s.apps":{},"org.chaos-mesh.v1alpha1.PodChaos":{}}}`
	s.pages["/openapi/v3"] = `{"paths":{"apis/apps/v1":{"serverRelativeURL":"x"},"apis/chaos-mesh.org/v1alpha1":{"serverRelativeURL":"y"}}}`
	s.pages["/openapi/v3/apis/chaos-mesh.org/v1alpha1"] = `{}`
	s.pages["/openapi/v3/apis/apps/v1"] = `{"openapi":"3.0.0"}`
	s.pages["/apis/chaos-mesh.org/v1alpha1"] = `{}`
	s.pages["/apis/chaos-mesh.org"] = `{}`
	s.pages["/version"] = `{"major":"1"}`
	for _, p := range []string{"/debug/pprof/cmdline", "/logs/syslog", "/flagz", "/statusz", "/configz", "/metrics", "/metrics/slis"} {
		s.pages[p] = "secret"
	}
	for path, want := range map[string]string{
		"/apis":                    `{"kind":"APIGroupList","groups":[{"name":"apps"}]}`,
		"/apis/":                   "", // The fake does not know it.
		"/":                        `{"paths":["/apis/apps","/healthz"]}`,
		"/openapi/v2":              `{"paths":{"/apis/apps/v1/":{}},"definitions":{"io.k8s.apps":{}}}`,
		"/openapi/v3":              `{"paths":{"apis/apps/v1":{"serverRelativeURL":"x"}}}`,
		"/openapi/v3/apis/apps/v1": `{"openapi":"3.0.0"}`,
		"/version":                 `{"major":"1"}`,
	} {
		if code, got := s.do(t, "GET", path, ""); want != "" && (code != 200 || got != want) {
			t.Errorf("%s: %d %s, want %s", path, code, got, want)
		}
	}
	for _, path := range []string{"/apis/chaos-mesh.org", "/apis/chaos-mesh.org/v1alpha1", "/apis/chaos-mesh.org/v1alpha1/", "/openapi/v3/apis/chaos-mesh.org/v1alpha1", "/nosuch", "//debug/pprof/cmdline", "/version/../debug/pprof/cmdline"} {
		if code, got := s.do(t, "GET", path, ""); code != 404 || got != "404 page not found\n" {
			t.Errorf("%s: %d %s", path, code, got)
		}
	}
	for _, path := range []string{"/debug/pprof/cmdline", "/logs/syslog", "/flagz", "/statusz", "/configz", "/metrics", "/metrics/slis"} {
		if code, got := s.do(t, "GET", path, ""); code != 403 || !strings.Contains(got, `"reason":"Forbidden"`) || !strings.Contains(got, path) {
			t.Errorf("%s: %d %s", path, code, got)
		}
	}
	if code, _ := s.do(t, "POST", "/apis", "{}"); code != 405 {
		t.Errorf("a POST: %d", code)
	}
	s.pages["/apis"] = `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"apps"}},{"metadata":{"name":"chaos-mesh.org"}}]}`
	if got := names(t, s.get(t, "/apis", "Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")); !slices.Equal(got, []string{"apps"}) {
		t.Errorf("aggregated discovery: %v", got)
	}
	if a := s.last().Header.Get("Accept"); !strings.Contains(a, "as=APIGroupDiscoveryList") {
		t.Errorf("the API server was asked for %s", a)
	}
	s.protobufOpenAPI(t)
}

// protobufOpenAPI checks the document as kubectl asks for it.
func (s *setup) protobufOpenAPI(t *testing.T) {
	t.Helper()
	b, err := proto.Marshal(&openapi_v2.Document{
		Swagger:     "2.0",
		Paths:       &openapi_v2.Paths{Path: []*openapi_v2.NamedPathItem{{Name: "/apis/apps/"}, {Name: "/apis/chaos-mesh.org/v1alpha1/x"}}},
		Definitions: &openapi_v2.Definitions{AdditionalProperties: []*openapi_v2.NamedSchema{{Name: "io.k8s.x"}, {Name: "org.chaos-mesh.v1alpha1.X"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	const kind = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	s.pages["/openapi/v2"], s.types["/openapi/v2"] = string(b), kind
	var doc openapi_v2.Document
	if err := proto.Unmarshal([]byte(s.get(t, "/openapi/v2", "Accept", kind)), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Paths.Path) != 1 || len(doc.Definitions.AdditionalProperties) != 1 || doc.Paths.Path[0].Name != "/apis/apps/" {
		t.Errorf("%v", &doc)
	}
}

func TestKubelets(t *testing.T) {
	s := hidden(t)
	const node = "/api/v1/nodes/node-1/proxy"
	s.pages[node+"/stats/summary"] = `{"node":{},"pods":[{"podRef":{"name":"web","namespace":"shop"}},{"podRef":{"name":"daemon","namespace":"chaos-mesh"}}]}`
	s.pages[node+"/metrics/cadvisor"] = "a{namespace=\"shop\"} 1\na{namespace=\"chaos-mesh\"} 1\n"
	s.pages[node+"/pods"], s.pages[node+"/logs/pods/"] = "secret", "secret"
	s.pages[node+"/logs/"] = "started\npod=\"shop/web\" failed\npod=\"shop/load\" started\npod=daemon_chaos-mesh(1)\npods=[\"aiopslab/referee\"]\nimage=\"aiopslab/shop:v1\"\nchaos-mesh.org\n"
	if got, want := s.get(t, node+"/logs/?query=kubelet"), "started\npod=\"shop/web\" failed\nimage=\"aiopslab/shop:v1\"\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := s.get(t, node+"/stats/summary"), `{"node":{},"pods":[{"podRef":{"name":"web","namespace":"shop"}}]}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := s.get(t, node+"/metrics/cadvisor"), "a{namespace=\"shop\"} 1\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, path := range []string{
		node + "/pods", node + "/logs/pods/", node + "/logs/?query=/pods/x/0.log", node + "/logs/?query=kubelet&query=a%5Cb", node + "/logs/../pods", node + "/metrics/../pods", node + "/configz", "/api/v1/nodes/https:node-1:10250/proxy/pods",
	} {
		if code, got := s.do(t, "GET", path, ""); code != 403 || !strings.Contains(got, `"reason":"Forbidden"`) {
			t.Errorf("%s: %d %s", path, code, got)
		}
	}
	if code, _ := s.do(t, "POST", node+"/metrics", "x"); code != 403 {
		t.Errorf("a POST: %d", code)
	}
}

func TestServices(t *testing.T) {
	s := newSetup(t)
	const page = "/api/v1/namespaces/shop/services/web:80/proxy/a/../managedFields"
	s.pages["/api/v1/namespaces/shop/services/web:80/proxy/a/../managedFields"], s.types[page] = `{"metadata":{"managedFields":1}}`, "application/json"
	if got := s.get(t, page); got != s.pages[page] {
		t.Errorf("a service's answer was changed: %s", got)
	}
	if code, _ := s.do(t, "POST", page, "x=y"); code != 200 {
		t.Errorf("a POST: %d", code)
	}
	if j := s.journal(); len(j) != 1 || j[0].Verb != "connect" || j[0].Name != "web" || j[0].Subresource != "proxy" {
		t.Errorf("%+v", j)
	}
}

func TestLimits(t *testing.T) {
	s := newSetup(t)
	s.add(t, pods+"/web", `{"kind":"Pod","apiVersion":"v1"}`)
	code, body := s.do(t, "PUT", pods+"/web", `{"data":"`+strings.Repeat("x", MaxBody)+`"}`)
	if code != 413 || !strings.Contains(body, `"reason":"RequestEntityTooLarge"`) {
		t.Errorf("%d %.200s", code, body)
	}
	if j := s.journal(); len(j) != 1 || j[0].Status != 413 || j[0].Cut["request"] < MaxBody || j[0].Request != nil {
		t.Errorf("%+v", j)
	}
	for _, path := range []string{"/api/v1/namespaces//pods", "/api/v1/namespaces/shop/../chaos-mesh/pods", "/api/v1//pods"} {
		if code, _ := s.do(t, "GET", path, ""); code < 400 {
			t.Errorf("%s: %d", path, code)
		}
	}
	s.fake.Close()
	code, body = s.do(t, "GET", pods, "")
	if code != 503 || !strings.Contains(body, `"reason":"ServiceUnavailable"`) || strings.Contains(body, "127.0.0.1") {
		t.Errorf("without an API server: %d %s", code, body)
	}
	if code, _ := s.do(t, "DELETE", pods+"/web", ""); code != 503 {
		t.Errorf("a write without an API server: %d", code)
	}
	if j := s.journal(); len(j) != 2 || j[1].Status != 503 || j[1].Error == "" {
		t.Errorf("%+v", j)
	}
}

func TestBadAnswers(t *testing.T) {
	s := newSetup(t)
	for _, page := range []string{"{", "", "[1]", `{"kind":"PodList","items":[{]}`, `"x"`} {
		s.pages[pods] = page
		if code, body := s.do(t, "GET", pods, ""); code < 500 || strings.Contains(body, `"items"`) {
			t.Errorf("%q: %d %s", page, code, body)
		}
	}
	s.pages[pods], s.types[pods] = "k8s\x00", protobufType
	if code, body := s.do(t, "GET", pods, ""); code != 503 {
		t.Errorf("protobuf that nobody asked for: %d %s", code, body)
	}
}

// TestClose closes a guard with a watch and an upgraded connection open.
func TestClose(t *testing.T) {
	s := newSetup(t)
	resp, err := s.client.Get(s.config.Host + pods + "?watch=1")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	conn := s.upgrade(t, pods+"/web/exec?command=sh&command=-c&command=ls")
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "HELLO" {
		t.Fatalf("%q, %v", got, err)
	}
	j := s.journal()
	if len(j) != 1 || j[0].Verb != "connect" || j[0].Status != 101 || !slices.Equal(j[0].Command, []string{"sh", "-c", "ls"}) {
		t.Errorf("%+v", j)
	}
	if err := s.guard.Close(); err != nil {
		t.Error(err)
	}
	if _, err := conn.Read(got); err == nil {
		t.Error("the connection outlives the guard")
	}
	if _, err := resp.Body.Read(got); err == nil {
		t.Error("the watch outlives the guard")
	}
}

// upgrade opens a connection to an upstream that upgrades and then shouts back what it hears.
func (s *setup) upgrade(t *testing.T, path string) net.Conn {
	t.Helper()
	s.fake.Config.Handler = shouter{s.fake}
	tlsConfig, err := rest.TLSConfigFor(s.config)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := tlsDial(s.guard.Address(), tlsConfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n", path, s.guard.token)
	resp, err := http.ReadResponse(bufio.NewReader(io.MultiReader(&oneByOne{conn})), nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 101 || resp.Header.Get("Upgrade") != "SPDY/3.1" {
		t.Fatalf("%v", resp)
	}
	return conn
}

func TestStart(t *testing.T) {
	f := newFake(t)
	good := &rest.Config{Host: f.URL, BearerToken: "lab"}
	impersonating := rest.CopyConfig(good)
	impersonating.Impersonate.UserName = "ann"
	for name, o := range map[string]Options{
		"no upstream":             {},
		"impersonates":            {Upstream: impersonating},
		"would hide everything":   {Upstream: good, Hide: []Rule{{}}},
		"make it two rules":       {Upstream: good, Hide: []Rule{{User: "a", Group: "b"}}},
		"syntax error in pattern": {Upstream: good, Hide: []Rule{{Name: "["}}},
		"unable to parse":         {Upstream: good, Hide: []Rule{{Labels: "a in"}}},
		"give the group sre-team": {Upstream: &rest.Config{Host: f.URL, BearerToken: "wrong"}},
		"connection refused":      {Upstream: &rest.Config{Host: "http://127.0.0.1:1"}},
	} {
		if _, err := Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
