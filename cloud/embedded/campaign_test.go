package embedded_test

import (
	"context"
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/campaign"
	"github.com/aiopslab/aiopslab/campaign/local"
	"github.com/aiopslab/aiopslab/cloud/embedded"
	"github.com/aiopslab/aiopslab/cloud/kube"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/record"
)

const (
	campaignImage = "test/aiopslab:v1"
	bucketImage   = "test/s3:v1"
)

// campaignRuns counts how often the run of each seed took place, in all pods of all campaigns.
var campaignRuns sync.Map // of Run to *atomic.Int32

// campaignImages are aiopslab as the pods of a campaign run it, but with runs that are quick, and a store that speaks S3.
func campaignImages() []kit.Image {
	worker := campaign.Worker{Run: quickRun}
	return []kit.Image{
		{
			Names: []string{"test/aiopslab"}, Tags: "v1", Programs: map[string]kit.Program{
				"/usr/bin/aiopslab": func(ctx context.Context, env *kit.Env) error {
					env.Args = env.Args[1:]
					switch env.Args[0] {
					case "serve":
						return serveHealth(ctx, env)
					case "worker":
						return echo(ctx, env)
					}
					if env.Args[1] == "keep" {
						env.Args = env.Args[1:]
						return campaign.Keeper(ctx, env)
					}
					env.Args = env.Args[1:]
					if dies(env, deathBefore) {
						return kit.Exit(137)
					}
					if err := worker.Main(ctx, env); err != nil || !dies(env, deathAfter) {
						return err
					}
					return kit.Exit(137)
				},
			},
		},
		{Names: []string{"test/s3"}, Tags: "v1", Entrypoint: []string{"/s3"}, Programs: map[string]kit.Program{"/s3": serveBucket}},
	}
}

// When a pod dies by itself, as if it were killed, and the last digit of its index.
const (
	deathBefore = "1" // the run
	deathDuring = "4"
	deathAfter  = "7" // the record was written
)

// deaths are the pods' addresses of records and indexes that have died once.
var deaths sync.Map

// dies reports whether a pod dies now: of some indexes, whose records go to a bucket, the first does.
func dies(env *kit.Env, when string) bool {
	index, store := env.Getenv("JOB_COMPLETION_INDEX"), env.Getenv("AWS_ENDPOINT_URL")
	if store == "" || len(index) > 2 || !strings.HasSuffix(index, when) {
		return false
	}
	_, again := deaths.LoadOrStore(store+index, true)
	return !again
}

// quickRun takes a moment, as any run does, and leaves a record. The agent "unlucky" has an environment that fails,
// the problem "unknown" is not there. Runs with an even seed keep telemetry, if any do.
func quickRun(ctx context.Context, env *kit.Env, p *campaign.Plan, r local.Run) (left campaign.Leavings, err error) {
	n, _ := campaignRuns.LoadOrStore(r, &atomic.Int32{})
	n.(*atomic.Int32).Add(1)
	if r.Problem == "unknown" {
		return left, campaign.BadInput(errors.New("there is no problem unknown"))
	}
	select {
	case <-time.After(300 * time.Millisecond):
	case <-ctx.Done():
		return left, context.Cause(ctx)
	}
	if dies(env, deathDuring) {
		return left, kit.Exit(137)
	}
	class := "solved"
	if r.Agent == "unlucky" {
		class = "infra"
	}
	dir, err := os.MkdirTemp("", "campaign-")
	if err != nil {
		return left, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "run.jsonl")
	l, err := record.Create(file, record.Run{ID: env.Hostname, Agent: r.Agent})
	if err != nil {
		return left, err
	}
	err = errors.Join(l.Append(record.ProblemEvent, map[string]any{"id": r.Problem, "seed": r.Seed}),
		l.Append(record.VerdictEvent, map[string]any{"class": class, "why": "so it is"}), l.Close())
	if err != nil {
		return left, err
	}
	if left.Record, err = os.ReadFile(file); err != nil || !p.Telemetry || r.Seed%2 != 0 {
		return left, err
	}
	kept := filepath.Join(telemetryOf(file), "metrics")
	err = errors.Join(os.MkdirAll(kept, 0o755), os.WriteFile(filepath.Join(kept, "cpu.csv.gz"), []byte(r.String()), 0o600))
	if err == nil {
		left.Telemetry, err = campaign.Pack(telemetryOf(file))
	}
	return left, err
}

