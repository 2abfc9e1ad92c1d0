package fault

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/aiopslab/aiopslab/app/astronomy"
	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/workload"
)

// Nothing of the file is changed but the variant, and flagd's pods are made anew: by a release, or else by who changes it.
func TestFeatureFlag(t *testing.T) {
	a := astronomy.App()
	l := newLab(t, a, nil)
	old := readyPod(a, flagServer, "n1", time.Hour)
	old.UID = "old"
	if err := l.Tracker().Add(old); err != nil {
		t.Fatal(err)
	}
	deleted := 0
	l.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		deleted++
		again := readyPod(a, flagServer, "n1", 0)
		again.UID = types.UID(fmt.Sprint("new ", deleted))
		return true, nil, l.Tracker().Update(v1.SchemeGroupVersion.WithResource("pods"), again, a.Namespace)
	})
	f := bind(t, "feature_flag", a, "payment", `{flag: paymentFailure, variant: "100%"}`)
	var texts []string
	for _, change := range []func(context.Context, *Env) error{f.Inject, f.Recover} {
		l.patches = nil
		if err := change(t.Context(), l.env); err != nil {
			t.Fatal(err)
		}
		if len(l.patches) != 2 || l.patches[0].name != flagMap || l.patches[1].name != flagServer || l.patches[0].manager != "kubectl" {
			t.Fatalf("patches %v", l.patches)
		}
		texts = append(texts, field(l.patches[0].body, "data", flagFile).(string))
	}
	if deleted != 2 {
		t.Errorf("%d pods were deleted", deleted)
	}
	wrong, right := strings.Split(texts[0], "\n"), strings.Split(texts[1], "\n")
	differ := 0
	for i := range right {
		if wrong[i] != right[i] {
			differ++
			if strings.TrimSpace(wrong[i]) != `"defaultVariant": "100%"` || strings.TrimSpace(right[i]) != `"defaultVariant": "off"` {
				t.Errorf("%q became %q", right[i], wrong[i])
			}
		}
	}
	if differ != 1 || len(wrong) != len(right) {
		t.Errorf("%d lines differ", differ)
	}
	commands, err := featureFlag().Fix(Target{App: a, Service: "payment"}, node(t, `{flag: paymentFailure, variant: "100%"}`))
	if err != nil || len(commands) != 3 || !strings.HasPrefix(commands[0], "kubectl patch configmap flagd-config ") ||
		commands[1] != "kubectl rollout restart deployment/flagd" {
		t.Errorf("%v, %v", commands, err)
	}
}

func TestFeatureFlagErrors(t *testing.T) {
	k := featureFlag()
	for _, tt := range []struct{ service, params, want string }{
		{"ad", "{flag: adFailur}", `there is no flag "adFailur"; did you mean "adFailure"?`},
		{"payment", `{flag: paymentFailure, variant: "99%"}`, `there is no variant "99%"`},
		{"ad", `{flag: adFailure, variant: "off"}`, `adFailure is "off" already; want another variant`},
		{"ad", "{flag: cartFailure}", `cartFailure shows in cart, not in "ad"`},
		{"quote", "{flag: cartFailure}", `feature_flag cannot go to "quote" of astronomy-shop`},
	} {
		_, err := k.New(Target{App: astronomy.App(), Service: tt.service}, node(t, tt.params))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.params, err, tt.want)
		}
	}
	if targets := k.Targets(hotel.App()); len(targets) > 0 {
		t.Errorf("an application without flags can have it in %v", targets)
	}
	all, err := flagsOf(mustRead(t).configMap(flagMap).Data[flagFile])
	if err != nil || len(all) != len(signs) {
		t.Errorf("%d flags, and signs of %d: %v", len(all), len(signs), err)
	}
	if got := knownFlags(all); !slices.Contains(got, "imageSlowLoad") {
		t.Errorf("flags %v", got)
	}
}

func mustRead(t *testing.T) parts {
	t.Helper()
	o, err := read(astronomy.App())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// What users get tells of flags that make services fail or slow.
func TestFlagsShowInTheLoad(t *testing.T) {
	for _, tt := range []struct {
		name    string
		shows   func(context.Context, *Env, *flagged) (string, error)
		sli     workload.SLI
		symptom string
	}{
		{"some fail", fails("buy", 0.5), workload.SLI{Operation: "buy", Requests: 10, Failed: 6}, "6 of 10 requests of users (buy) failed in the last 10s"},
		{"few fail", fails("buy", 0.5), workload.SLI{Operation: "buy", Requests: 10, Failed: 4}, ""},
		{"nobody comes", fails("buy", 0.5), workload.SLI{Operation: "buy"}, ""},
		{"slow", slow("advertise", time.Second), workload.SLI{Operation: "advertise", Requests: 9, P50: 2 * time.Second}, "users (advertise) wait for 2s, half of them longer"},
		{"fast", slow("advertise", time.Second), workload.SLI{Operation: "advertise", Requests: 9, P50: time.Millisecond}, ""},
	} {
		e := &Env{Load: func(context.Context) (*workload.Snapshot, error) {
			return &workload.Snapshot{Windows: []workload.Window{{Name: "10s", Operations: []workload.SLI{tt.sli}}}}, nil
		}}
		if got, err := tt.shows(t.Context(), e, nil); err != nil || got != tt.symptom {
			t.Errorf("%s: %q, %v; want %q", tt.name, got, err, tt.symptom)
		}
	}
}

// What pods say of themselves tells of the others.
func TestFlagsShowInMetrics(t *testing.T) {
	a := astronomy.App()
	l := newLab(t, a, nil)
	for _, s := range []string{"ad", "kafka", "recommendation"} {
		p := readyPod(a, s, "n1", time.Hour)
		p.Status.PodIP = "10.0.0.1"
		if _, err := l.CoreV1().Pods(a.Namespace).Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	page := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, page) }))
	defer server.Close()
	l.env.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	}
	shows := func(flag, text string) string {
		t.Helper()
		page = text
		f := &flagged{sign: signs[flag], seen: map[string][]seen{}}
		symptom, err := f.sign.shows(t.Context(), l.env, f)
		if err != nil {
			t.Fatal(err)
		}
		return symptom
	}
	lag := "kafka_consumer_group_lag{group=%q,topic=\"orders\",partition=\"0\"} %d\n"
	for text, want := range map[string]string{
		fmt.Sprintf(lag, "fraud-detection", 5) + fmt.Sprintf(lag, "accounting", 500): "",
		fmt.Sprintf(lag, "fraud-detection", 400) + "other 1\n":                       "fraud-detection is 400 messages behind",
		"": "",
	} {
		if got := shows("kafkaQueueProblems", text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	if got := shows("adHighCpu", "process_cpu_seconds_total 5\n"); got != "" {
		t.Errorf("an idle processor: %q", got)
	}
	f := &flagged{sign: signs["recommendationCacheFailure"], seen: map[string][]seen{}}
	for i, want := range []bool{false, true, false, true} { // It begins anew after the second.
		page = fmt.Sprintf("process_resident_memory_bytes %d\n", []int{1e6, 9e6, 2e6, 8e6}[i])
		got, err := f.sign.shows(t.Context(), l.env, f)
		if err != nil || (got != "") != want {
			t.Errorf("look %d: %q, %v", i, got, err)
		}
	}
}
