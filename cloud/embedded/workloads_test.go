package embedded_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const webDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {revision: %q}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: web
        image: registry.k8s.io/pause:3.10
`

func TestDeployment(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	c.apply(t, ns, fmt.Sprintf(webDeployment, 2, "one"))
	pods := c.readyPods(t, ns, "app=web", 2)

	// The ReplicaSet makes up for a pod that is lost.
	if err := c.client.CoreV1().Pods(ns).Delete(t.Context(), pods[0].Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, pods[0].Name, func() (*v1.Pod, error) {
		return c.client.CoreV1().Pods(ns).Get(t.Context(), pods[0].Name, metav1.GetOptions{})
	})
	c.readyPods(t, ns, "app=web", 2)

	// A new template is rolled out, and the old ReplicaSet is kept for a roll-back.
	c.apply(t, ns, fmt.Sprintf(webDeployment, 3, "two"))
	for _, p := range c.rolledOut(t, ns, "web", "app=web", 3) {
		if p.Annotations["revision"] != "two" {
			t.Errorf("pod %s is of revision %q", p.Name, p.Annotations["revision"])
		}
	}
	sets, err := c.client.AppsV1().ReplicaSets(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int32{}
	for _, s := range sets.Items {
		sizes[s.Annotations["deployment.kubernetes.io/revision"]] = *s.Spec.Replicas
	}
	if len(sizes) != 2 || sizes["1"] != 0 || sizes["2"] != 3 {
		t.Errorf("replicas by revision: %v, want none of 1 and three of 2", sizes)
	}
}

// rolledOut waits, as kubectl rollout status does, until a Deployment's latest template is all that
// runs, and returns its pods.
func (c *cluster) rolledOut(t *testing.T, ns, name, selector string, n int) []v1.Pod {
	t.Helper()
	await(t, func() (*appsv1.Deployment, error) {
		d, err := c.client.AppsV1().Deployments(ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if s := d.Status; s.ObservedGeneration != d.Generation || s.UpdatedReplicas != int32(n) || s.Replicas != int32(n) || s.AvailableReplicas != int32(n) {
			return nil, fmt.Errorf("deployment %s is not rolled out: %+v", name, s)
		}
		return d, nil
	})
	return c.readyPods(t, ns, selector, n)
}

func TestDaemonSet(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	c.apply(t, ns, `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers: [{name: agent, image: registry.k8s.io/pause:3.10}]
`)
	var nodes []string
	for _, p := range c.readyPods(t, ns, "app=agent", 3) {
		nodes = append(nodes, p.Spec.NodeName)
	}
	slices.Sort(nodes)
	if want := []string{"node-1", "node-2", "node-3"}; !slices.Equal(nodes, want) {
		t.Errorf("pods are on %v, want one on each of %v", nodes, want)
	}
}

func TestJob(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	c.apply(t, ns, `
apiVersion: batch/v1
kind: Job
metadata: {name: count}
spec:
  completions: 3
  parallelism: 2
  completionMode: Indexed
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: busybox
        command: [sh, -c, 'echo index $JOB_COMPLETION_INDEX']
`)
	j := c.awaitJob(t, ns, "count", batchv1.JobComplete)
	if j.Status.Succeeded != 3 || j.Status.CompletedIndexes != "0-2" {
		t.Errorf("succeeded %d, indexes %s", j.Status.Succeeded, j.Status.CompletedIndexes)
	}
	pods, err := c.client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-completion-index=1"})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("pods of index 1: %d, %v", len(pods.Items), err)
	}
	log, err := c.client.CoreV1().Pods(ns).GetLogs(pods.Items[0].Name, &v1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil || string(log) != "index 1\n" {
		t.Errorf("log of index 1 is %q, %v", log, err)
	}
}

func (c *cluster) awaitJob(t *testing.T, ns, name string, want batchv1.JobConditionType) *batchv1.Job {
	t.Helper()
	return await(t, func() (*batchv1.Job, error) {
		j, err := c.client.BatchV1().Jobs(ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		for _, cond := range j.Status.Conditions {
			if cond.Type == want && cond.Status == v1.ConditionTrue {
				return j, nil
			}
		}
		return nil, fmt.Errorf("job %s is not %s: %+v", name, want, j.Status)
	})
}

func TestJobFails(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	c.apply(t, ns, `
apiVersion: batch/v1
kind: Job
metadata: {name: bad}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox, command: [sh, -c, exit 3]}]
`)
	j := c.awaitJob(t, ns, "bad", batchv1.JobFailed)
	if cond := j.Status.Conditions[len(j.Status.Conditions)-1]; cond.Reason != "BackoffLimitExceeded" || cond.Message != "Job has reached the specified backoff limit" {
		t.Errorf("the job failed with %s: %s", cond.Reason, cond.Message)
	}
}

// A job that is to be forgotten goes with its pods.
func TestTTLAfterFinished(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	c.apply(t, ns, `
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  ttlSecondsAfterFinished: 0
  template:
    metadata: {labels: {app: once}}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox, command: ["true"]}]
`)
	awaitGone(t, "the job", func() (*batchv1.Job, error) {
		return c.client.BatchV1().Jobs(ns).Get(t.Context(), "once", metav1.GetOptions{})
	})
	c.readyPods(t, ns, "app=once", 0)
}

func TestCronJob(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	c.apply(t, ns, `
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "* * * * *"
  concurrencyPolicy: Forbid
  suspend: true
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: main, image: busybox, command: [date]}]
`)
	// It has not run for two minutes, so it is due the moment it may run.
	jobs := c.client.BatchV1().CronJobs(ns)
	status := fmt.Sprintf(`{"status":{"lastScheduleTime":%q}}`, time.Now().UTC().Add(-2*time.Minute).Format(time.RFC3339))
	if _, err := jobs.Patch(t.Context(), "nightly", types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	if _, err := jobs.Patch(t.Context(), "nightly", types.MergePatchType, []byte(`{"spec":{"suspend":false}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	run := await(t, func() (*batchv1.Job, error) {
		list, err := c.client.BatchV1().Jobs(ns).List(t.Context(), metav1.ListOptions{})
		if err == nil && len(list.Items) == 0 {
			err = fmt.Errorf("there is no job yet")
		}
		if err != nil {
			return nil, err
		}
		return &list.Items[0], nil
	})
	c.awaitJob(t, ns, run.Name, batchv1.JobComplete)
	await(t, func() (*batchv1.CronJob, error) {
		j, err := jobs.Get(t.Context(), "nightly", metav1.GetOptions{})
		if err == nil && j.Status.LastSuccessfulTime == nil {
			err = fmt.Errorf("the CronJob has not noticed that its job succeeded: %+v", j.Status)
		}
		return j, err
	})
}
