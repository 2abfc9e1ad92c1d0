package observe

import (
	"context"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	_ "github.com/prometheus/prometheus/discovery/kubernetes" // The configuration has kubernetes_sd_configs.
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/aiopslab/aiopslab/internal/manifest"
)

// configFiles returns the files of Prometheus' ConfigMap.
func configFiles(t *testing.T) map[string]string {
	t.Helper()
	objects, err := manifest.Read(Manifests())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(objects, func(u *unstructured.Unstructured) bool { return u.GetKind() == "ConfigMap" })
	files, _, err := unstructured.NestedStringMap(objects[i].Object, "data")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The manifests are what the API has, with no field misspelt.
func TestManifests(t *testing.T) {
	objects, err := manifest.Read(Manifests())
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range objects {
		o, err := scheme.Scheme.New(u.GroupVersionKind())
		if err != nil {
			t.Fatal(err)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, o, true); err != nil {
			t.Errorf("%s %s: %v", u.GetKind(), u.GetName(), err)
		}
	}
}

func TestPrometheusConfig(t *testing.T) {
	c, err := config.Load(configFiles(t)["prometheus.yml"], slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	var jobs []string
	for _, j := range c.ScrapeConfigs {
		jobs = append(jobs, j.JobName)
	}
	if want := []string{"prometheus", "kubernetes-nodes", "kubernetes-cadvisor", "kube-state-metrics", "kubernetes-pods"}; !slices.Equal(jobs, want) {
		t.Errorf("jobs %v, want %v", jobs, want)
	}
}

// kube-state-metrics must not be told to leave out what a rule reads.
func TestDenylist(t *testing.T) {
	objects, err := manifest.Read(Manifests())
	if err != nil {
		t.Fatal(err)
	}
	var denied []*regexp.Regexp
	for _, u := range objects {
		containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
		for _, c := range containers {
			args, _, _ := unstructured.NestedStringSlice(c.(map[string]any), "args")
			for _, a := range args {
				if list, ok := strings.CutPrefix(a, "--metric-denylist="); ok {
					for _, d := range strings.Split(list, ",") {
						denied = append(denied, regexp.MustCompile(d))
					}
				}
			}
		}
	}
	files := configFiles(t)
	used := regexp.MustCompile(`kube_[a-z_]+`).FindAllString(files["alerting_rules.yml"]+files["recording_rules.yml"], -1)
	if len(denied) == 0 || len(used) == 0 {
		t.Fatal("nothing to check")
	}
	for _, m := range used {
		for _, d := range denied {
			if d.MatchString(m) { // as kube-state-metrics does, not anchored
				t.Errorf("%s is denied by %s", m, d)
			}
		}
	}
}

// The alerting rules can be read with the queries of the recording rules in them.
func TestInliner(t *testing.T) {
	p := parser.NewParser(parser.Options{})
	var result promv1.RulesResult
	var queries []string
	for _, file := range []string{"recording_rules.yml", "alerting_rules.yml"} {
		groups, errs := rulefmt.Parse([]byte(configFiles(t)[file]), false, model.UTF8Validation, p, slog.Default())
		if errs != nil {
			t.Fatal(errs)
		}
		for _, g := range groups.Groups {
			var list promv1.Rules
			for _, r := range g.Rules {
				if r.Record != "" {
					list = append(list, promv1.RecordingRule{Name: r.Record, Query: r.Expr})
				} else {
					queries = append(queries, r.Expr)
				}
			}
			result.Groups = append(result.Groups, promv1.RuleGroup{Rules: list})
		}
	}
	inline, changed := inliner(result), 0
	for _, q := range queries {
		got := inline.Replace(q)
		if _, err := p.ParseExpr(got); err != nil {
			t.Errorf("%s: %v", got, err)
		}
		if got != q {
			changed++
		}
	}
	if changed < 6 {
		t.Errorf("%d of %d alerts read recording rules", changed, len(queries))
	}
}

// ruleLoader has rule files in memory.
type ruleLoader struct {
	files  map[string]string
	parser parser.Parser
}

func (l ruleLoader) Load(name string, ignore bool, names model.ValidationScheme) (*rulefmt.RuleGroups, []error) {
	return rulefmt.Parse([]byte(l.files[name]), ignore, names, l.parser, slog.Default())
}
func (l ruleLoader) Parse(q string) (parser.Expr, error) { return l.parser.ParseExpr(q) }

// Each symptom leads to its alert, and only to that.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		name string
		load string // series, with a value every 5 seconds
		at   time.Duration
		want []string // name, state and the label given
		by   model.LabelName
	}{
		{"crash loop", `kube_pod_container_status_waiting_reason{namespace="n",pod="p",container="c",reason="CrashLoopBackOff"} 0 1x20`, 40 * time.Second, []string{"PodStatusError firing CrashLoopBackOff"}, "reason"},
		// A container that crashes at once is seen waiting only now and then.
		{"crash loop that flaps", `kube_pod_container_status_waiting_reason{namespace="n",pod="p",container="c",reason="CrashLoopBackOff"} 1 _ _ _ 1 _ _ _ 1 _ _ _ 1`, 50 * time.Second, []string{"PodStatusError firing CrashLoopBackOff"}, "reason"},
		{"container starts", `kube_pod_container_status_waiting_reason{namespace="n",pod="p",container="c",reason="ContainerCreating"} 1x20`, 40 * time.Second, nil, ""},
		{"image", `kube_pod_container_status_waiting_reason{namespace="n",pod="p",container="c",reason="ImagePullBackOff"} 1x20`, 5 * time.Second, []string{"PodStatusError pending p"}, "pod"},
		{"failed", `kube_pod_status_phase{namespace="n",pod="p",phase="Failed"} 1x20`, 20 * time.Second, []string{"FailedPods firing p"}, "pod"},
		{"pending", `kube_pod_status_phase{namespace="n",pod="p",phase="Pending"} 1x20`, 10 * time.Second, []string{"PendingPods pending p"}, "pod"},
		{"pending for long", `kube_pod_status_phase{namespace="n",pod="p",phase="Pending"} 1x20`, 40 * time.Second, []string{"PendingPods firing p"}, "pod"},
		{"unschedulable", `kube_pod_status_unschedulable{namespace="n",pod="p"} 1x20`, 20 * time.Second, []string{"PodSchedulingFailure firing p"}, "pod"},
		{"not ready", "kube_pod_status_ready{namespace=\"n\",pod=\"p\",condition=\"false\"} 1x40\nkube_pod_status_phase{namespace=\"n\",pod=\"p\",phase=\"Running\"} 1x40", 90 * time.Second, []string{"KubePodNotReady firing p"}, "pod"},
		{"a job that is done", "kube_pod_status_ready{namespace=\"n\",pod=\"p\",condition=\"false\"} 1x40\nkube_pod_status_phase{namespace=\"n\",pod=\"p\",phase=\"Succeeded\"} 1x40", 90 * time.Second, nil, ""},
		{"throttled", "container_cpu_cfs_periods_total{namespace=\"n\",pod=\"p\",container=\"c\"} 0+50x40\ncontainer_cpu_cfs_throttled_periods_total{namespace=\"n\",pod=\"p\",container=\"c\"} 0+20x40", 90 * time.Second, []string{"ContainerCPUThrottling firing c"}, "container"},
		{"throttled a little", "container_cpu_cfs_periods_total{namespace=\"n\",pod=\"p\",container=\"c\"} 0+50x40\ncontainer_cpu_cfs_throttled_periods_total{namespace=\"n\",pod=\"p\",container=\"c\"} 0+5x40", 90 * time.Second, nil, ""},
		{"no replica", "kube_deployment_spec_replicas{namespace=\"n\",deployment=\"d\"} 1x40\nkube_deployment_status_replicas_available{namespace=\"n\",deployment=\"d\"} 0x40", 60 * time.Second, []string{"DeploymentNotReady firing d"}, "deployment"},
		{"no replica wanted", "kube_deployment_spec_replicas{namespace=\"n\",deployment=\"d\"} 0x40\nkube_deployment_status_replicas_available{namespace=\"n\",deployment=\"d\"} 0x40", 60 * time.Second, nil, ""},
		{"no endpoint", `kube_service_info{namespace="n",service="s",external_name=""} 1x40`, 60 * time.Second, []string{"ServiceEndpointDown firing s"}, "service"},
		{"an endpoint", "kube_service_info{namespace=\"n\",service=\"s\",external_name=\"\"} 1x40\nkube_endpointslice_endpoints{namespace=\"n\",endpointslice=\"s-x7k2p\",ready=\"true\"} 1x40", 60 * time.Second, nil, ""},
		{"an endpoint that is not ready", "kube_service_info{namespace=\"n\",service=\"s\",external_name=\"\"} 1x40\nkube_endpointslice_endpoints{namespace=\"n\",endpointslice=\"s-x7k2p\",ready=\"false\"} 1x40", 60 * time.Second, []string{"ServiceEndpointDown firing s"}, "service"},
		// Pods are away for some seconds while they are replaced: nobody is to be called for that.
		{"an endpoint is away for 10 seconds", "kube_service_info{namespace=\"n\",service=\"s\",external_name=\"\"} 1x40\nkube_endpointslice_endpoints{namespace=\"n\",endpointslice=\"s-x7k2p\",ready=\"true\"} 1x5 stale stale 1x33", 35 * time.Second, []string{"ServiceEndpointDown pending s"}, "service"},
		{"a replica is away for 10 seconds", "kube_deployment_spec_replicas{namespace=\"n\",deployment=\"d\"} 1x40\nkube_deployment_status_replicas_available{namespace=\"n\",deployment=\"d\"} 1x5 0 0 1x33", 35 * time.Second, []string{"DeploymentNotReady pending d"}, "deployment"},
		{"a pod takes 15 seconds to be ready", "kube_pod_status_ready{namespace=\"n\",pod=\"p\",condition=\"false\"} 1x3 0x40\nkube_pod_status_phase{namespace=\"n\",pod=\"p\",phase=\"Running\"} 1x40", 15 * time.Second, []string{"KubePodNotReady pending p"}, "pod"},
		{"a service is without endpoints for half a minute", `kube_service_info{namespace="n",service="s",external_name=""} 1x40`, 20 * time.Second, []string{"ServiceEndpointDown firing s"}, "service"},
		{"HTTP errors", "http_requests_total{namespace=\"n\",service=\"s\",code=\"200\"} 0+90x40\nhttp_requests_total{namespace=\"n\",service=\"s\",code=\"500\"} 0+10x40", 60 * time.Second, []string{"HighRequestErrorRate firing http"}, "protocol"},
		{"HTTP mistakes of clients", "http_requests_total{namespace=\"n\",service=\"s\",code=\"200\"} 0+90x40\nhttp_requests_total{namespace=\"n\",service=\"s\",code=\"404\"} 0+10x40", 60 * time.Second, nil, ""},
		{"gRPC errors", "grpc_server_handled_total{namespace=\"n\",service=\"s\",grpc_code=\"OK\"} 0+90x40\ngrpc_server_handled_total{namespace=\"n\",service=\"s\",grpc_code=\"Unavailable\"} 0+10x40", 60 * time.Second, []string{"HighRequestErrorRate firing grpc"}, "protocol"},
		{"store errors", "store_request_duration_seconds_count{namespace=\"n\",service=\"s\",system=\"mongodb\",result=\"ok\"} 0+9x40\nstore_request_duration_seconds_count{namespace=\"n\",service=\"s\",system=\"mongodb\",result=\"error\"} 0+9x40", 60 * time.Second, []string{"HighRequestErrorRate firing mongodb"}, "system"},
		{"slow", "http_request_duration_seconds_bucket{namespace=\"n\",service=\"s\",le=\"1\"} 0+5x40\nhttp_request_duration_seconds_bucket{namespace=\"n\",service=\"s\",le=\"2.5\"} 0+10x40\nhttp_request_duration_seconds_bucket{namespace=\"n\",service=\"s\",le=\"+Inf\"} 0+10x40", 60 * time.Second, []string{"HighRequestLatency firing http"}, "protocol"},
		{"fast", "http_request_duration_seconds_bucket{namespace=\"n\",service=\"s\",le=\"0.1\"} 0+10x40\nhttp_request_duration_seconds_bucket{namespace=\"n\",service=\"s\",le=\"+Inf\"} 0+10x40", 60 * time.Second, nil, ""},
		{"flood", "http_requests_total{namespace=\"n\",service=\"s\",code=\"200\"} 0+50x60 3000+500x60", 8 * time.Minute, []string{"HighRequestRate firing s"}, "service"},
		{"load begins", "http_requests_total{namespace=\"n\",service=\"s\",code=\"200\"} 0x60 0+50x60", 8 * time.Minute, nil, ""},
		{"steady load", "http_requests_total{namespace=\"n\",service=\"s\",code=\"200\"} 0+50x120", 8 * time.Minute, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := alertsAt(t, c.load, c.at, c.by)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// alertsAt evaluates the rules every 5 seconds over some series, and returns the alerts at a time.
func alertsAt(t *testing.T, load string, at time.Duration, by model.LabelName) []string {
	t.Helper()
	storage := promqltest.LoadedStorage(t, "load 5s\n  "+strings.ReplaceAll(load, "\n", "\n  "))
	defer storage.Close()
	engine := promqltest.NewTestEngine(t, false, 5*time.Minute, 1_000_000)
	files := configFiles(t)
	m := rules.NewManager(&rules.ManagerOptions{
		NameValidationScheme: model.UTF8Validation, Context: t.Context(), Logger: slog.New(slog.DiscardHandler),
		Appendable: storage, Queryable: storage, QueryFunc: rules.EngineQueryFunc(engine, storage),
		NotifyFunc:  func(context.Context, string, ...*rules.Alert) {},
		GroupLoader: ruleLoader{files, parser.NewParser(parser.Options{})},
	})
	groups, errs := m.LoadGroups(5*time.Second, labels.EmptyLabels(), "", nil, false, "recording_rules.yml", "alerting_rules.yml")
	if errs != nil {
		t.Fatal(errs)
	}
	names := slices.Sorted(maps.Keys(groups))
	slices.Reverse(names) // The recording rules, so that the alerts see what they recorded.
	for now := time.Duration(0); now <= at; now += 5 * time.Second {
		for _, name := range names {
			groups[name].Eval(t.Context(), time.Unix(0, 0).Add(now))
		}
	}
	var list []string
	for _, g := range groups {
		for _, r := range g.Rules() {
			if r.Health() == rules.HealthBad {
				t.Errorf("%s: %v", r.Name(), r.LastError())
			}
			if a, ok := r.(*rules.AlertingRule); ok {
				for _, x := range a.ActiveAlerts() {
					list = append(list, a.Name()+" "+x.State.String()+" "+x.Labels.Get(string(by)))
				}
			}
		}
	}
	slices.Sort(list)
	return list
}
