package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/aiopslab/aiopslab/campaign"
	"github.com/aiopslab/aiopslab/cloud/kube"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/session"
)

// The values of --on.
const (
	onMachine = "machine"
	onCluster = "cluster"
)

var onNames = []string{onMachine, onCluster}

// campaignFlags say how a Job of a cluster does runs.
type campaignFlags struct {
	on                 string // one of onNames
	name, namespace    string
	image, pullSecret  string
	records, queue     string
	cpu, memory        string
	retries, maxFailed int
	keep               bool

	place     campaign.Place
	s3        campaign.S3
	resources campaign.Resources
	pods      int // at a time
}

// aside is what an environment's own process leaves to the others of its pod.
const aside = 512 << 20

func (f *campaignFlags) add(c *cobra.Command) {
	f.on = onMachine
	flags, d := c.Flags(), campaign.DefaultResources()
	flags.Var(&wordFlag{&f.on, "on", onNames}, "on",
		"`where` the runs go on: machine, in processes of this one; or cluster, in pods of a cluster that you have")
	flags.StringVar(&f.name, "name", "",
		"`name` of the Job and of its records; the same one again goes on (default is made from the runs)")
	flags.StringVar(&f.namespace, "namespace", "", "`namespace` of the pods (default that of the context)")
	flags.StringVar(&f.image, "image", "", "`reference` of the image of this program, for the pods")
	flags.StringVar(&f.pullSecret, "pull-secret", "", "`name` of the Secret that the image is pulled with")
	flags.StringVar(&f.records, "records", "",
		"`where` the pods keep records: pvc:CLAIM, a volume; or s3://BUCKET/PREFIX, any store that speaks S3")
	flags.StringVar(&f.s3.Secret, "s3-secret", "",
		"`name` of the Secret with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, for records in a bucket")
	flags.StringVar(&f.s3.Endpoint, "s3-endpoint", "", "`URL` of the store, as pods reach it (default Amazon's)")
	flags.StringVar(&f.s3.Region, "s3-region", "", "`region` of the bucket (default us-east-1)")
	flags.StringVar(&f.queue, "queue", "", "`name` of the queue of Kueue that admits the Job")
	flags.StringVar(&f.cpu, "cpu", d.CPU.String(), "processors that a pod asks for; it may use twice as `much`")
	flags.StringVar(&f.memory, "memory", d.Memory.String(),
		"memory that a pod asks for; it may use as `much` as --max-memory and 512Mi")
	flags.IntVar(&f.retries, "retries", campaign.DefaultRetries, "how often a run is tried again whose pod failed")
	flags.IntVar(&f.maxFailed, "max-failed", 0, "if more runs than these fail, the rest is not run (default a tenth)")
	flags.BoolVar(&f.keep, "keep", false, "leave the Job and its pods in the cluster in the end")
	completeFlag(c, "on", func() []string { return onNames })
}

func (f *campaignFlags) cluster() bool { return f.on == onCluster }

