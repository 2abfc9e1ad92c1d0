package campaign

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// clearTime is how long the cluster may take to remove a campaign's objects.
const clearTime = time.Minute

// unmendable wraps errors that do not pass by themselves.
type unmendable struct{ error }

func (e unmendable) Unwrap() error { return e.error }

func fatal(err error) bool {
	_, ok := errors.AsType[unmendable](err)
	return ok
}

// preflight looks whether what the user has named is there. What he may not look at, the pods tell.
func (c *Campaign) preflight(ctx context.Context) error {
	core := c.client.CoreV1()
	if _, err := core.Namespaces().Get(ctx, c.Namespace, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no namespace %s: make it, or choose another with --namespace", c.Namespace)
	}
	secrets := map[string]string{c.ModelSecret: "the variables of your models, such as OPENAI_API_KEY"}
	if c.Records.Claim == "" {
		secrets[c.S3.Secret] = "the keys " + keyVariable + " and " + secretVariable
	}
	for name, has := range secrets {
		if name == "" {
			continue
		}
		if _, err := core.Secrets(c.Namespace).Get(ctx, name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			return fmt.Errorf("there is no Secret %s in namespace %s: make it with %s", name, c.Namespace, has)
		}
	}
	if c.Records.Claim == "" {
		return nil
	}
	claim, err := core.PersistentVolumeClaims(c.Namespace).Get(ctx, c.Records.Claim, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no claim %s in namespace %s: make a PersistentVolumeClaim of that name, with "+
			"accessModes [ReadWriteMany]", c.Records.Claim, c.Namespace)
	case apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return fmt.Errorf("look for the claim %s: %w", c.Records.Claim, err)
	}
	return c.checkModes(claim.Spec.AccessModes)
}

// checkModes refuses a claim that one pod alone can use, and tells what comes of one that one node alone can use.
func (c *Campaign) checkModes(modes []v1.PersistentVolumeAccessMode) error {
	node := false
	for _, m := range modes {
		switch m {
		case v1.ReadWriteMany:
			return nil
		case v1.ReadWriteOnce:
			node = true
		}
	}
	if !node {
		return fmt.Errorf("no two pods can write to the claim %s, whose access modes are %v: make one with "+
			"[ReadWriteMany]", c.Records.Claim, modes)
	}
	c.tell("the claim %s is ReadWriteOnce: all runs take place on the one node that has its volume; one that is "+
		"ReadWriteMany, or a bucket, lets them spread", c.Records.Claim)
	return nil
}

// refused explains why the API server does not take an object.
func refused(what string, err error) error {
	switch {
	case apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause):
		return unmendable{fmt.Errorf("%s: %w: choose another --namespace, or wait until it is gone", what, err)}
	case apierrors.IsForbidden(err):
		return unmendable{fmt.Errorf("%s: %w: %s", what, err, forbiddenAdvice(err))}
	case apierrors.IsInvalid(err):
		return unmendable{fmt.Errorf("%s: %w", what, err)}
	}
	return fmt.Errorf("%s: %w", what, err)
}

// putConfig makes the ConfigMap of a share, and returns its name.
func (c *Campaign) putConfig(ctx context.Context, todo indexes) (string, error) {
	m := c.configMap(todo)
	_, err := c.client.CoreV1().ConfigMaps(c.Namespace).Create(ctx, m, metav1.CreateOptions{})
	if err == nil {
		return m.Name, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return "", refused("make the ConfigMap "+m.Name, err)
	}
	there, err := c.client.CoreV1().ConfigMaps(c.Namespace).Get(ctx, m.Name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("look at the ConfigMap %s: %w", m.Name, err)
	}
	if string(there.BinaryData[planName]) != string(c.encoded) || there.Data[indexesName] != m.Data[indexesName] {
		return "", unmendable{fmt.Errorf("the ConfigMap %s in namespace %s is of another campaign: choose another "+
			"--name", m.Name, c.Namespace)}
	}
	return m.Name, nil
}

