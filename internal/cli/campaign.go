package cli

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/campaign"
	"github.com/aiopslab/aiopslab/campaign/local"
	"github.com/aiopslab/aiopslab/problem"
)

// campaignFlags say how a Job of a cluster does runs.
type campaignFlags struct {
	podFlags
	name, records      string
	modelSecret        string // only of commands whose agents have models
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
func (f *campaignFlags) complete(c *cobra.Command, m *matrix) (err error) {
	if !f.cluster() {
		return refuseUnused(c, campaignOnly, podsOnly)
	}
	if err := f.podFlags.complete(&m.cloud, m.memory.bytes); err != nil {
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
	}
	if f.place, err = campaign.ParsePlace(f.records); err != nil {
		return fail(ExitUsage, fmt.Errorf("--records: %w", err), "")
	}
	if err := f.s3.Check(f.place); err != nil {
		return fail(ExitUsage, err, "docs/campaigns.md has an example.")
	}
	f.pods = campaign.DefaultParallelism
	if c.Flags().Changed("workers") {
		f.pods = m.workers
	}
	m.workers = f.pods
	return nil
}

// documents are those of the problems that the image does not have. It refuses problems of applications that it does
// not have.
func documents(problems []*problem.Problem) (list []string, err error) {
	have := map[*problem.Document]bool{}
	for _, p := range problems {
		switch {
		case p.App.Archive != nil:
			return nil, fail(ExitUsage, fmt.Errorf("%s is about %s, an application that no pod has", p.ID, p.App.Name),
				"Build a program that has it with lab.Main, and an image of that: docs/campaigns.md.")
		case !p.BuiltIn() && !have[p.Document]:
			list, have[p.Document] = append(list, string(p.Document.Source)), true
		}
	}
	return list, nil
}

// dir is the directory that the records are gathered in.
func (f *campaignFlags) dir(results string) string {
	if results != "" {
		return results
	}
	return filepath.Join(defaultResults, f.name)
}

// runInPods has a Job run a plan. Recorded is told of each run when its record is there, lost of those without one in
// the end, and why.
func (f *campaignFlags) runInPods(ctx context.Context, s *State, m *matrix, kind string, plan *campaign.Plan,
	recorded func(i int, r *local.Result), lost func(i int, why string),
) error {
	out, n := m.progress(s), 0
	c := &campaign.Campaign{
		Plan: plan, Image: f.image, S3: f.s3, ModelSecret: f.modelSecret, PullSecret: f.pullSecret, Records: f.place,
		Queue: f.queue, Keep: f.keep, WorkerArgs: []string{"campaign", "run"}, KeeperArgs: []string{"campaign", "keep"},
		Parallelism: f.pods, Retries: f.retries, MaxFailed: f.maxFailed, Resources: f.resources,
		Tell: func(line string) { fmt.Fprintln(out, line) },
		Recorded: func(i int, r *local.Result) {
			n++
			recorded(i, r)
		},
	}
	if c.MaxFailed == 0 {
		c.MaxFailed = max(10, len(plan.Runs)/10)
	}
	if err := f.open(ctx, m, kind, c); err != nil {
		return err
	}
	defer c.Cloud.Close()
	ctx, cancel := untilSignal(ctx, func() {})
	defer cancel()
	without, err := c.Run(ctx)
	if ctx.Err() != nil {
		fmt.Fprintf(s.Stderr, "aiopslab: %d of %d runs are in %s. The Job %s goes on, if it was begun; the same "+
			"command with --name %s gathers the rest, and 'kubectl -n %s delete job %s' stops it.\n",
			n, len(plan.Runs), c.Dir, c.Name, c.Name, c.Namespace, c.Name)
		return exitStatus(ExitSignal + int(syscall.SIGINT))
	}
	if err != nil {
		return fail(ExitEnvironment, err, "What is recorded is kept. The same command, with --name "+c.Name+
			", goes on with the rest.")
	}
	for _, i := range slices.Sorted(maps.Keys(without)) {
		lost(i, without[i])
	}
	return nil
}

// open finds the cluster, and names what the user has not named.
func (f *campaignFlags) open(ctx context.Context, m *matrix, kind string, c *campaign.Campaign) error {
	id, err := c.Plan.Digest()
	if err != nil {
		return fail(ExitUsage, err, "Choose fewer problems, agents or repetitions at a time.")
	}
	if f.name == "" {
		f.name = kind + "-" + id
	}
	c.Dir = f.dir(m.results)
	if err := checkResults(c.Dir); err != nil {
		return err
	}
	c.Cloud, err = f.connect(ctx, &m.cloud)
	c.Name, c.Namespace = f.name, f.namespace
	return err
}