var campaignName = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$`)

// campaignOnly are the flags that mean nothing on one machine.
var campaignOnly = []string{
	"name", "namespace", "image", "pull-secret", "records", "s3-secret", "s3-endpoint", "s3-region", "queue", "cpu",
	"memory", "retries", "max-failed", "keep",
}

// complete checks the flags, and fills in what follows from others.
func (f *campaignFlags) complete(c *cobra.Command, v *verifyFlags) (err error) {
	if !f.cluster() {
		for _, name := range campaignOnly {
			if c.Flags().Changed(name) {
				return fail(ExitUsage, fmt.Errorf("--%s is for runs in pods", name),
					"Add --on cluster, or leave it out.")
			}
		}
		return nil
	}
	usage := func(hint, format string, args ...any) error {
		return fail(ExitUsage, fmt.Errorf(format, args...), hint)
	}
	switch {
	case v.cloud.onCluster():
		return usage("Leave out --cloud: with --on cluster, each pod has an embedded cloud.",
			"--on cluster and --cloud %s are two ways", v.cloud.cloud)
	case f.image == "":
		return usage("docs/campaigns.md tells how to make it.", "--on cluster needs --image, the image of this program")
	case f.records == "":
		return usage("Name a claim or a bucket, as pvc:records or s3://lab/records.", "--on cluster needs --records")
	case f.name != "" && !campaignName.MatchString(f.name):
		return usage("", "--name %s: want up to 40 small letters, digits and hyphens, and a letter first", f.name)
	case f.retries < 0 || f.maxFailed < 0:
		return usage("", "--retries %d --max-failed %d: neither is less than 0", f.retries, f.maxFailed)
	case c.Flags().Changed("audit") && v.audit > 0:
		return usage("Run the audit on one machine.", "--audit %d: an audit has no records to gather", v.audit)
	}
	if f.place, err = campaign.ParsePlace(f.records); err != nil {
		return fail(ExitUsage, fmt.Errorf("--records: %w", err), "")
	}
	if err := f.s3.Check(f.place); err != nil {
		return fail(ExitUsage, err, "docs/campaigns.md has an example.")
	}
	f.resources = campaign.DefaultResources()
	for _, q := range []struct {
		flag, text string
		to         *resource.Quantity
	}{{"cpu", f.cpu, &f.resources.CPU}, {"memory", f.memory, &f.resources.Memory}} {
		if *q.to, err = resource.ParseQuantity(q.text); err != nil || q.to.Sign() <= 0 {
			return usage("", "--%s %s: want a quantity of Kubernetes, such as 500m or 1Gi", q.flag, q.text)
		}
	}
	most := max(v.memory.bytes+aside, f.resources.Memory.Value())
	f.resources.MaxMemory = *resource.NewQuantity(most, resource.BinarySI)
	v.audit, f.pods = 0, campaign.DefaultParallelism
	if c.Flags().Changed("workers") {
		f.pods = v.workers
	}
	v.workers = f.pods
	return nil
}

// admit refuses problems that the image does not have.
func (f *campaignFlags) admit(problems []*problem.Problem) error {
	for _, p := range problems {
		if !p.BuiltIn() {
			return fail(ExitUsage, fmt.Errorf("%s is in %s, which no pod has", p.ID, p.Document.File),
				"Build a program that has it with lab.Main, and an image of that: docs/campaigns.md.")
		}
	}
	return nil
}

// dir is the directory that the records are gathered in.
func (f *campaignFlags) dir(results string) string {
	if results != "" {
		return results
	}
	return filepath.Join(defaultResults, f.name)
}

// runInPods has a Job run the cells. Done is told of each when its record is there.
func (v *verifyFlags) runInPods(ctx context.Context, s *State, cells []*cell, done func(n int, c *cell)) error {
	level, err := v.noise.of(s)
	if err != nil {
		return err
	}
	f, out := &v.on, v.progress(s)
	c := &campaign.Campaign{
		Plan: &campaign.Plan{Args: []string{
			"--noise", string(level), "--decoy", v.decoys.String(), "--max-memory", v.memory.String(),
		}},
		Image: f.image, S3: f.s3, PullSecret: f.pullSecret, Records: f.place, Queue: f.queue, Keep: f.keep,
		WorkerArgs: []string{"campaign", "run"}, KeeperArgs: []string{"campaign", "keep"},
		Parallelism: f.pods, Retries: f.retries, MaxFailed: f.maxFailed, Resources: f.resources,
		Tell: func(line string) { fmt.Fprintln(out, line) },
	}
	for _, x := range cells {
		c.Plan.Runs = append(c.Plan.Runs, campaign.Run{Problem: x.Problem, Agent: x.Agent, Seed: x.seed})
	}
	if c.MaxFailed == 0 {
		c.MaxFailed = max(10, len(cells)/10)
	}
	n := 0
	c.Recorded = func(i int, r *campaign.Result) {
		x := cells[i]
		x.Got, x.Why, x.Record, x.Seconds = string(r.Class), r.Why, r.File, r.Seconds
		n++
		done(n, x)
	}
	if err := f.open(ctx, v, c); err != nil {
		return err
	}
	defer c.Cloud.Close()
	ctx, cancel := untilSignal(ctx, func() {})
	defer cancel()
	lost, err := c.Run(ctx)
	if ctx.Err() != nil {
		fmt.Fprintf(s.Stderr, "aiopslab: %d of %d runs are in %s. The Job %s goes on, if it was begun; the same "+
			"command with --name %s gathers the rest, and 'kubectl -n %s delete job %s' stops it.\n",
			n, len(cells), c.Dir, c.Name, c.Name, c.Namespace, c.Name)
		return exitStatus(ExitSignal + int(syscall.SIGINT))
	}
	if err != nil {
		return fail(ExitEnvironment, err, "What is recorded is kept. The same command, with --name "+c.Name+
			", goes on with the rest.")
	}
	for i, x := range cells {
		if why, yes := lost[i]; yes {
			n++
			x.Got, x.Why = string(session.Infra), why
			done(n, x)
		}
	}
	return nil
}

// open finds the cluster, and names what the user has not named.
func (f *campaignFlags) open(ctx context.Context, v *verifyFlags, c *campaign.Campaign) error {
	id, err := c.Plan.Digest()
	if err != nil {
		return fail(ExitUsage, err, "Choose fewer problems, agents or repetitions at a time.")
	}
	if f.name == "" {
		f.name = "verify-" + id
	}
	options := kube.Options{Kubeconfig: v.cloud.kubeconfig, Context: v.cloud.context}
	r, err := kube.Resolve(options)
	if err != nil {
		return fail(ExitUsage, err, clusterHint)
	}
	if f.namespace == "" {
		if f.namespace, err = namespaceOf(r); err != nil {
			return fail(ExitUsage, err, clusterHint)
		}
	}
	c.Name, c.Namespace, c.Dir = f.name, f.namespace, f.dir(v.results)
	if err := checkResults(c.Dir); err != nil {
		return err
	}
	if c.Cloud, err = kube.Open(ctx, options); err != nil {
		return fail(ExitEnvironment, err, clusterHint)
	}
	return nil
}

// namespaceOf is the namespace of a kubeconfig's context.
func namespaceOf(r kube.Resolved) (string, error) {
	config, err := clientcmd.Load(r.Config)
	if err != nil {
		return "", err
	}
	if x := config.Contexts[r.Context]; x != nil && x.Namespace != "" {
		return x.Namespace, nil
	}
	return "default", nil
}
