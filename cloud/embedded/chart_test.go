package embedded_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/aiopslab/aiopslab/campaign"
	"github.com/aiopslab/aiopslab/kit"
)

// serverChart is the chart of the server, as it is in the repository.
func serverChart(t *testing.T) *chart.Chart {
	t.Helper()
	root := filepath.FromSlash("../../deploy/helm/aiopslab")
	var files []*archive.BufferedFile
	err := filepath.WalkDir(root, func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(file)
		name, rerr := filepath.Rel(root, file)
		if err == nil {
			err = rerr
		}
		files = append(files, &archive.BufferedFile{Name: filepath.ToSlash(name), Data: data})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := loader.LoadFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// serveHealth is the server as a chart sees it: it needs its token, and a place for records, and says that it is well.
func serveHealth(ctx context.Context, env *kit.Env) error {
	for _, want := range []string{"--addr=0.0.0.0:1818", "--token-file=/token/token", "--results=/results", "--max-sessions=8", "--max-memory=2Gi"} {
		if !slices.Contains(env.Args, want) {
			return fmt.Errorf("there is no %s among %q", want, env.Args)
		}
	}
	token, err := env.ReadFile("/token/token")
	if err != nil {
		return err
	}
	for _, dir := range []string{"/results", "/tmp"} {
		if err := env.WriteFile(dir+"/probe", nil, 0o600); err != nil {
			return err
		}
	}
	ln, err := env.Net.Listen("tcp", "0.0.0.0:1818")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "well, with a token of %d", len(token)) })}
	defer context.AfterFunc(ctx, func() { srv.Close() })()
	return kit.IgnoreClosed(srv.Serve(ln))
}

// installServer has Helm install the chart, with an image and requests of the test's own.
func (c *cluster) installServer(t *testing.T, ns string, values map[string]any) error {
	t.Helper()
	cfg := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	if err := cfg.Init(restGetter{c, ns}, ns, "secret"); err != nil {
		t.Fatal(err)
	}
	all := map[string]any{
		"image":     map[string]any{"repository": "test/aiopslab", "tag": "v1"},
		"resources": map[string]any{"requests": map[string]any{"cpu": "100m", "memory": "64Mi"}},
	}
	maps.Copy(all, values)
	i := action.NewInstall(cfg)
	i.ReleaseName, i.Namespace, i.WaitStrategy, i.Timeout = "lab", ns, kube.StatusWatcherStrategy, patience
	_, err := i.RunWithContext(t.Context(), serverChart(t), all)
	return err
}

// TestChart: Helm installs the server in a namespace that admits nothing but restricted pods, with a volume, and it serves.
// Without a token it says what is missing.
func TestChart(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	c.restrict(t, ns)
	if err := c.installServer(t, ns, nil); err == nil || !strings.Contains(err.Error(), "set tokenSecret, the name of a Secret with the key token, or token") {
		t.Errorf("without a token: %v", err)
	}
	err := c.installServer(t, ns, map[string]any{
		"token": "hush", "persistence": map[string]any{"enabled": true, "size": "1Gi"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.awaitFetch(t, fmt.Sprintf("http://lab-aiopslab.%s.svc.cluster.local:1818/health", ns)); got != "well, with a token of 4" {
		t.Errorf("it says %q", got)
	}
	d, err := c.client.AppsV1().Deployments(ns).Get(t.Context(), "lab-aiopslab", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprintf("%+v", d.Spec.Template.Spec); strings.Contains(text, "hush") || strings.Contains(text, "HostPath:&") {
		t.Errorf("the pod has the token, or a path of its node: %s", text)
	}
}

// TestChartJobs: a server whose workers are Jobs has the rights that these take, in its namespace, and no others.
func TestChartJobs(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	c.restrict(t, ns)
	err := c.installServer(t, ns, map[string]any{"token": "hush", "workers": map[string]any{"jobs": true}})
	if err != nil {
		t.Fatal(err)
	}
	d, err := c.client.AppsV1().Deployments(ns).Get(t.Context(), "lab-aiopslab", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	args := strings.Join(d.Spec.Template.Spec.Containers[0].Args, " ")
	if !strings.Contains(args, "--on=cluster --namespace="+ns+" --image=test/aiopslab:v1 --cpu=1 --memory=1Gi") {
		t.Errorf("the server is started with %s", args)
	}
	p := &campaign.Posts{
		Cloud: c.asGuest(t, "system:serviceaccount:"+ns+":lab-aiopslab"), Namespace: ns, Image: campaignImage, Resources: campaign.DefaultResources(),
		Args: []string{"worker"}, Tell: func(line string) { t.Log(line) },
	}
	if err := p.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := newStay(t, p)
	s.say(t, "hello")
	conn, err := s.dial(t.Context(), echoPort)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	s.cancel()
	<-s.ended
	p.Namespace = "default"
	if err := p.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("elsewhere: %v", err)
	}
}