// ensureJob returns the Job that runs what is not recorded, and what it is for: the one that is there, or a new one. A
// Job that has ended is replaced, so that what has failed in it is tried again. There is none if all that is not
// recorded is lost.
func (c *Campaign) ensureJob(ctx context.Context, lost map[int]string) (*batchv1.Job, indexes, error) {
	jobs := c.client.BatchV1().Jobs(c.Namespace)
	job, err := jobs.Get(ctx, c.Name, metav1.GetOptions{})
	switch {
	case err == nil && job.Labels[Label] != c.Name:
		return nil, nil, fmt.Errorf("the Job %s in namespace %s is somebody else's: choose another --name", c.Name,
			c.Namespace)
	case err == nil && finished(job) == "" && job.DeletionTimestamp == nil:
		todo, err := c.shareOf(ctx, job)
		if err == nil {
			c.tell("the Job %s is there already, for %d runs", c.Name, len(todo))
		}
		return job, todo, err
	case err == nil:
		if err := c.removeJob(ctx); err != nil {
			return nil, nil, err
		}
	case !apierrors.IsNotFound(err):
		return nil, nil, fmt.Errorf("look for the Job %s: %w", c.Name, err)
	}
	var todo indexes
	for _, i := range c.todo() {
		if _, yes := lost[i]; !yes {
			todo = append(todo, i)
		}
	}
	if len(todo) == 0 {
		return nil, nil, nil
	}
	config, err := c.putConfig(ctx, todo)
	if err != nil {
		return nil, nil, err
	}
	if job, err = jobs.Create(ctx, c.job(config, todo), metav1.CreateOptions{}); err != nil {
		return nil, nil, refused("make the Job "+c.Name, err)
	}
	c.tell("the Job %s in namespace %s has %d runs, %d at a time", c.Name, c.Namespace, len(todo),
		ptr.Deref(job.Spec.Parallelism, 1))
	return job, todo, nil
}

// shareOf is what a Job that is there is for.
func (c *Campaign) shareOf(ctx context.Context, job *batchv1.Job) (indexes, error) {
	for _, v := range job.Spec.Template.Spec.Volumes {
		if v.ConfigMap == nil {
			continue
		}
		m, err := c.client.CoreV1().ConfigMaps(c.Namespace).Get(ctx, v.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("look at what the Job %s is for: %w", c.Name, err)
		}
		if string(m.BinaryData[planName]) != string(c.encoded) {
			return nil, fmt.Errorf("the Job %s in namespace %s is for other runs: choose another --name", c.Name,
				c.Namespace)
		}
		return parseIndexes(m.Data[indexesName], len(c.Plan.Runs))
	}
	return nil, fmt.Errorf("the Job %s in namespace %s does not say what it is for: remove it", c.Name, c.Namespace)
}

// look asks how the Job is, and then gathers: if it has ended, all of its records are there.
func (c *Campaign) look(ctx context.Context, job *batchv1.Job) (*batchv1.Job, error) {
	now, err := c.client.BatchV1().Jobs(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && now.UID != job.UID {
		return nil, unmendable{fmt.Errorf("somebody has removed the Job %s: start it again to go on", c.Name)}
	}
	if err != nil {
		return nil, fmt.Errorf("look at the Job %s: %w", c.Name, err)
	}
	if err := c.gather(ctx); err != nil {
		return nil, errors.Join(err, c.hire(ctx)) // Its keeper may be gone, with its node.
	}
	return now, nil
}

// removeJob removes the Job with its pods, and waits until the name is free.
func (c *Campaign) removeJob(ctx context.Context) error {
	jobs := c.client.BatchV1().Jobs(c.Namespace)
	withPods := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
	for {
		err := jobs.Delete(ctx, c.Name, withPods)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return refused("remove the Job "+c.Name, err)
		}
		select {
		case <-time.After(min(c.Poll, time.Second/2)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// dismiss removes the keeper, if the cluster lets it.
func (c *Campaign) dismiss() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = c.client.CoreV1().Pods(c.Namespace).Delete(ctx, c.keeper("").Name, metav1.DeleteOptions{})
}

// leave removes what is of no use while nobody watches: the keeper, and the lists of runs if there is no Job that needs
// them.
func (c *Campaign) leave() {
	c.dismiss()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, err := c.client.BatchV1().Jobs(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		_ = c.removeConfigs(ctx) // They say nothing that is secret, and the next one finds them.
	}
}

// clear removes all that the campaign has made in the cluster, but the records, unless it is to be kept.
func (c *Campaign) clear() error {
	if c.Keep {
		c.dismiss()
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), clearTime)
	defer cancel()
	err := c.removeJob(ctx)
	c.dismiss()
	return errors.Join(err, c.removeConfigs(ctx))
}

// removeConfigs removes the lists of runs.
func (c *Campaign) removeConfigs(ctx context.Context) error {
	maps := c.client.CoreV1().ConfigMaps(c.Namespace)
	list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: c.selector()})
	if err != nil {
		return fmt.Errorf("list the ConfigMaps of the campaign: %w", err)
	}
	for _, m := range list.Items {
		this := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &m.UID}}
		derr := maps.Delete(ctx, m.Name, this)
		if !apierrors.IsNotFound(derr) && !apierrors.IsConflict(derr) {
			err = errors.Join(err, derr)
		}
	}
	return err
}
