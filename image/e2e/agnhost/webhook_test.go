package agnhost

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/kit/kittest"
)

// startWebhook starts one of the webhooks as the suite does and returns a client for it.
func startWebhook(t *testing.T, command string, args ...string) (*kittest.Machine, *http.Client) {
	t.Helper()
	m := pod(t)
	start(m, append([]string{command, "--tls-cert-file=/localhost.crt", "--tls-private-key-file=/localhost.key", "-v=4", "--port=8444"}, args...)...)
	m.WaitListen(":8444")
	client := m.Client()
	client.Transport.(*http.Transport).TLSClientConfig = insecureTLS
	return m, client
}

func post(t *testing.T, client *http.Client, url, body string) (int, string) {
	t.Helper()
	resp, err := client.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

type verdict struct {
	UID              string
	Allowed          bool
	Patch, PatchType string
	Status           struct{ Message, Reason string }
}

func TestWebhook(t *testing.T) {
	_, client := startWebhook(t, "webhook", "--sidecar-image=registry.k8s.io/pause:3.10")
	allow := verdict{UID: "u1", Allowed: true}
	patch := func(ops string) verdict {
		return verdict{UID: "u1", Allowed: true, PatchType: "JSONPatch", Patch: ops}
	}
	deny := func(message, reason string) verdict {
		v := verdict{UID: "u1"}
		v.Status.Message, v.Status.Reason = message, reason
		return v
	}
	tests := []struct {
		path, operation, resource, object string
		want                              verdict
	}{
		{"/always-deny", "CREATE", "pods", `{}`, deny("this webhook denies all requests", "")},
		{"/pods", "CREATE", "pods", `{"metadata":{"name":"a"}}`, allow},
		{
			"/pods", "CREATE", "pods", `{"metadata":{"labels":{"webhook-e2e-test":"webhook-disallow"}},"spec":{"containers":[{"name":"webhook-disallow"}]}}`,
			deny("the pod contains unwanted label\nthe pod contains unwanted container name", ""),
		},
		{"/pods/attach", "CONNECT", "pods/attach", `{"stdin":true,"container":"container1"}`, deny("attaching to pod 'to-be-attached-pod' is not allowed", "")},
		{"/pods/attach", "CONNECT", "pods/attach", `{"stdin":true,"container":"container2"}`, allow},
		{"/mutating-pods", "CREATE", "pods", `{"metadata":{"name":"other"}}`, allow},
		{
			"/mutating-pods", "CREATE", "pods", `{"metadata":{"name":"webhook-to-be-mutated"}}`,
			patch(`[{"op":"add","path":"/spec/initContainers","value":[{"name":"webhook-added-init-container","image":"webhook-added-image","resources":{}}]}]`),
		},
		{
			"/mutating-pods-sidecar", "CREATE", "pods", `{"metadata":{"name":"p"}}`,
			patch(`[{"op":"add","path":"/spec/containers/-","value":{"name":"webhook-added-sidecar","image":"registry.k8s.io/pause:3.10","resources":{}}}]`),
		},
		{"/mutating-pods-sidecar", "CREATE", "pods", `{"spec":{"containers":[{"name":"webhook-added-sidecar"}]}}`, allow},
		{"/configmaps", "CREATE", "configmaps", `{"data":{"webhook-e2e-test":"webhook-disallow"}}`, deny("the configmap contains unwanted key and value", "")},
		{"/configmaps", "UPDATE", "configmaps", `{"data":{"webhook-e2e-test":"webhook-disallow"}}`, deny("the configmap contains unwanted key and value", "")},
		{"/configmaps", "DELETE", "configmaps", `{"data":{"webhook-e2e-test":"webhook-nondeletable"}}`, deny("the configmap cannot be deleted because it contains unwanted key and value", "")},
		{"/configmaps", "CREATE", "configmaps", `{"data":{"webhook-e2e-test":"webhook-nondeletable"}}`, allow},
		{"/mutating-configmaps", "CREATE", "configmaps", `{"data":{"mutation-start":"yes"}}`, patch(`[{"op":"add","path":"/data/mutation-stage-1","value":"yes"}]`)},
		{"/mutating-configmaps", "CREATE", "configmaps", `{"data":{"mutation-start":"yes","mutation-stage-1":"yes"}}`, patch(`[{"op":"add","path":"/data/mutation-stage-2","value":"yes"}]`)},
		{"/custom-resource", "CREATE", "e2e-test-webhooks", `{"data":{"webhook-e2e-test":"webhook-disallow"}}`, deny("the custom resource contains unwanted data", "")},
		{"/custom-resource", "DELETE", "e2e-test-webhooks", `{"data":{"webhook-e2e-test":"webhook-nondeletable"}}`, deny("the custom resource cannot be deleted because it contains unwanted key and value", "")},
		{"/mutating-custom-resource", "CREATE", "e2e-test-webhooks", `{"data":{"mutation-start":"yes"}}`, patch(`[{"op":"add","path":"/data/mutation-stage-1","value":"yes"}]`)},
		{"/crd", "CREATE", "customresourcedefinitions", `{"metadata":{"labels":{"webhook-e2e-test":"webhook-disallow"}}}`, deny("the crd contains unwanted label", "")},
		{"/crd", "CREATE", "customresourcedefinitions", `{"metadata":{}}`, allow},
		{"/add-label", "CREATE", "configmaps", `{"metadata":{},"data":{"n":1}}`, patch(`[{"op":"add","path":"/metadata/labels","value":{"added-label":"yes"}}]`)},
		{"/add-label", "CREATE", "configmaps", `{"metadata":{"labels":{"a":"b"}}}`, patch(`[{"op":"add","path":"/metadata/labels/added-label","value":"yes"}]`)},
		{"/add-label", "CREATE", "configmaps", `{"metadata":{"labels":{"added-label":"no"}}}`, patch(`[{"op":"add","path":"/metadata/labels/added-label","value":"yes"}]`)},
		{"/add-label", "CREATE", "configmaps", `{"metadata":{"labels":{"added-label":"yes"}}}`, allow},
	}
	for i, tt := range tests {
		group := ""
		if tt.path == "/crd" {
			group = "apiextensions.k8s.io"
		}
		resource, sub, _ := strings.Cut(tt.resource, "/")
		object := "object"
		if tt.operation == "DELETE" {
			object = "oldObject"
		}
		// Both versions of the review are in use.
		version := []string{"admission.k8s.io/v1", "admission.k8s.io/v1beta1"}[i%2]
		body := fmt.Sprintf(`{"apiVersion":%q,"kind":"AdmissionReview","request":{"uid":"u1","name":"to-be-attached-pod","operation":%q,"resource":{"group":%q,"version":"v1","resource":%q},"subResource":%q,%q:%s}}`,
			version, tt.operation, group, resource, sub, object, tt.object)
		code, answer := post(t, client, "https://localhost:8444"+tt.path, body)
		var got struct {
			APIVersion, Kind string
			Response         struct {
				verdict
				Patch []byte
			}
		}
		if err := json.Unmarshal([]byte(answer), &got); err != nil || code != 200 {
			t.Fatalf("%s: %d %s", tt.path, code, answer)
		}
		v := got.Response.verdict
		v.Patch = string(got.Response.Patch)
		if diff := cmp.Diff(tt.want, v); diff != "" || got.APIVersion != version || got.Kind != "AdmissionReview" {
			t.Errorf("%s %s: %s %s (-want +got):\n%s", tt.path, tt.object, got.APIVersion, got.Kind, diff)
		}
	}
}

func TestWebhookRefusesNonsense(t *testing.T) {
	_, client := startWebhook(t, "webhook")
	for _, body := range []string{`nonsense`, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`} {
		code, answer := post(t, client, "https://localhost:8444/pods", body)
		if code != 400 || !strings.HasPrefix(answer, "this is no AdmissionReview") {
			t.Errorf("%s: %d %s", body, code, answer)
		}
	}
	if code, body := post(t, client, "https://localhost:8444/readyz", ""); code != 200 {
		t.Errorf("/readyz: %d %s", code, body)
	}
}

// A webhook that is slow, and one that never answers: the API server's timeouts are tested by it.
func TestWebhookTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := startWebhook(t, "webhook")
		review := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","resource":{"version":"v1","resource":"pods"},"object":{"metadata":{"labels":{"webhook-e2e-test":"wait-forever"}}}}}`
		began := time.Now()
		if _, body := post(t, client, "https://localhost:8444/always-allow-delay-5s", review); !strings.Contains(body, `"allowed":true`) {
			t.Error(body)
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("it took %v", took)
		}
		client.Timeout = 10 * time.Second
		if resp, err := client.Post("https://localhost:8444/pods", "application/json", strings.NewReader(review)); err == nil {
			resp.Body.Close()
			t.Error("it answered")
		}
	})
}

