package campaign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/cloud/kube"
	"github.com/aiopslab/aiopslab/session"
	"github.com/aiopslab/aiopslab/session/process"
)

const (
	// postName begins the name of a post's Job.
	postName = "aiopslab-environment-"
	// keepPost is how long the Job of a post is kept that has ended while nobody could remove it, in seconds.
	keepPost = 300
	// postPoll is how often a pod is looked at that is not there yet.
	postPoll = 500 * time.Millisecond
	// imageTime is how long nodes may fail to pull an image.
	imageTime = 2 * time.Minute
	// autopsyTime is how long the cluster may take to tell how a pod has ended.
	autopsyTime = 10 * time.Second
)

// Posts are the places where the environments of a server run: each is the pod of a Job of its own, for as long as the
// server is attached to it. Nothing else is needed of the cluster's network than the way to its API server.
type Posts struct {
	Cloud      *kube.Cloud
	Namespace  string
	Image      string // of this program
	PullSecret string // that it is pulled with; may be empty
	Queue      string // of Kueue that admits the Jobs; may be empty
	Resources  Resources
	// Args are those of a program that serves [process.Stdout].
	Args []string
	// Tell is told what holds a post up.
	Tell func(line string)

	client kubernetes.Interface
	config *rest.Config
}

// Open looks whether the cluster lets Jobs be made.
func (p *Posts) Open(ctx context.Context) (err error) {
	p.config = rest.CopyConfig(p.Cloud.RESTConfig())
	p.config.WarningHandler = rest.NoWarnings{}
	short := rest.CopyConfig(p.config)
	short.Timeout = time.Minute
	if p.client, err = kubernetes.NewForConfig(short); err != nil {
		return err
	}
	return p.try(ctx)
}

// try has the cluster say whether it would take a Job, without making one.
func (p *Posts) try(ctx context.Context) error {
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	_, err := p.client.BatchV1().Jobs(p.Namespace).Create(ctx, p.job(), dry)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no namespace %s: make it, or choose another with --namespace", p.Namespace)
	}
	if err != nil {
		return refused("make a Job in namespace "+p.Namespace, err)
	}
	return nil
}

// New is a place for one environment.
func (p *Posts) New() process.Place { return &post{Posts: p} }

func (p *Posts) job() *batchv1.Job {
	labels := func() map[string]string {
		return map[string]string{
			"app.kubernetes.io/name": "aiopslab", "app.kubernetes.io/component": "environment",
		}
	}
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{GenerateName: postName, Namespace: p.Namespace, Labels: labels()},
		Spec: batchv1.JobSpec{
			BackoffLimit: ptr.To(int32(0)), // What was in it is gone, and so is who was attached to it.
			// A pod that was evicted is not made anew either, for the same reason.
			PodReplacementPolicy:    ptr.To(batchv1.Failed),
			TTLSecondsAfterFinished: ptr.To(int32(keepPost)),
		},
	}
	t := &j.Spec.Template
	t.Labels, t.Annotations = labels(), undisturbed()
	t.Spec = unprivileged(p.Image, p.PullSecret, p.Resources.Scratch, p.Resources.requirements())
	t.Spec.TerminationGracePeriodSeconds = ptr.To(int64(1))
	x := &t.Spec.Containers[0]
	// With the connection, its input ends, and so does what reads it: no post outlives its server.
	x.Args, x.Stdin, x.StdinOnce = p.Args, true, true
	most := strconv.FormatInt(p.Resources.MaxMemory.Value()/8*5, 10) // The rest is for what it starts.
	x.Env = append(x.Env, v1.EnvVar{Name: "GOMEMLIMIT", Value: most})
	if p.Queue != "" {
		j.Labels[queueLabel], j.Spec.Suspend = p.Queue, ptr.To(true)
	}
	return j
}

// post is one environment's place.
type post struct {
	*Posts
	job string
	pod atomic.Pointer[string] // its name, once it runs
}

// String names the Job.
func (p *post) String() string { return "Job " + p.Namespace + "/" + cmp.Or(p.job, postName+"*") }

// Dial implements [process.Place] by the API server's port-forward, which ends at the loopback of the pod.
func (p *post) Dial(ctx context.Context, port int) (net.Conn, error) {
	pod := p.pod.Load()
	if pod == nil {
		return nil, errors.New("the pod does not run yet")
	}
	return p.Cloud.DialPod(ctx, p.Namespace, *pod, port)
}

// Run implements [process.Place].
func (p *post) Run(ctx context.Context, in io.Reader, answers, words io.Writer) error {
	j, err := p.client.BatchV1().Jobs(p.Namespace).Create(ctx, p.Posts.job(), metav1.CreateOptions{})
	if err != nil {
		return &session.Death{Why: refused("make its Job", err).Error(), Outside: true}
	}
	p.job = j.Name
	defer p.remove()
	pod, err := p.await(ctx)
	if err != nil {
		return &session.Death{Why: err.Error(), Outside: true}
	}
	p.pod.Store(&pod.Name)
	err = p.attach(ctx, pod.Name, remotecommand.StreamOptions{Stdin: in, Stdout: answers, Stderr: words})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return p.autopsy(pod, err)
}