// serveBucket is a store with the bucket "lab", in memory.
func serveBucket(ctx context.Context, env *kit.Env) error {
	backend := s3mem.New()
	if err := backend.CreateBucket("lab"); err != nil {
		return err
	}
	store := gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	ln, err := env.Net.Listen("tcp", ":9000")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: store, ErrorLog: log.New(io.Discard, "", 0)}
	defer context.AfterFunc(ctx, func() { srv.Close() })()
	return kit.IgnoreClosed(srv.Serve(ln))
}

// newCampaign is one of n runs. Whoever gathers its records has a kubeconfig and nothing else.
func (c *cluster) newCampaign(t *testing.T, ns string, n int) *campaign.Campaign {
	t.Helper()
	x := &campaign.Campaign{
		Name: "nightly", Namespace: ns, Plan: &campaign.Plan{}, Image: campaignImage,
		WorkerArgs: []string{"campaign", "run"}, KeeperArgs: []string{"campaign", "keep"}, Dir: t.TempDir(),
		Parallelism: 24, Retries: campaign.DefaultRetries, MaxFailed: n, Resources: campaign.DefaultResources(),
		Poll: 200 * time.Millisecond, Tell: func(line string) { t.Log(line) },
	}
	for i := range n {
		x.Plan.Runs = append(x.Plan.Runs, local.Run{Problem: ns, Agent: "oracle", Seed: uint64(i + 1)})
	}
	x.Cloud = c.asGuest(t, "")
	return x
}

// asGuest is the cluster as whoever has its kubeconfig sees it, or as somebody whose rights are fewer.
func (c *cluster) asGuest(t *testing.T, user string) *kube.Cloud {
	t.Helper()
	b, err := c.Kubeconfig("test")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range config.AuthInfos {
		x.Impersonate = user
	}
	if b, err = clientcmd.Write(*config); err != nil {
		t.Fatal(err)
	}
	k, err := kube.Open(t.Context(), kube.Options{Config: b})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return k
}

// restrict has a namespace admit pods of the restricted level alone.
func (c *cluster) restrict(t *testing.T, ns string) {
	t.Helper()
	patch := `{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}`
	_, err := c.client.CoreV1().Namespaces().Patch(t.Context(), ns, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// checkGathered holds what is gathered to the plan: every run, once.
func checkGathered(t *testing.T, x *campaign.Campaign, told map[int]int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(x.Dir, "*.jsonl"))
	if err != nil || len(files) != len(x.Plan.Runs) {
		t.Errorf("%d records of %d runs: %v", len(files), len(x.Plan.Runs), err)
	}
	for i, run := range x.Plan.Runs {
		r, err := record.Read(filepath.Join(x.Dir, campaign.RecordName(i)))
		if err != nil || r.Seed != run.Seed || r.Problem != run.Problem || told[i] != 1 {
			t.Errorf("run %d was told %d times, and its record is %+v: %v", i, told[i], r, err)
		}
	}
}

// telemetryOf is the directory of the telemetry that belongs to a record.
func telemetryOf(record string) string { return strings.TrimSuffix(record, ".jsonl") + ".telemetry" }

// checkTelemetry holds what is gathered of telemetry to the records.
func checkTelemetry(t *testing.T, x *campaign.Campaign) {
	t.Helper()
	for i, run := range x.Plan.Runs {
		file := filepath.Join(x.Dir, campaign.RecordName(i))
		if _, err := os.Stat(file); err != nil {
			continue
		}
		got, err := os.ReadFile(filepath.Join(telemetryOf(file), "metrics", "cpu.csv.gz"))
		if kept := run.Seed%2 == 0; kept != (err == nil) || kept && string(got) != run.String() {
			t.Errorf("the telemetry of %v: %q, %v", run, got, err)
		}
	}
	if drafts, _ := filepath.Glob(filepath.Join(x.Dir, ".draft-*")); len(drafts) > 0 {
		t.Errorf("left over: %v", drafts)
	}
}

// checkCleared: in the end nothing is left in the cluster.
func (c *cluster) checkCleared(t *testing.T, ns string) {
	t.Helper()
	awaitGone(t, "the Job", func() (*batchv1.Job, error) {
		return c.client.BatchV1().Jobs(ns).Get(t.Context(), "nightly", metav1.GetOptions{})
	})
	awaitTrue(t, "no pod of the campaign", func() bool {
		list, err := c.client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{LabelSelector: campaign.Label})
		return err == nil && len(list.Items) == 0
	})
	list, err := c.client.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{LabelSelector: campaign.Label})
	if err != nil || len(list.Items) > 0 {
		t.Errorf("left are %v: %v", list, err)
	}
}

