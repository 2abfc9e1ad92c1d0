package fault

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/aiopslab/aiopslab/app"
	questions "github.com/aiopslab/aiopslab/app/ask"
	"github.com/aiopslab/aiopslab/app/flightticket"
)

// A service that its application scales is well if it answers, through the frontend, with or without pods.
func TestElasticHealth(t *testing.T) {
	a := *flightticket.App()
	a.Services = []app.Service{{
		Name: "drawback", Kind: "service", Elastic: true,
		Ask: questions.Page("/drawback", func(status int, _ []byte) error {
			if status != http.StatusOK {
				return questions.Wrong("%d", status)
			}
			return nil
		}),
	}}
	status, asked := http.StatusOK, ""
	dial := serve(t, func(l net.Listener) {
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })}
		_ = srv.Serve(l)
	})
	e := &Env{Client: fake.NewClientset(), App: &a, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		asked = address
		return dial(ctx, network, address)
	}}
	if symptom, err := health(t.Context(), e, "drawback"); symptom != "" || err != nil || asked != "owdev-controller.openwhisk:3233" {
		t.Errorf("%q, %v; %s was asked", symptom, err, asked)
	}
	status = http.StatusBadGateway
	if symptom, err := health(t.Context(), e, "drawback"); err != nil || !strings.HasPrefix(symptom, "drawback does not answer: it answers 502") {
		t.Errorf("%q, %v", symptom, err)
	}
}

// Faults that are seen by pods do not go to services that may have none.
func TestElasticTargets(t *testing.T) {
	a := flightticket.App()
	for _, k := range Kinds() {
		hits := slices.Contains(k.Targets(a), "drawback")
		if want := k.Name == "wrong_store_address"; hits != want {
			t.Errorf("%s can go to a function: %v", k.Name, hits)
		}
	}
}

// The Role loses a resource, and nothing else.
func TestWithoutRight(t *testing.T) {
	right, wrong, err := withoutRight(flightticket.App(), "owdev-controller", "pods")
	if err != nil {
		t.Fatal(err)
	}
	if n, m := len(right.Object["rules"].([]any)), len(wrong.Object["rules"].([]any)); n != 3 || m != 2 {
		t.Errorf("%d rules, %d without pods", n, m)
	}
	if _, _, err := withoutRight(flightticket.App(), "owdev-controller", "secrets"); err == nil {
		t.Error("a right was taken that there was none of")
	}
	if _, _, err := withoutRight(flightticket.App(), "redis", "pods"); err == nil {
		t.Error("redis has a Role")
	}
}
