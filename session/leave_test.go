package session

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/record"
)

// store is an API server that keeps what it is given, and gives the lab all rights.
type store struct {
	mu      sync.Mutex
	objects map[string]string // by path
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/selfsubjectreviews"):
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1","status":{"userInfo":{"username":"lab"}}}`)
	case strings.HasSuffix(path, "/subjectaccessreviews"):
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`)
	case r.Method == http.MethodPost: // As it came, which may be no JSON.
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
	case s.objects[path] == "":
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404})
	case r.Method == http.MethodPut:
		s.objects[path] = string(body)
		fallthrough
	default:
		_, _ = io.WriteString(w, s.objects[path])
	}
}

// An agent that submits with an open transaction is judged by the system as it was before: when its access is closed,
// before anybody looks, what it wrote is taken back, and the record says so.
func TestSubmitWithOpenTransaction(t *testing.T) {
	const path, was = "/api/v1/namespaces/shop/configmaps/x", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x","namespace":"shop","uid":"1"},"data":{"a":"1"}}`
	s := &store{objects: map[string]string{path: was}}
	api := httptest.NewServer(s)
	defer api.Close()
	var told []any
	l := &Local{tell: func(_ string, data any) { told = append(told, data) }}
	g, err := guard.Start(t.Context(), guard.Options{
		Upstream:    &rest.Config{Host: api.URL},
		Transaction: func(e guard.Transaction) { l.tell(record.TransactionEvent, e) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	l.guard, l.way = g, &access{guard: g, monitor: startMonitor(g.Requests, func() time.Duration { return 0 })}
	if _, err := g.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := g.Kubeconfig("shop")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	req, err := http.NewRequest(http.MethodPut, config.Host+path, strings.NewReader(strings.Replace(was, `"a":"1"`, `"a":"2"`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(s.objects[path], `"a":"2"`) {
		t.Fatalf("%v, %v", resp, err)
	}
	resp.Body.Close()
	if err := l.Dismiss(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(s.objects[path], `"a":"1"`) {
		t.Errorf("it is judged with %s", s.objects[path])
	}
	left, said := false, false
	for _, d := range told {
		switch d := d.(type) {
		case guard.Transaction:
			left = left || d.Left && d.Aborted && d.Writes == 1
		case record.Phase:
			said = said || d.Name == "the agent has left transaction 1 open: it is aborted"
		}
	}
	if !left || !said {
		t.Errorf("the record has %+v", told)
	}
	if _, err := client.Get(config.Host + path); err == nil {
		t.Error("the agent still has access")
	}
}