const recordsClaim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: records}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`

// TestCampaign: a campaign with a volume is run by a Job, gathered, broken off and gone on with, in a namespace that admits
// nothing but restricted pods; what fails for good is told, and what is recorded is not run again.
func TestCampaign(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	c.restrict(t, ns)
	c.apply(t, ns, recordsClaim)
	x := c.newCampaign(t, ns, 12)
	x.Records = campaign.Place{Claim: "records"}
	x.Plan.Runs[3].Agent, x.Plan.Runs[5].Problem, x.Retries = "unlucky", "unknown", 1
	x.Plan.Runs[5].Agent = ns // so that its runs are counted apart
	x.Plan.Telemetry = true

	// Whoever watches goes away when the first record is there. The Job goes on.
	ctx, cancel := context.WithCancelCause(t.Context())
	told := map[int]int{}
	gone := errors.New("gone")
	x.Recorded = func(i int, _ *local.Result) {
		told[i]++
		cancel(gone)
	}
	if _, err := x.Run(ctx); !errors.Is(err, gone) {
		t.Fatalf("broken off: %v", err)
	}
	job, err := c.client.BatchV1().Jobs(ns).Get(t.Context(), x.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// Whoever comes back has the same directory, and follows the same Job.
	lost, err := x.Run(t.Context())
	if err != nil || len(lost) != 2 {
		t.Fatalf("lost are %v: %v", lost, err)
	}
	if !strings.Contains(lost[3], "the environment failed: so it is") || lost[5] != "there is no problem unknown" {
		t.Errorf("lost are %v", lost)
	}
	for run, want := range map[local.Run]int32{x.Plan.Runs[3]: 2, x.Plan.Runs[5]: 1, x.Plan.Runs[0]: 1} {
		if n, _ := campaignRuns.Load(run); n == nil || n.(*atomic.Int32).Load() != want {
			t.Errorf("%v took place %v times, not %d", run, n, want)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(x.Dir, "*.jsonl")); len(files) != 10 {
		t.Errorf("%d records are gathered: %v", len(files), files)
	}
	checkTelemetry(t, x)
	c.checkCleared(t, ns)

	// From another machine, all that is recorded is gathered anew, and what is not is tried again, by another Job.
	x.Dir, told = t.TempDir(), map[int]int{}
	x.Recorded = func(i int, _ *local.Result) { told[i]++ }
	x.Keep = true
	if lost, err := x.Run(t.Context()); err != nil || len(lost) != 2 || len(told) != 10 {
		t.Errorf("lost are %v, told was of %v: %v", lost, told, err)
	}
	checkTelemetry(t, x)
	again, err := c.client.BatchV1().Jobs(ns).Get(t.Context(), x.Name, metav1.GetOptions{})
	if err != nil || again.UID == job.UID || *again.Spec.Completions != 2 {
		t.Errorf("the Job that is kept: %+v, %v", again, err)
	}
	if n, _ := campaignRuns.Load(x.Plan.Runs[0]); n.(*atomic.Int32).Load() != 1 {
		t.Errorf("what is recorded was run again")
	}
	// Another plan does not mix with it.
	x.Dir, x.Plan = t.TempDir(), &campaign.Plan{Runs: x.Plan.Runs[:3]}
	if _, err := x.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "choose another --name") {
		t.Errorf("another campaign of the same name: %v", err)
	}
}

// TestCampaignTells: what keeps a campaign from beginning is one line that says what to do.
func TestCampaignTells(t *testing.T) {
	t.Parallel()
	c := shared(t)
	for _, s := range []struct {
		name, manifest string
		change         func(*campaign.Campaign)
		want           string
	}{
		{"no claim", "", func(*campaign.Campaign) {}, "there is no claim records in namespace"},
		{"no image", recordsClaim, func(x *campaign.Campaign) { x.Image = "test/aiopslab:v2" }, "cannot pull the image test/aiopslab:v2"},
		{"another image", recordsClaim, func(x *campaign.Campaign) { x.Image = bucketImage }, "with the program aiopslab in its PATH"},
		{"no secret", "", func(x *campaign.Campaign) {
			x.Records, x.S3 = campaign.Place{Bucket: "lab"}, campaign.S3{Secret: "keys"}
		}, "there is no Secret keys in namespace"},
		{"no quota", recordsClaim + `---
