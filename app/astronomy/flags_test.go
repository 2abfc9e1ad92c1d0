package astronomy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/aiopslab/aiopslab/app/ask"
	"github.com/aiopslab/aiopslab/app/astronomy"
	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/internal/manifest"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

const flagFile = "/etc/flagd/demo.flagd.json"

// flag sets the default variant of a flag, in the file that flagd watches, and waits until flagd says so.
func (f *front) flag(name, variant string) {
	f.t.Helper()
	pod := f.d.Pod("flagd")
	of := regexp.MustCompile(`(?s)("` + name + `": \{.*?"defaultVariant": )"[^"]*"`)
	text := pod.Read(flagFile)
	changed := of.ReplaceAllString(text, "${1}"+strconv.Quote(variant))
	pod.Write(flagFile, changed)
	f.eventually("flagd has "+name+" "+variant, func() error {
		body, err := f.send(http.MethodPost, "/flagservice/flagd.evaluation.v1.Service/ResolveAll", "{}",
			"Content-Type", "application/json")
		if err != nil {
			return err
		}
		var all struct {
			Flags map[string]struct{ Variant string }
		}
		if err := json.Unmarshal([]byte(body), &all); err != nil || all.Flags[name].Variant != variant {
			return fmt.Errorf("%s: %v", body, err)
		}
		return nil
	})
}

// metric is the sum of a metric of a service.
func (f *front) metric(pod string, port int, name, label string) (sum float64) {
	f.t.Helper()
	body := kittest.Get(f.t, f.d.User(), fmt.Sprintf("http://%s:%d/metrics", pod, port)).Body
	for line := range strings.Lines(body) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), name)
		if !ok || rest == "" || rest[0] != '{' && rest[0] != ' ' || !strings.Contains(rest, label) {
			continue
		}
		v, err := strconv.ParseFloat(rest[strings.LastIndex(rest, " ")+1:], 64)
		if err != nil {
			f.t.Fatal(err)
		}
		sum += v
	}
	return sum
}

// Each flag moves the signal that it is for when it is on, and nothing when it is off.
func TestFlags(t *testing.T) {
	f := deploy(t)
	cpu := func() float64 { return f.metric("ad", service.MetricsPort, "process_cpu_seconds_total", "") }
	memory := func(pod string) float64 {
		return f.metric(pod, service.MetricsPort, "process_resident_memory_bytes", "")
	}
	user := 0
	visitor := f.d.User().Env("browser")
	buy := func() error {
		user++
		_, err := f.buy(fmt.Sprintf("user-%d", user), "HQTGWGPNH4", 1, "USD")
		return err
	}
	get := func(path string) error { _, err := f.get(path); return err }
	slower := func(than time.Duration, do func() error) func() error {
		return func() error {
			begin := time.Now()
			if err := do(); err != nil {
				return err
			}
			if took := time.Since(begin); took > than {
				return fmt.Errorf("it took %v", took)
			}
			return nil
		}
	}
	grew := func(pod string, by float64, do func() error) func() error {
		return func() error {
			before := memory(pod)
			for range 30 {
				if err := do(); err != nil {
					return err
				}
			}
			if more := memory(pod) - before; more > by {
				return fmt.Errorf("%s holds %.0f bytes more", pod, more)
			}
			return nil
		}
	}
	rows := []struct {
		flag, on string
		// well is nil as long as the flag has no effect.
		well func() error
	}{
		{"adFailure", "on", func() error {
			for range 100 {
				if err := get("/api/data?contextKeys=travel"); err != nil {
					return err
				}
			}
			return nil
		}},
		{"adHighCpu", "on", func() error {
			if err := get("/api/data?contextKeys=travel"); err != nil {
				return err
			}
			before, begin := cpu(), time.Now()
			f.eventually("time goes by", func() error {
				if time.Since(begin) < 200*time.Millisecond {
					return fmt.Errorf("not yet")
				}
				return nil
			})
			if used := (cpu() - before) / time.Since(begin).Seconds(); used > 0.5 {
				return fmt.Errorf("ad uses %.1f cores", used)
			}
			return nil
		}},
		{"adManualGc", "on", func() error {
			before := f.metric("ad", service.MetricsPort, "jvm_gc_duration_seconds_count", "")
			if err := get("/api/data?contextKeys=travel"); err != nil {
				return err
			}
			if n := f.metric("ad", service.MetricsPort, "jvm_gc_duration_seconds_count", "") - before; n > 0 {
				return fmt.Errorf("ad collects garbage %.0f times", n)
			}
			return nil
		}},
		{"cartFailure", "on", func() error {
			if err := buy(); err != nil {
				return err
			}
			body, err := f.get(fmt.Sprintf("/api/cart?sessionId=user-%d", user))
			if err == nil && !strings.Contains(body, `"items":[]`) {
				err = fmt.Errorf("the cart afterwards: %s", body)
			}
			return err
		}},
		{"emailMemoryLeak", "10x", grew("email", 1<<20, buy)},
		{"failedReadinessProbe", "on", func() error { return f.healthy("cart:8080") }},
		{"imageSlowLoad", "10sec", slower(8*time.Second, func() error { return astronomy.Look(t.Context(), visitor) })},
		{"kafkaQueueProblems", "on", func() error {
			if err := buy(); err != nil {
				return err
			}
			if lag := f.metric("kafka", 9404, "kafka_consumer_group_lag", `group="fraud-detection"`); lag > 20 {
				return fmt.Errorf("fraud-detection is %.0f behind", lag)
			}
			return nil
		}},
		{"llmInaccurateResponse", "on", func() error { return f.assistant("L9ECAV7KIM") }},
		{"llmRateLimitError", "on", func() error {
			for range 10 {
				if err := f.assistant("HQTGWGPNH4"); err != nil {
					return err
				}
			}
			return nil
		}},
		{"loadGeneratorFloodHomepage", "on", func() error {
			if n := f.flooded(); n > 50 {
				return fmt.Errorf("%.0f requests for the home page in 10 s", n)
			}
			return nil
		}},
		{"paymentFailure", "100%", buy},
		{"paymentFailure", "50%", func() error {
			for range 20 {
				if err := buy(); err != nil {
					return err
				}
			}
			return nil
		}},
		{"paymentUnreachable", "on", buy},
		{"productCatalogFailure", "on", func() error { return get("/api/products/OLJCESPC7Z") }},
		{"recommendationCacheFailure", "on", grew("recommendation", 4<<10, func() error {
			return get("/api/recommendations?productIds=HQTGWGPNH4")
		})},
	}
	flags, tried := flagsOf(t), map[string]bool{}
	for _, tt := range rows {
		tried[tt.flag] = true
		if flags[tt.flag].Variants[tt.on] == nil {
			t.Errorf("%s has no variant %s", tt.flag, tt.on)
			continue
		}
		t.Run(tt.flag+" "+tt.on, func(t *testing.T) {
			f := &front{t, f.d, f.c}
			if err := tt.well(); err != nil {
				t.Fatalf("while it is off: %v", err)
			}
			f.flag(tt.flag, tt.on)
			f.eventually("it shows", func() error {
				if tt.well() == nil {
					return fmt.Errorf("all is well while it is on")
				}
				return nil
			})
			f.flag(tt.flag, "off")
			f.eventually("it is gone", tt.well)
		})
	}
	for name, flag := range flags {
		if !tried[name] {
			t.Errorf("%s is not tried", name)
		}
		if flag.DefaultVariant != "off" || flag.State != "ENABLED" {
			t.Errorf("%s is %s, %s", name, flag.DefaultVariant, flag.State)
		}
	}
}

