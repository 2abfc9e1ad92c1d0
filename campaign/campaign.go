package campaign

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/aiopslab/aiopslab/campaign/local"
	"github.com/aiopslab/aiopslab/cloud"
)

// The defaults of a campaign.
const (
	DefaultParallelism = 10
	DefaultRetries     = 3
	DefaultPoll        = 2 * time.Second
)

const (
	// patience is for how long the cluster may be out of reach until a campaign gives up. The Job does not mind.
	patience = 10 * time.Minute
	// silence is for how long it may be so until that is told.
	silence = 30 * time.Second
	silent  = "the cluster is asked again and again"
	// pullLooks is how often an image is looked after that cannot be pulled: a registry may be busy.
	pullLooks = 10
)

// Campaign is many runs, and the cluster that they take place in. Its first fields say which, and are needed.
type Campaign struct {
	Name      string // of the Job, and of the directory of its records
	Namespace string
	Plan      *Plan
	Cloud     cloud.Cloud
	Image     string // has the program aiopslab in its PATH
	Records   Place
	// WorkerArgs and KeeperArgs have the image's program be a [Worker] and a [Keeper]. Flags of these follow.
	WorkerArgs, KeeperArgs []string
	// Dir is the directory on this machine that the records are gathered in.
	Dir string

	S3          S3     // of records in a bucket
	ModelSecret string // whose keys are variables of the runs, for their models
	PullSecret  string // of the image
	Queue       string // of Kueue; if there is one, the Job waits until it is admitted
	Parallelism int    // how many runs go on at a time
	Retries     int    // how often a run is tried again
	MaxFailed   int    // if more runs fail for good, the rest is not run
	Resources   Resources
	Keep        bool // the Job and its pods, in the end
	Poll        time.Duration

	// Tell is told what happens, a line each, and Recorded of each run when its record is in Dir.
	Tell     func(line string)
	Recorded func(index int, r *local.Result)

	client  kubernetes.Interface
	http    *http.Client
	encoded []byte // the plan
	have    []bool // which records are in Dir
	missing int
	told    map[string]bool
	failed  int32 // tries of the Job, as of the last look
	hired   bool  // a keeper has answered
}

// Run takes the campaign to its end, and goes on with one that was begun. It returns the runs that there is no record
// of in the end, and why. If ctx ends, the Job goes on.
func (c *Campaign) Run(ctx context.Context) (lost map[int]string, err error) {
	if err := c.prepare(); err != nil {
		return nil, err
	}
	if c.missing == 0 {
		return nil, c.clear()
	}
	if err := c.preflight(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.leave() // Whoever comes back starts another keeper.
		}
	}()
	if err := c.hire(ctx); err != nil {
		return nil, err
	}
	if err := c.gather(ctx); err != nil {
		return nil, err
	}
	if c.missing > 0 {
		if lost, err = c.runJobs(ctx); err != nil {
			return nil, err
		}
	}
	return lost, c.clear()
}

// prepare looks at what is on this machine, and asks the cluster nothing.
func (c *Campaign) prepare() (err error) {
	if c.encoded, err = c.Plan.Encode(); err != nil {
		return err
	}
	config := rest.CopyConfig(c.Cloud.RESTConfig())
	config.Timeout, config.WarningHandler = time.Minute, rest.NoWarnings{}
	if c.client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	c.http = &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{
		DialContext: c.Cloud.Dial, MaxIdleConnsPerHost: fetchers, IdleConnTimeout: 20 * time.Second,
	}}
	if c.Poll <= 0 {
		c.Poll = DefaultPoll
	}
	c.told = map[string]bool{}
	c.have, c.missing = make([]bool, len(c.Plan.Runs)), len(c.Plan.Runs)
	return c.readDir()
}

// readDir takes what was gathered before.
func (c *Campaign) readDir() error {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	file := filepath.Join(c.Dir, planName)
	there, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := c.save(planName, c.encoded); err != nil {
			return err
		}
	case err != nil:
		return err
	case !bytes.Equal(there, c.encoded):
		return fmt.Errorf("%s has the records of other runs: choose another --name, or remove it", c.Dir)
	}
	for i := range c.have {
		data, err := os.ReadFile(filepath.Join(c.Dir, RecordName(i)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var r *local.Result
		if err == nil {
			r, err = check(data, c.Plan.Runs[i])
		}
		if err != nil {
			return fmt.Errorf("%s: %w; remove it to have it gathered again", filepath.Join(c.Dir, RecordName(i)), err)
		}
		c.took(i, r)
	}
	return nil
}

// save writes a file of the directory, which is there only when it is whole.
func (c *Campaign) save(name string, data []byte) error {
	f, err := os.CreateTemp(c.Dir, ".draft-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // Once it is renamed, it is not there.
	_, err = f.Write(data)
	if err := errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(c.Dir, name))
}

// took notes that a record is in the directory.
func (c *Campaign) took(i int, r *local.Result) {
	c.have[i] = true
	c.missing--
	if c.Recorded != nil {
		r.Record = filepath.Join(c.Dir, RecordName(i))
		c.Recorded(i, r)
	}
}

// todo are the runs without a record.
func (c *Campaign) todo() (list indexes) {
	for i, yes := range c.have {
		if !yes {
			list = append(list, i)
		}
	}
	return list
}

// tell says something once.
func (c *Campaign) tell(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if c.Tell != nil && !c.told[line] {
		c.told[line] = true
		c.Tell(line)
	}
}

// runJobs has the Job run what is not recorded, until it has ended.
func (c *Campaign) runJobs(ctx context.Context) (lost map[int]string, err error) {
	lost = map[int]string{}
	for {
		job, todo, err := c.ensureJob(ctx, lost)
		if err != nil || job == nil {
			return lost, err
		}
		if job, err = c.follow(ctx, job); err != nil {
			return lost, err
		}
		why := c.explain(ctx, job)
		for n, i := range todo {
			if !c.have[i] {
				lost[i] = why(n)
			}
		}
		if c.missing == len(lost) { // Else it was one of an earlier command, for fewer runs.
			return lost, nil
		}
		if err := c.removeJob(ctx); err != nil {
			return lost, err
		}
	}
}

// follow gathers records until the Job has ended, and returns it as it is then.
func (c *Campaign) follow(ctx context.Context, job *batchv1.Job) (*batchv1.Job, error) {
	well := time.Now()
	for {
		now, err := c.look(ctx, job)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err == nil && finished(now) != "":
			return now, nil
		case err == nil:
			well = time.Now()
			c.watchOver(ctx, now)
		case fatal(err) || time.Since(well) > patience:
			return nil, err
		case time.Since(well) > silence && !c.told[silent]:
			c.told[silent] = true
			c.tell("%s: %v", silent, err)
		}
		select {
		case <-time.After(c.Poll):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// finished is why the Job has ended, or nothing if it has not.
func finished(j *batchv1.Job) batchv1.JobConditionType {
	for _, x := range j.Status.Conditions {
		if (x.Type == batchv1.JobComplete || x.Type == batchv1.JobFailed) && x.Status == "True" {
			return x.Type
		}
	}
	return ""
}