apiVersion: v1
kind: ResourceQuota
metadata: {name: small}
spec: {hard: {requests.cpu: 10m}}
`, func(*campaign.Campaign) {}, "exceeded quota: small"},
		{"no namespace", "", func(x *campaign.Campaign) { x.Namespace = "nosuch" }, "there is no namespace nosuch"},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			ns := c.namespace(t)
			c.apply(t, ns, s.manifest)
			if strings.Contains(s.manifest, "ResourceQuota") { // It counts once its controller has seen it.
				awaitTrue(t, "the quota is in force", func() bool {
					q, err := c.client.CoreV1().ResourceQuotas(ns).Get(t.Context(), "small", metav1.GetOptions{})
					return err == nil && len(q.Status.Hard) > 0
				})
			}
			x := c.newCampaign(t, ns, 2)
			x.Records = campaign.Place{Claim: "records"}
			s.change(x)
			_, err := x.Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), s.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, where %q is to be told", err, s.want)
			}
		})
	}
}

const bucketServer = `
apiVersion: v1
kind: Service
metadata: {name: s3}
spec: {selector: {app: s3}, ports: [{port: 9000}]}
---
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {AWS_ACCESS_KEY_ID: right, AWS_SECRET_ACCESS_KEY: hush}
---
apiVersion: v1
kind: Pod
metadata: {name: s3, labels: {app: s3}}
spec:
  containers: [{name: s3, image: ` + bucketImage + `, readinessProbe: {tcpSocket: {port: 9000}, periodSeconds: 1}}]
