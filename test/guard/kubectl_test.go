package guard

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/test/labtest"
)

func TestKubectl(t *testing.T) {
	a := newAgent(t, guard.Rule{Resource: "pods", Labels: "role=loadgen"}, guard.Rule{Namespace: "referee"})
	labApplies(t, a.ns, loadgen)
	labApplies(t, "", "{apiVersion: v1, kind: Namespace, metadata: {name: referee}}")
	a.run(t, deployment, []string{"apply", "-f", "-"}, "deployment.apps/shop created")
	a.run(t, "", []string{"rollout", "status", "deployment/shop"}, "successfully rolled out")
	more := strings.Replace(deployment, "replicas: 1", "replicas: 2", 1)
	a.run(t, more, []string{"apply", "-f", "-"}, "deployment.apps/shop configured")
	a.run(t, more, []string{"apply", "--server-side", "--force-conflicts", "-f", "-"}, "deployment.apps/shop serverside-applied")
	a.run(t, more, []string{"apply", "--dry-run=server", "-f", "-"}, "(server dry run)")
	a.run(t, "", []string{"scale", "deployment/shop", "--replicas=1"}, "deployment.apps/shop scaled")
	a.run(t, "", []string{"set", "env", "deployment/shop", "A=b"}, "deployment.apps/shop env updated")
	a.run(t, "", []string{"rollout", "status", "deployment/shop"}, "successfully rolled out")
	for _, o := range []string{"", "-owide", "-oyaml", "-ojson"} {
		out := a.run(t, "", append([]string{"get", "pods,events"}, strings.Fields(o)...), "shop-", "nginx")
		for _, word := range []string{"pod/load", "name: load", `"name": "load`, "managedFields"} {
			if strings.Contains(out, word) {
				t.Errorf("kubectl get %s says %s:\n%s", o, word, out)
			}
		}
	}
	if out := a.run(t, "", []string{"get", "pods", "-oyaml", "--show-managed-fields"}); strings.Contains(out, "managedFields") {
		t.Errorf("managed fields:\n%s", out)
	}
	a.run(t, "", []string{"exec", "deployment/shop", "--", "echo", "hello"}, "hello")
	a.run(t, "", []string{"logs", "deployment/shop"})
	a.run(t, "", []string{"describe", "deployment", "shop"}, "ScalingReplicaSet")
	a.run(t, "", []string{"describe", "node", "node-1"}, "Allocated resources")
	a.run(t, "", []string{"api-resources"}, "deployments")
	a.run(t, "", []string{"explain", "pod.spec"}, "containers")
	a.run(t, "", []string{"auth", "whoami"}, "sre", "sre-team")
	a.run(t, "", []string{"auth", "can-i", "*", "*"}, "yes")
	a.run(t, "", []string{"version"}, "Server Version")
	a.run(t, "", []string{"create", "token", "default"})
	a.run(t, "", []string{"get", "--raw", "/api/v1/nodes/node-1/proxy/stats/summary"}, `"nodeName"`)
	for _, node := range []string{"node-1", "node-2", "node-3"} {
		out := a.run(t, "", []string{"get", "--raw", "/api/v1/nodes/" + node + "/proxy/logs/?query=kubelet"}, node+" kubelet[")
		if strings.Contains(out, a.ns+"/load") || strings.Contains(out, "referee") {
			t.Errorf("the log of a kubelet tells of what is hidden:\n%s", out)
		}
	}
	a.copyFile(t)
	labtest.Await(t, func() (string, error) {
		out, err := a.kubectl(t, "", "top", "pods")
		if err == nil && !strings.Contains(out, "shop-") || strings.Contains(out, "load") {
			err = fmt.Errorf("top says %s", out)
		}
		return out, err
	})
	if out := a.run(t, "", []string{"get", "namespaces"}, a.ns); strings.Contains(out, "referee") {
		t.Errorf("a hidden namespace is listed:\n%s", out)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"get", "pod", "load"}, `Error from server (NotFound): pods "load" not found`},
		{[]string{"delete", "pod", "load"}, `Error from server (NotFound): pods "load" not found`},
		{[]string{"logs", "load"}, `error: error from server (NotFound): pods "load" not found in namespace "` + a.ns + `"`},
		{[]string{"get", "ns", "referee"}, `Error from server (NotFound): namespaces "referee" not found`},
		{[]string{"create", "configmap", "x", "-n", "referee"}, `namespaces "referee" not found`},
		{[]string{"get", "pods", "--as", "ann"}, `Error from server (Forbidden): users "ann" is forbidden: User "sre" cannot impersonate resource "users" in API group "" at the cluster scope`},
		{[]string{"get", "--raw", "/debug/pprof/cmdline"}, `User "sre" cannot get path "/debug/pprof/cmdline"`},
		{[]string{"get", "--raw", "/api/v1/nodes/node-1/proxy/pods"}, `User "sre" cannot connect to the kubelet's path "/pods"`},
		{[]string{"get", "--raw", "/api/v1/nodes/node-1/proxy/logs/pods/"}, `User "sre" cannot connect to the kubelet's path "/logs/pods"`},
	} {
		out, err := a.kubectl(t, "", tt.args...)
		if err == nil || !strings.Contains(out, tt.want) {
			t.Errorf("kubectl %v: %v, %s\nwant %s", tt.args, err, out, tt.want)
		}
	}
	a.run(t, "", []string{"delete", "pods", "--all", "--wait=false"}, `pod "shop-`)
	if ready(t, a.ns, "load").DeletionTimestamp != nil {
		t.Error("the hidden pod was deleted with all others")
	}
	a.run(t, "", []string{"delete", "deployment", "shop"}, `deployment.apps "shop" deleted`)
}

