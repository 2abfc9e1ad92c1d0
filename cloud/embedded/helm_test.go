package embedded_test

import (
	"fmt"
	"log/slog"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// greeter is a chart with a page that comes from its values, and a hook.
func greeter(t *testing.T) *chart.Chart {
	t.Helper()
	var files []*archive.BufferedFile
	for name, data := range map[string]string{
		"Chart.yaml":  "{apiVersion: v2, name: greeter, version: 1.0.0, kubeVersion: '>=1.30.0'}",
		"values.yaml": "{greeting: hello, replicas: 1}",
		"templates/greeter.yaml": `
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {index.html: {{ .Values.greeting | quote }}}
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}}
spec:
  selector: {app: {{ .Release.Name }}}
  ports: [{port: 80}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}, annotations: {greeting: {{ .Values.greeting | quote }}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: nginx
        image: nginx:1.29
        ports: [{containerPort: 80}]
        readinessProbe: {httpGet: {port: 80}}
        volumeMounts: [{name: site, mountPath: /usr/share/nginx/html}]
      volumes: [{name: site, configMap: {name: {{ .Release.Name }}}}]
`,
		"templates/hook.yaml": `
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-check
  annotations: {helm.sh/hook: "post-install,post-upgrade", helm.sh/hook-delete-policy: "before-hook-creation,hook-succeeded"}
spec:
  backoffLimit: 3
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: check
        image: busybox
        command: [sh, -c, "wget -qO- http://{{ .Release.Name }} | grep -q ."]
`,
	} {
		files = append(files, &archive.BufferedFile{Name: name, Data: []byte(data)})
	}
	c, err := loader.LoadFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestHelm(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	cfg := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	if err := cfg.Init(restGetter{c, ns}, ns, "secret"); err != nil {
		t.Fatal(err)
	}
	url := fmt.Sprintf("http://greeter.%s.svc.cluster.local/", ns)
	// Helm has waited for the new pods; the old ones may still answer for a moment.
	says := func(want string) {
		t.Helper()
		await(t, func() (string, error) {
			got, err := c.fetch(t.Context(), url)
			if err == nil && got != want {
				err = fmt.Errorf("the page says %q, want %q", got, want)
			}
			return got, err
		})
	}

	install := action.NewInstall(cfg)
	install.ReleaseName, install.Namespace = "greeter", ns
	install.WaitStrategy, install.Timeout = kube.StatusWatcherStrategy, patience
	if _, err := install.RunWithContext(t.Context(), greeter(t), nil); err != nil {
		t.Fatal("install: ", err)
	}
	says("hello")

	upgrade := action.NewUpgrade(cfg)
	upgrade.Namespace, upgrade.WaitStrategy, upgrade.Timeout = ns, kube.StatusWatcherStrategy, patience
	if _, err := upgrade.RunWithContext(t.Context(), "greeter", greeter(t), map[string]any{"greeting": "good day", "replicas": 2}); err != nil {
		t.Fatal("upgrade: ", err)
	}
	says("good day")
	c.readyPods(t, ns, "app=greeter", 2)

	rollback := action.NewRollback(cfg)
	rollback.Version, rollback.WaitStrategy, rollback.Timeout = 1, kube.StatusWatcherStrategy, patience
	if err := rollback.Run("greeter"); err != nil {
		t.Fatal("rollback: ", err)
	}
	says("hello")
	c.readyPods(t, ns, "app=greeter", 1)
	history, err := action.NewHistory(cfg).Run("greeter")
	if err != nil || len(history) != 3 {
		t.Errorf("%d revisions, %v; want 3", len(history), err)
	}

	uninstall := action.NewUninstall(cfg)
	uninstall.WaitStrategy, uninstall.Timeout = kube.StatusWatcherStrategy, patience
	if _, err := uninstall.Run("greeter"); err != nil {
		t.Fatal("uninstall: ", err)
	}
	awaitGone(t, "the service", func() (*v1.Service, error) {
		return c.client.CoreV1().Services(ns).Get(t.Context(), "greeter", metav1.GetOptions{})
	})
	c.readyPods(t, ns, "app=greeter", 0)
}

// restGetter gives Helm the clients that kubectl's flags would.
type restGetter struct {
	c  *cluster
	ns string
}

func (g restGetter) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(g.c.config), nil }

func (g restGetter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return memory.NewMemCacheClient(g.c.client.Discovery()), nil
}

func (g restGetter) ToRESTMapper() (meta.RESTMapper, error) {
	d, err := g.ToDiscoveryClient()
	return restmapper.NewDeferredDiscoveryRESTMapper(d), err
}

func (g restGetter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return clientcmd.NewDefaultClientConfig(*clientcmdapi.NewConfig(), &clientcmd.ConfigOverrides{Context: clientcmdapi.Context{Namespace: g.ns}})
}