`

// TestCampaignUnderFire: of 200 runs, whose records go to a bucket, none is lost and none is there twice, though pods are
// killed at random, some die before, while and after they write, and a node loses its power.
func TestCampaignUnderFire(t *testing.T) {
	c := fresh(t, embedded.Options{Nodes: 5})
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	ns := c.namespace(t)
	c.apply(t, ns, bucketServer)
	c.awaitFetch(t, "http://s3."+ns+".svc.cluster.local:9000/")
	x := c.newCampaign(t, ns, 200)
	x.Poll = time.Second / 2 // A keeper has ten times as long until it must have found the store.
	x.Records = campaign.Place{Bucket: "lab", Prefix: "teams/a"}
	x.S3 = campaign.S3{Secret: "keys", Endpoint: "http://s3." + ns + ":9000"}
	x.Parallelism, x.Resources.CPU = 40, resource.MustParse("500m")
	told := map[int]int{}
	x.Recorded = func(i int, r *local.Result) {
		told[i]++
		if r.Class != "solved" {
			t.Errorf("run %d: %+v", i, r)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var fire sync.WaitGroup
	killed := 0
	fire.Go(func() { killed = c.killAtRandom(ctx, t, ns) })
	fire.Go(func() { c.takeNode(ctx, t, ns) })
	lost, err := x.Run(ctx)
	stop()
	fire.Wait()
	if err != nil || len(lost) > 0 {
		t.Fatalf("lost are %v: %v", lost, err)
	}
	checkGathered(t, x, told)
	took := 0
	for _, r := range x.Plan.Runs {
		if n, ok := campaignRuns.Load(r); ok {
			took += int(n.(*atomic.Int32).Load())
		}
	}
	t.Logf("%d pods were killed; %d runs took place for %d records", killed, took, len(told))
	if took < len(x.Plan.Runs)+10 {
		t.Errorf("only %d runs took place, though ten died by themselves", took)
	}
	if killed < kills {
		t.Errorf("only %d pods were killed", killed)
	}
	c.checkCleared(t, ns)
}

// kills is how many pods are killed. The Job waits ten seconds until it tries an index again, and longer every time, so
// that more would take longer and show nothing else.
const kills = 20

// killAtRandom deletes a pod of the campaign now and then, at once. The first is the one that records are gathered from.
func (c *cluster) killAtRandom(ctx context.Context, t *testing.T, ns string) (killed int) {
	r := rand.New(rand.NewPCG(1, 0x6b696c6c))
	pods := c.client.CoreV1().Pods(ns)
	for ctx.Err() == nil && killed < kills {
		list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel, FieldSelector: "status.phase=Running"})
		if err == nil && len(list.Items) > 0 {
			name := list.Items[r.IntN(len(list.Items))].Name
			if killed == 0 {
				name = "nightly-keeper"
			}
			if err = pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}); err == nil {
				killed++
			}
		}
		if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
			t.Errorf("kill a pod: %v", err)
		}
		select {
		case <-time.After(time.Duration(20+r.IntN(60)) * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return killed
}

// takeNode takes the power of a node away that runs are on, and removes it, as the controller of a cloud does. What
// Kubernetes does for the pods of such a node after a minute, it does at once.
func (c *cluster) takeNode(ctx context.Context, t *testing.T, ns string) {
	pods := c.client.CoreV1().Pods(ns)
	taken := map[string]bool{} // by what others need: the store, and the cluster's DNS
	others, err := c.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: "!" + campaign.Label})
	if err != nil {
		t.Error(err)
		return
	}
	for _, p := range others.Items {
		taken[p.Spec.NodeName] = true
	}
	node := ""
	for ctx.Err() == nil && node == "" {
		list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel, FieldSelector: "status.phase=Running"})
		if err == nil {
			for _, p := range list.Items {
				if !taken[p.Spec.NodeName] {
					node = p.Spec.NodeName
				}
			}
		}
	}
	if ctx.Err() != nil {
		t.Error("the campaign was over before a node was taken")
		return
	}
	c.Node(node).Fail()
	if err := c.client.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{}); err != nil {
		t.Errorf("remove %s: %v", node, err)
	}
	failed := []byte(`{"status": {"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}]}}`)
	for ctx.Err() == nil {
		list, err := pods.List(ctx, metav1.ListOptions{
			FieldSelector: "spec.nodeName=" + node + ",status.phase!=Failed,status.phase!=Succeeded",
		})
		if err == nil {
			for _, p := range list.Items { // It may be gone.
				_, _ = pods.Patch(ctx, p.Name, types.StrategicMergePatchType, failed, metav1.PatchOptions{}, "status")
				_ = pods.Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))})
			}
		}
		select {
		case <-time.After(10 * poll):
		case <-ctx.Done():
		}
	}
}