// copyFile copies a file into a pod and back.
func (a *agent) copyFile(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	if err := os.WriteFile(from, []byte(strings.Repeat("content\n", 10_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	pod := strings.TrimSpace(a.run(t, "", []string{"get", "pods", "-l", "app=shop", "--field-selector=status.phase=Running", "-o", "jsonpath={.items[0].metadata.name}"}))
	a.run(t, "", []string{"cp", from, pod + ":/tmp/file"})
	a.run(t, "", []string{"cp", pod + ":/tmp/file", to})
	if b, err := os.ReadFile(to); err != nil || len(b) != 80_000 {
		t.Errorf("%d bytes came back, %v", len(b), err)
	}
}

func TestHelm(t *testing.T) {
	a := newAgent(t)
	chart, err := loader.LoadFiles([]*archive.BufferedFile{
		{Name: "Chart.yaml", Data: []byte("{apiVersion: v2, name: shop, version: 1.0.0}")},
		{Name: "values.yaml", Data: []byte("replicas: 1")},
		{Name: "templates/shop.yaml", Data: []byte(strings.Replace(deployment, "replicas: 1", "replicas: {{ .Values.replicas }}", 1))},
	})
	if err != nil {
		t.Fatal(err)
	}
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig = &a.kubeconfig
	cfg := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	if err := cfg.Init(flags, a.ns, "secret"); err != nil {
		t.Fatal(err)
	}
	install := action.NewInstall(cfg)
	install.ReleaseName, install.Namespace = "shop", a.ns
	install.WaitStrategy, install.Timeout = kube.StatusWatcherStrategy, patience
	if _, err := install.RunWithContext(t.Context(), chart, nil); err != nil {
		t.Fatal("install: ", err)
	}
	upgrade := action.NewUpgrade(cfg)
	upgrade.Namespace, upgrade.WaitStrategy, upgrade.Timeout = a.ns, kube.StatusWatcherStrategy, patience
	if _, err := upgrade.RunWithContext(t.Context(), "shop", chart, map[string]any{"replicas": 2}); err != nil {
		t.Fatal("upgrade: ", err)
	}
	var changed bool
	for _, e := range a.journal() {
		if e.Resource == "deployments" && e.Before != nil {
			changed = *decode(t, e.Before).Spec.Replicas == 1 && *decode(t, e.After).Spec.Replicas == 2
		}
	}
	if !changed {
		t.Errorf("the upgrade is not in the journal: %+v", a.journal())
	}
	uninstall := action.NewUninstall(cfg)
	uninstall.WaitStrategy, uninstall.Timeout = kube.StatusWatcherStrategy, patience
	if _, err := uninstall.Run("shop"); err != nil {
		t.Fatal("uninstall: ", err)
	}
}
