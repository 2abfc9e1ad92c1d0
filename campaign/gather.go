package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/campaign/local"
)

const (
	// fetchers is how many records are fetched at a time.
	fetchers = 4
	// maxDead is how many keepers are replaced, one after another, until it is told what they die of.
	maxDead = 60
	// exitNotStarted is the status of a container whose program is not there. That of one that was killed is larger.
	exitNotStarted = 128
	// maxRecord is the size of a record that is gathered, and of telemetry. Records are some 100 kB, telemetry some MB.
	maxRecord = 64 << 20
)

// hire makes sure that there is a keeper who answers.
func (c *Campaign) hire(ctx context.Context) error {
	var all indexes
	for i := range c.Plan.Runs {
		all = append(all, i)
	}
	config, err := c.putConfig(ctx, all)
	if err != nil {
		return err
	}
	pods, want, since, dead := c.client.CoreV1().Pods(c.Namespace), c.keeper(config), time.Now(), 0
	for {
		late := time.Since(since) > pullLooks*c.Poll
		p, err := pods.Get(ctx, want.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			if _, err := pods.Create(ctx, want, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
				return refused("make the pod "+want.Name, err)
			}
		case err != nil:
			return fmt.Errorf("look for the pod %s: %w", want.Name, err)
		case p.Labels[Label] != c.Name:
			return unmendable{fmt.Errorf("the pod %s is somebody else's: choose another --name", p.Name)}
		case c.useless(p) && dead < maxDead, unlucky(p) && (!late || c.hired):
			dead++
			if err := c.fire(ctx, p); err != nil {
				return err
			}
			if late { // It has worked before, and may again.
				return fmt.Errorf("the records are out of reach: %s", lastWords(p))
			}
		default:
			if _, err := c.recorded(ctx); err == nil {
				c.hired = true
				return nil
			}
			if err := c.trouble(p, late); err != nil {
				return err
			}
		}
		select {
		case <-time.After(min(c.Poll, time.Second/2)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// fire removes a keeper, so that the next can have its name.
func (c *Campaign) fire(ctx context.Context, p *v1.Pod) error {
	err := c.client.CoreV1().Pods(c.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To(int64(0)), Preconditions: &metav1.Preconditions{UID: &p.UID},
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return refused("replace the pod "+p.Name, err)
	}
	return nil
}

// unlucky reports whether a keeper has ended because of something that may pass, such as a network that is down.
func unlucky(p *v1.Pod) bool {
	return p.Status.Phase == v1.PodFailed && exitCode(p) != ExitBadInput && exitCode(p) != exitNotStarted
}

// useless reports whether a keeper will never answer, by no fault of its own.
func (c *Campaign) useless(p *v1.Pod) bool {
	image := p.Spec.Containers[0].Image != c.Image // An earlier command had the wrong one.
	lost := false                                  // with its node
	for _, x := range p.Status.Conditions {
		lost = lost || x.Type == v1.DisruptionTarget && x.Status == v1.ConditionTrue ||
			x.Type == v1.PodReady && x.Status == v1.ConditionFalse && x.Reason == "NodeLost"
	}
	killed := p.Status.Phase == v1.PodFailed && exitCode(p) > exitNotStarted
	return image || lost || killed || p.Status.Phase == v1.PodSucceeded || p.DeletionTimestamp != nil
}

// ask asks the keeper for something.
func (c *Campaign) ask(ctx context.Context, path string) ([]byte, error) {
	p, err := c.client.CoreV1().Pods(c.Namespace).Get(ctx, c.keeper("").Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("look for the keeper of the records: %w", err)
	}
	if p.Status.Phase != v1.PodRunning || p.Status.PodIP == "" {
		return nil, errors.New("the keeper of the records is not there yet")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"http://"+net.JoinHostPort(p.Status.PodIP, strconv.Itoa(keeperPort))+path, nil)
	if err != nil {
		return nil, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("the keeper of the records does not answer: %w", err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxRecord+1))
	if err != nil {
		return nil, fmt.Errorf("the keeper of the records broke off: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the keeper of the records says: %s", strings.TrimSpace(string(b[:min(len(b), 500)])))
	}
	if len(b) > maxRecord {
		return nil, fmt.Errorf("a record is larger than %d MiB", maxRecord>>20)
	}
	return b, nil
}

// recorded are the runs whose records the keeper has.
func (c *Campaign) recorded(ctx context.Context) (indexes, error) {
	b, err := c.ask(ctx, recordedPath)
	if err != nil {
		return nil, err
	}
	return parseIndexes(string(b), len(c.Plan.Runs))
}

// gather fetches the records that are new.
func (c *Campaign) gather(ctx context.Context) error {
	there, err := c.recorded(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type fetched struct {
		index  int
		result *local.Result
		err    error
	}
	todo, done := make(chan int), make(chan fetched)
	var workers sync.WaitGroup
	for range fetchers {
		workers.Go(func() {
			for i := range todo {
				r, err := c.fetch(ctx, i)
				done <- fetched{i, r, err}
			}
		})
	}
	go func() {
		for _, i := range there {
			if !c.have[i] {
				todo <- i
			}
		}
		close(todo)
		workers.Wait()
		close(done)
	}()
	var got []fetched
	for f := range done {
		if f.err == nil {
			got = append(got, f)
		} else if err == nil {
			err = f.err
			cancel()
		}
	}
	for _, f := range got { // Until now the other goroutine has read what it changes.
		c.took(f.index, f.result)
	}
	return err
}

// fetch puts a record into the directory, with what belongs to it.
func (c *Campaign) fetch(ctx context.Context, i int) (*local.Result, error) {
	data, err := c.ask(ctx, recordPath+strconv.Itoa(i))
	if err != nil {
		return nil, err
	}
	r, err := check(data, c.Plan.Runs[i])
	if err != nil {
		return nil, unmendable{fmt.Errorf("%s at %s: %w; remove it to have it run again", RecordName(i), c.Records,
			err)}
	}
	if c.Plan.Telemetry {
		if err := c.fetchTelemetry(ctx, i); err != nil {
			return nil, err
		}
	}
	return r, c.save(RecordName(i), data)
}