// await returns the pod when it runs.
func (p *post) await(ctx context.Context) (*v1.Pod, error) {
	tick := time.NewTicker(postPoll)
	defer tick.Stop()
	var since time.Time // when it was seen first that it hardly comes
	told := ""
	for {
		list, err := p.client.CoreV1().Pods(p.Namespace).List(ctx, metav1.ListOptions{
			LabelSelector: batchv1.JobNameLabel + "=" + p.job,
		})
		line, stuck := "", false
		for _, pod := range list.Items {
			switch {
			case pod.DeletionTimestamp != nil:
				return nil, errors.New("its pod was removed before it ran")
			case pod.Status.Phase == v1.PodRunning:
				return &pod, nil
			case pod.Status.Phase == v1.PodFailed || pod.Status.Phase == v1.PodSucceeded:
				last := cmp.Or(lastWords(&pod), "nothing was said")
				return nil, fmt.Errorf("its pod has ended: %s: %s", last, imageAdvice)
			}
			line, stuck = waiting(&pod)
		}
		if err == nil && len(list.Items) == 0 {
			line = p.refusal(ctx)
		}
		if line != "" && line != told && p.Tell != nil {
			told = line
			p.Tell(line)
		}
		if !stuck {
			since = time.Time{}
		} else if since.IsZero() {
			since = time.Now()
		} else if time.Since(since) > imageTime {
			return nil, errors.New(line)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// refusal is why the cluster makes no pod for the Job, as its last event says, if it says so.
func (p *post) refusal(ctx context.Context) string {
	list, err := p.client.CoreV1().Events(p.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "involvedObject.kind=Job,reason=FailedCreate,involvedObject.name=" + p.job,
	})
	if err != nil || len(list.Items) == 0 {
		return ""
	}
	return "the cluster does not let the Job make a pod: " + short(list.Items[len(list.Items)-1].Message)
}

// attach is connected to the streams of the pod until one end closes them: over a WebSocket, or over SPDY where
// something on the way does not know WebSockets.
func (p *post) attach(ctx context.Context, pod string, o remotecommand.StreamOptions) error {
	url := p.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(p.Namespace).Name(pod).
		SubResource("attach").VersionedParams(&v1.PodAttachOptions{
		Container: container, Stdin: true, Stdout: true, Stderr: true,
	}, scheme.ParameterCodec).URL()
	socket, err := remotecommand.NewWebSocketExecutor(p.config, http.MethodGet, url.String())
	if err != nil {
		return err
	}
	spdy, err := remotecommand.NewSPDYExecutor(p.config, http.MethodPost, url)
	if err != nil {
		return err
	}
	e, err := remotecommand.NewFallbackExecutor(socket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return err
	}
	// It would print that a connection ends, which is no news: how the process ended is found out afterwards.
	return e.StreamWithContext(klog.NewContext(ctx, klog.Logger{}), o)
}

// autopsy says how the process has ended. What the container did itself is its own; whatever else ends a pod, or the
// way to it, is not.
func (p *post) autopsy(before *v1.Pod, why error) error {
	ctx, cancel := context.WithTimeout(context.Background(), autopsyTime)
	defer cancel()
	tick := time.NewTicker(postPoll)
	defer tick.Stop()
	for {
		pod, err := p.client.CoreV1().Pods(p.Namespace).Get(ctx, before.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return &session.Death{Why: "its pod was removed", Outside: true}
		case err == nil && disrupted(pod):
			reason := cmp.Or(short(pod.Status.Message), lastWords(pod), "nobody says why")
			return &session.Death{Why: "its pod had to go: " + reason, Outside: true}
		case err == nil && pod.Status.Reason == "Evicted": // It has taken more of its node's disk than it may.
			return &session.Death{Why: short(pod.Status.Message), Exhausted: true}
		case err == nil:
			for _, s := range pod.Status.ContainerStatuses {
				if t := s.State.Terminated; t != nil {
					return &session.Death{
						Why:       cmp.Or(lastWords(pod), "it exited"),
						Exhausted: t.Reason == "OOMKilled",
					}
				}
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return &session.Death{Why: fmt.Sprintf("the connection to its pod broke: %v", why), Outside: true}
		}
	}
}

// disrupted reports whether a pod had to go for reasons that are not its own: its node, a drain, somebody who deleted
// it.
func disrupted(p *v1.Pod) bool {
	if p.DeletionTimestamp != nil {
		return true
	}
	for _, c := range p.Status.Conditions {
		if c.Type == v1.DisruptionTarget && c.Status == v1.ConditionTrue {
			return true
		}
	}
	return false
}

// remove removes the Job with its pod. One that cannot be removed goes by itself: its input has ended.
func (p *post) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), autopsyTime)
	defer cancel()
	err := p.client.BatchV1().Jobs(p.Namespace).Delete(ctx, p.job, metav1.DeleteOptions{
		PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
	})
	if err != nil && !apierrors.IsNotFound(err) && p.Tell != nil {
		p.Tell(fmt.Sprintf("the Job %s could not be removed, and ends by itself: %v", p.job, err))
	}
}