type flagSpec struct {
	State, DefaultVariant string
	Variants              map[string]any
}

// flagsOf are the flags of the shop's manifests, by name.
func flagsOf(t *testing.T) map[string]flagSpec {
	t.Helper()
	objects, err := manifest.Read(astronomy.App().Manifests)
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Flags map[string]flagSpec }
	for _, u := range objects {
		if u.GetKind() == "ConfigMap" && u.GetName() == "flagd-config" {
			text, _, _ := unstructured.NestedString(u.Object, "data", "demo.flagd.json")
			if err := json.Unmarshal([]byte(text), &file); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(file.Flags) == 0 {
		t.Fatal("there are no flags")
	}
	return file.Flags
}

// assistant asks the assistant about a product, and wants it to say what the reviews say, as users of the mix do.
func (f *front) assistant(product string) error {
	mean, err := f.get("/api/product-reviews-avg-score/" + product)
	if err != nil {
		return err
	}
	says, err := f.send(http.MethodPost, "/api/product-ask-ai-assistant/"+product, `{"question": "Is it any good?"}`)
	if err == nil && !strings.HasPrefix(says, `"5 buyers give it `+strings.Trim(mean, "\"\n")+" of 5 on average.") {
		err = fmt.Errorf("buyers give it %s, and the assistant says %s", mean, says)
	}
	return err
}

// flooded is how often the load generator asked for the home page in the last ten seconds.
func (f *front) flooded() float64 {
	f.t.Helper()
	body, err := f.get("/loadgen/stats/requests")
	if err != nil {
		f.t.Fatal(err)
	}
	var report struct {
		Stats []struct {
			Name    string
			Current float64 `json:"current_rps"`
		}
	}
	if err := json.Unmarshal([]byte(body), &report); err != nil {
		f.t.Fatal(err)
	}
	for _, s := range report.Stats {
		if s.Name == "GET /" {
			return s.Current * 10
		}
	}
	return 0
}

// healthy asks a gRPC server whether it serves, as a readiness probe does.
func (f *front) healthy(address string) error {
	return ask.GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error { return ask.Serves(ctx, c, "") })(
		f.t.Context(), f.d.User().Env("ask").Net.DialContext, address)
}
