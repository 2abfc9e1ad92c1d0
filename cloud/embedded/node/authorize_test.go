package node

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestAuthorized(t *testing.T) {
	// The API server knows one token, of ann, who may get metrics and nothing else, and lets bob do
	// everything.
	client := fake.NewClientset()
	client.PrependReactor("create", "tokenreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		r := a.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview)
		r.Status = authenticationv1.TokenReviewStatus{Authenticated: r.Spec.Token == "ann's", User: authenticationv1.UserInfo{Username: "ann"}}
		return true, r, nil
	})
	client.PrependReactor("create", "subjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		r := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		attr := r.Spec.ResourceAttributes
		may := r.Spec.User == "ann" && attr.Verb == "get" && attr.Subresource == "metrics" || r.Spec.User == "bob" && attr.Subresource == "proxy"
		r.Status.Allowed = may && attr.Resource == "nodes" && attr.Name == "n1"
		return true, r, nil
	})
	k := testKubelet(t)
	k.node.fleet.cfg.Client = client
	h := k.authorized(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	certificate := func(name string, groups ...string) *tls.ConnectionState {
		return &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{Subject: pkix.Name{CommonName: name, Organization: groups}}}}}
	}
	tests := []struct {
		name, method, path, token string
		tls                       *tls.ConnectionState
		code                      int
		text                      string
	}{
		{"nobody", "GET", "/metrics", "", nil, 401, "Unauthorized"},
		{"a wrong token", "GET", "/metrics", "eve's", nil, 401, "Unauthorized"},
		{"a certificate nobody vouches for", "GET", "/metrics", "", &tls.ConnectionState{}, 401, "Unauthorized"},
		{"a token", "GET", "/metrics/cadvisor", "ann's", nil, 200, ""},
		{"another resource", "GET", "/pods", "ann's", nil, 403, "Forbidden (user=ann, verb=get, resource=nodes, subresource=pods)"},
		{"another verb", "POST", "/exec/shop/web/c", "ann's", nil, 403, "Forbidden (user=ann, verb=create, resource=nodes, subresource=proxy)"},
		{"a certificate", "POST", "/exec/shop/web/c", "", certificate("bob"), 200, ""},
		{"the old permission covers all", "GET", "/stats/summary", "", certificate("bob"), 200, ""},
		{"a master", "DELETE", "/anything", "", certificate("kube-apiserver", "system:masters"), 200, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(tt.method, tt.path, nil)
			r.TLS = tt.tls
			if tt.token != "" {
				r.Header.Set("Authorization", "Bearer "+tt.token)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != tt.code || strings.TrimSpace(w.Body.String()) != tt.text {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}
