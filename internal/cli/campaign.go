package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/campaign"
	"github.com/aiopslab/aiopslab/problem"
)

// campaignFlags say how a Job of a cluster does runs.
type campaignFlags struct {
	podFlags
	name, records      string
	retries, maxFailed int
	keep               bool

	place campaign.Place
	s3    campaign.S3
	pods  int // at a time
}

func (f *campaignFlags) add(c *cobra.Command) {
	f.podFlags.add(c, "runs")
	flags := c.Flags()
	flags.StringVar(&f.name, "name", "",
		"`name` of the Job and of its records; the same one again goes on (default is made from the runs)")
	flags.StringVar(&f.records, "records", "",
		"`where` the pods keep records: pvc:CLAIM, a volume; or s3://BUCKET/PREFIX, any store that speaks S3")
	flags.StringVar(&f.s3.Secret, "s3-secret", "",
		"`name` of the Secret with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, for records in a bucket")
	flags.StringVar(&f.s3.Endpoint, "s3-endpoint", "", "`URL` of the store, as pods reach it (default Amazon's)")
	flags.StringVar(&f.s3.Region, "s3-region", "", "`region` of the bucket (default us-east-1)")
	flags.IntVar(&f.retries, "retries", campaign.DefaultRetries, "how often a run is tried again whose pod failed")
	flags.IntVar(&f.maxFailed, "max-failed", 0, "if more runs than these fail, the rest is not run (default a tenth)")
	flags.BoolVar(&f.keep, "keep", false, "leave the Job and its pods in the cluster in the end")
}

var campaignName = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$`)

// campaignOnly are the flags that mean nothing on one machine, besides podsOnly.
var campaignOnly = []string{
	"name", "records", "s3-secret", "s3-endpoint", "s3-region", "retries", "max-failed", "keep",
}

// complete checks the flags, and fills in what follows from others.
func (f *campaignFlags) complete(c *cobra.Command, v *verifyFlags) (err error) {
	if !f.cluster() {
		return refuseUnused(c, campaignOnly, podsOnly)
	}
	if err := f.podFlags.complete(&v.cloud, v.memory.bytes); err != nil {
		return err
	}
	usage := func(hint, format string, args ...any) error {
		return fail(ExitUsage, fmt.Errorf(format, args...), hint)
	}
	switch {
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
			x.lost(why)
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
	c.Dir = f.dir(v.results)
	if err := checkResults(c.Dir); err != nil {
		return err
	}
	c.Cloud, err = f.connect(ctx, &v.cloud)
	c.Name, c.Namespace = f.name, f.namespace
	return err
}