func TestWebhookWithoutCertificate(t *testing.T) {
	if _, stderr, code := output(pod(t), "webhook", "--tls-cert-file=/none"); code != 1 || !strings.Contains(stderr, "open /none: no such file or directory") {
		t.Errorf("exit %d %s", code, stderr)
	}
}

func TestConversionWebhook(t *testing.T) {
	_, client := startWebhook(t, "crd-conversion-webhook")
	tests := []struct{ name, to, objects, want string }{
		{
			"to v2", "stable.example.com/v2", `[{"apiVersion":"stable.example.com/v1","kind":"E2e","metadata":{"generation":12345678901234567890},"hostPort":"local:1234"}]`,
			`{"convertedObjects":[{"apiVersion":"stable.example.com/v2","host":"local","kind":"E2e","metadata":{"generation":12345678901234567890},"port":"1234"}],"result":{"metadata":{},"status":"Success"},"uid":"u1"}`,
		},
		{
			"to v1", "stable.example.com/v1", `[{"apiVersion":"stable.example.com/v2","host":"local","port":"1234"},{"apiVersion":"stable.example.com/v2"}]`,
			`{"convertedObjects":[{"apiVersion":"stable.example.com/v1","hostPort":"local:1234"},{"apiVersion":"stable.example.com/v1"}],"result":{"metadata":{},"status":"Success"},"uid":"u1"}`,
		},
		{
			"unknown version", "stable.example.com/v3", `[{"apiVersion":"stable.example.com/v2"}]`,
			`{"convertedObjects":null,"result":{"message":"there is no conversion from \"stable.example.com/v2\" to \"stable.example.com/v3\"","metadata":{},"status":"Failure"},"uid":"u1"}`,
		},
		{
			"bad value", "stable.example.com/v2", `[{"apiVersion":"stable.example.com/v1","hostPort":"local"}]`,
			"{\"convertedObjects\":null,\"result\":{\"message\":\"hostPort is not HOST:PORT\",\"metadata\":{},\"status\":\"Failure\"},\"uid\":\"u1\"}",
		},
	}
	for _, tt := range tests {
		body := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u1","desiredAPIVersion":%q,"objects":%s}}`, tt.to, tt.objects)
		code, answer := post(t, client, "https://localhost:8444/crdconvert", body)
		var got struct{ Response json.RawMessage }
		if err := json.Unmarshal([]byte(answer), &got); err != nil || code != 200 {
			t.Fatalf("%s: %d %s", tt.name, code, answer)
		}
		if diff := cmp.Diff(canonical(t, tt.want), canonical(t, string(got.Response))); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	if code, body := post(t, client, "https://localhost:8444/crdconvert", "{}"); code != 400 {
		t.Errorf("no review: %d %s", code, body)
	}
}

// canonical sorts the keys of a document and leaves its numbers as they are.
func canonical(t *testing.T, document string) string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(document))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
