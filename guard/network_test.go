package guard

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// overNetwork sends a request as if from a pod.
func (s *setup) overNetwork(method, path, body string, header ...string) (int, string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.RemoteAddr = "10.244.0.7:40000"
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.guard.Network().ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestNetwork(t *testing.T) {
	s := newSetup(t)
	s.add(t, "/api/v1/namespaces/shop/pods/web", `{"kind":"Pod","apiVersion":"v1"}`)
	pods := "/api/v1/namespaces/shop/pods"
	const pod = "Bearer pod"
	// The credentials go on as they are, and decide.
	if code, got := s.overNetwork("GET", pods+"/web", "", "Authorization", pod); code != 200 || strings.Contains(got, "managedFields") {
		t.Errorf("%d %s", code, got)
	}
	for _, header := range [][]string{nil, {"Authorization", "Bearer wrong"}} {
		if code, got := s.overNetwork("GET", pods+"/web", "", header...); code != 401 {
			t.Errorf("with %v: %d %s", header, code, got)
		}
	}
	seen := s.lastOf("Bearer pod")
	for _, name := range []string{"Impersonate-User", "X-Remote-User"} {
		if v := seen.Header.Get(name); v != "" {
			t.Errorf("%s is %s", name, v)
		}
	}
	if code, _ := s.overNetwork("GET", pods, "", "Authorization", pod, "X-Remote-User", "admin", "X-Remote-Group", "system:masters"); code != 200 {
		t.Error(code)
	}
	if seen := s.lastOf(pod); seen.Header.Get("X-Remote-User") != "" || seen.Header.Get("X-Remote-Group") != "" {
		t.Errorf("headers of a proxy are passed on: %v", seen.Header)
	}
	if code, got := s.overNetwork("GET", pods, "", "Authorization", pod, "Impersonate-User", "admin"); code != 403 || !strings.Contains(got, `User \"a-pod\" cannot impersonate`) {
		t.Errorf("%d %s", code, got)
	}
	if code, _ := s.overNetwork("GET", "/metrics", "", "Authorization", pod); code != 403 {
		t.Errorf("metrics: %d", code)
	}
	// A write has its author.
	if code, got := s.overNetwork("POST", "/api/v1/namespaces/shop/configmaps", `{"metadata":{"name":"x"}}`, "Authorization", pod, "Content-Type", "application/json"); code != 201 {
		t.Errorf("%d %s", code, got)
	}
	if e := s.journal()[0]; e.User != "a-pod" || e.From != "10.244.0.7" || e.Name != "x" {
		t.Errorf("%+v", e)
	}
	// The agent's own token is good here, too.
	if code, _ := s.overNetwork("POST", "/api/v1/namespaces/shop/configmaps", `{"metadata":{"name":"y"}}`, "Authorization", "Bearer "+s.guard.token, "Content-Type", "application/json"); code != 201 {
		t.Error(code)
	}
	if e := s.journal()[1]; e.User != "" || e.Name != "y" {
		t.Errorf("%+v", e)
	}
	// The network is open longer than the agent's own door.
	if err := s.guard.Shut(); err != nil {
		t.Error(err)
	}
	if code, _ := s.overNetwork("GET", pods, "", "Authorization", pod); code != 200 {
		t.Errorf("after the agent's turn: %d", code)
	}
	if err := s.guard.Close(); err != nil {
		t.Error(err)
	}
	if code, _ := s.overNetwork("GET", pods, "", "Authorization", pod); code != 503 {
		t.Errorf("after the end: %d", code)
	}
}

func TestKubeletsOverTheNetwork(t *testing.T) {
	s := newSetup(t, Rule{Namespace: "referee"})
	asked := ""
	kubelet := s.guard.Kubelet(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path
		_, _ = io.WriteString(w, "a{namespace=\"shop\"} 1\na{namespace=\"referee\"} 2\n")
	}))
	get := func(method, path string) (int, string) {
		asked = ""
		w := httptest.NewRecorder()
		kubelet.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		return w.Code, w.Body.String()
	}
	if code, got := get("GET", "/metrics/cadvisor"); code != 200 || got != "a{namespace=\"shop\"} 1\n" {
		t.Errorf("%d %s", code, got)
	}
	for _, path := range []string{"/configz", "/pods", "/containerLogs/shop/web/c", "/exec/shop/web/c", "/run/shop/web/c", "/logs/pods/", "/logs/?query=/x", "/metrics/../configz", "/debug/pprof/"} {
		for _, method := range []string{"GET", "POST"} {
			if code, got := get(method, path); code != 403 || asked != "" {
				t.Errorf("%s %s: %d %s, the kubelet was asked for %q", method, path, code, got, asked)
			}
		}
	}
	if code, _ := get("POST", "/metrics"); code != 403 {
		t.Errorf("a POST: %d", code)
	}
}

// TestOwnAPIs: who answers for an API of the API server's own is not the agent's to say.
func TestOwnAPIs(t *testing.T) {
	s := newSetup(t)
	const services = "/apis/apiregistration.k8s.io/v1/apiservices"
	s.add(t, services+"/v1.apps", `{"kind":"APIService","apiVersion":"apiregistration.k8s.io/v1","metadata":{"labels":{"kube-aggregator.kubernetes.io/automanaged":"onstart"}}}`)
	s.add(t, services+"/v1.mine", `{"kind":"APIService","apiVersion":"apiregistration.k8s.io/v1"}`)
	for _, c := range []struct {
		method, path string
		refused      bool
	}{
		{"PATCH", "/v1.apps", true},
		{"PUT", "/v1.apps", true},
		{"DELETE", "/v1.apps", true},
		{"PATCH", "/v1.apps/status", true},
		{"DELETE", "", true},
		{"PATCH", "/v1.mine", false},
		{"DELETE", "/v1.mine", false},
		{"GET", "/v1.apps", false},
	} {
		code, got := s.do(t, c.method, services+c.path, `{"spec":{}}`)
		if (code == http.StatusForbidden) != c.refused {
			t.Errorf("%s %s: %d %s", c.method, c.path, code, got)
		}
	}
	if !s.has(services + "/v1.apps") {
		t.Error("it is gone")
	}
}

// TestNamesAreRemembered: who writes over the network is asked for once, not with each write.
func TestNamesAreRemembered(t *testing.T) {
	s := newSetup(t)
	for range 3 {
		r := httptest.NewRequest("PUT", pods+"/web", strings.NewReader(`{"kind":"Pod","apiVersion":"v1"}`))
		r.Header.Set("Authorization", "Bearer pod")
		s.guard.Network().ServeHTTP(httptest.NewRecorder(), r)
	}
	for _, e := range s.journal() {
		if e.User != "a-pod" {
			t.Errorf("%+v", e)
		}
	}
	if n := s.asked.Load(); n != 1 {
		t.Errorf("asked %d times who it is", n)
	}
	c := s.guard.somebody(httptest.NewRequest("GET", "/", nil))
	if name := c.name(t.Context()); name != anonymous || s.guard.callers.get(c.credentials()) != "" {
		t.Errorf("who has no credentials is %s, and is remembered as %q", name, s.guard.callers.get(c.credentials()))
	}
}
