package session

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/workload"
	"github.com/aiopslab/aiopslab/workload/remote"
	"github.com/aiopslab/aiopslab/world"
)

// LoadNamespace is where the load generator runs as a pod, unless the cluster has other runs beside this one. Agents
// have no rights in it: whoever could read a Secret there could end the load, and with it what tells that users are not
// served.
const LoadNamespace = "aiopslab-load"

const (
	// podTimeout is how long a load generator may take to start as a pod: a node may have to pull its image.
	podTimeout = 3 * time.Minute
	// askTimeout is how long a load generator may take for an answer, and askAgain how long it is asked again: the way
	// to it may be interrupted, and it counts on meanwhile.
	askTimeout = 5 * time.Second
	askAgain   = 10 * time.Second
	// askInterval is how often it is asked in any case: for how late it is, and so that it knows that it is needed.
	askInterval = time.Second
	// lastAnswers is how long the last answers of a load may take. Requests time out, and so do those that follow them.
	lastAnswers = time.Minute
	// tidyTimeout is how long it may take to remove a pod and its Secret. What is left goes with the namespace.
	tidyTimeout = 10 * time.Second
)

// podLoad is load that a pod sends.
type podLoad struct {
	client          kubernetes.Interface
	namespace, name string // of the pod and its Secret
	remote          *remote.Client

	cancel context.CancelFunc // of keepAsking
	done   chan struct{}

	mu   sync.Mutex
	lag  workload.Lag
	lost error // why there will be no answer any more
}

var _ Load = (*podLoad)(nil)

// startPodLoad starts a load generator as a pod, and returns when it answers.
func startPodLoad(ctx context.Context, c cloud.Cloud, t *cloud.Tenancy, a *app.App, spec workload.Spec) (Load, error) {
	dialer, ok := c.(cloud.PodDialer)
	if !ok {
		return nil, errors.New("this cloud cannot have its load from a pod; use --load-from here")
	}
	client, err := kubernetes.NewForConfig(cloud.DirectConfig(c))
	if err != nil {
		return nil, err
	}
	order, err := remote.Order{Spec: spec, BaseURL: "http://" + a.Host()}.Pack()
	if err != nil {
		return nil, fmt.Errorf("load from the cluster: %w; or use --load-from here", err)
	}
	image, err := LoadImage(a.Registry)
	if err != nil {
		return nil, err
	}
	token := rand.Text()
	l := &podLoad{
		client: client, namespace: t.Load, name: "load-" + strings.ToLower(rand.Text()[:8]), done: make(chan struct{}),
	}
	l.remote = remote.NewClient(func(ctx context.Context) (net.Conn, error) {
		return dialer.DialPod(ctx, l.namespace, l.name, remote.Port)
	}, token)
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l.cancel = cancel
	err = l.create(ctx, t.Labels, image, map[string][]byte{remote.OrderFile: order, remote.TokenFile: []byte(token)})
	if err == nil {
		err = l.awaitAnswer(ctx)
	}
	if err != nil {
		close(l.done)
		l.tidy(ctx)
		return nil, err
	}
	go l.keepAsking(background)
	return l, nil
}

// create makes the pod and its Secret.
func (l *podLoad) create(ctx context.Context, labels map[string]string, image string, data map[string][]byte) error {
	meta := metav1.ObjectMeta{Name: l.name, Namespace: l.namespace, Labels: labels}
	_, err := l.client.CoreV1().Secrets(l.namespace).Create(ctx, &v1.Secret{
		ObjectMeta: meta, Data: data, Immutable: ptr.To(true),
	}, metav1.CreateOptions{})
	if err == nil {
		_, err = l.client.CoreV1().Pods(l.namespace).Create(ctx, &v1.Pod{
			ObjectMeta: meta, Spec: loadPod(image, l.name),
		}, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("make the load generator's pod: %w", err)
	}
	return nil
}

// loadPod is the pod of a load generator. It is started once: one that was started again would have lost count.
func loadPod(image, secret string) v1.PodSpec {
	const files = "files"
	pod, container := world.Unprivileged()
	return v1.PodSpec{
		RestartPolicy: v1.RestartPolicyNever, SecurityContext: pod, TerminationGracePeriodSeconds: ptr.To[int64](5),
		AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
		Volumes: []v1.Volume{{Name: files, VolumeSource: v1.VolumeSource{
			Secret: &v1.SecretVolumeSource{SecretName: secret, DefaultMode: ptr.To[int32](0o444)},
		}}},
		Containers: []v1.Container{{
			Name: "load", Image: image, ImagePullPolicy: v1.PullIfNotPresent, SecurityContext: container,
			// What it says last is told by the session.
			TerminationMessagePolicy: v1.TerminationMessageFallbackToLogsOnError,
			VolumeMounts:             []v1.VolumeMount{{Name: files, MountPath: remote.Dir, ReadOnly: true}},
			// A request takes some 0.2 ms of a core. The rest is for many that wait for their answers.
			Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{"cpu": resource.MustParse("200m"), "memory": resource.MustParse("64Mi")},
				Limits:   v1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("512Mi")},
			},
		}},
	}
}

// awaitAnswer waits until the load generator answers, and says why if it will not.
func (l *podLoad) awaitAnswer(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, podTimeout, fmt.Errorf("it has not started within %v", podTimeout))
	defer cancel()
	waits := ""
	err := poll(ctx, lookInterval/4, func() (bool, error) {
		p, err := l.client.CoreV1().Pods(l.namespace).Get(ctx, l.name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		if why := ended(p); why != "" {
			return false, errors.New(why)
		}
		var hopeless bool
		if waits, hopeless = heldUp(p); hopeless {
			return false, errors.New(waits)
		}
		if p.Status.Phase != v1.PodRunning {
			return false, nil
		}
		_, err = l.ask(ctx)
		if err != nil {
			waits = err.Error()
		}
		return err == nil, nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && waits != "":
		err = fmt.Errorf("%w: %s", context.Cause(ctx), waits)
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	return fmt.Errorf("the load generator does not start, as pod %s in %s: %w; 'aiopslab images build' makes its "+
		"image %s, and --load-from here needs none", l.name, l.namespace, err, remote.ImageName)
}

// ended says how the program of a pod has ended, or "".
func ended(p *v1.Pod) string {
	if p.Status.Phase != v1.PodFailed && p.Status.Phase != v1.PodSucceeded {
		return ""
	}
	why := strings.TrimSpace(p.Status.Reason + " " + p.Status.Message)
	for _, c := range p.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil {
			why = strings.TrimSpace(fmt.Sprintf("%s %s (exit code %d) %s", why, t.Reason, t.ExitCode, t.Message))
		}
	}
	return strings.Join(strings.Fields("it has ended: "+why), " ")
}

// heldUp says what a pod waits for, and whether it does so in vain.
func heldUp(p *v1.Pod) (why string, hopeless bool) {
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse {
			why = c.Message
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		w := c.State.Waiting
		if w == nil {
			continue
		}
		why = strings.Join(strings.Fields(w.Reason+" "+w.Message), " ")
		switch w.Reason {
		case "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError":
			return why, true
		}
	}
	return why, false
}

// ask asks once what users got.
func (l *podLoad) ask(ctx context.Context) (*workload.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	s, err := l.remote.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lag = s.Lag
	return s, nil
}

// keepAsking asks again and again until ctx ends. Whoever needs an answer learns by himself if there is none.
func (l *podLoad) keepAsking(ctx context.Context) {
	defer close(l.done)
	tick := time.NewTicker(askInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_, _ = l.ask(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// Snapshot implements Load.
func (l *podLoad) Snapshot(ctx context.Context) (s *workload.Snapshot, err error) {
	err = l.insist(ctx, func(ctx context.Context) (err error) {
		s, err = l.ask(ctx)
		return err
	})
	return s, err
}

// insist asks until there is an answer, it is clear that there will be none, or it has taken too long.
func (l *podLoad) insist(ctx context.Context, ask func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, askAgain)
	defer cancel()
	var last error
	err := poll(limited, lookInterval/4, func() (bool, error) {
		if last = ask(limited); last == nil {
			return true, nil
		}
		return false, l.lostWhy(limited)
	})
	switch {
	case err == nil || limited.Err() == nil:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("the load generator, pod %s in %s, does not answer: %w", l.name, l.namespace, last)
}

// lostWhy says why there will be no answer any more, or nil.
func (l *podLoad) lostWhy(ctx context.Context) error {
	l.mu.Lock()
	lost := l.lost
	l.mu.Unlock()
	if lost != nil {
		return lost
	}
	p, err := l.client.CoreV1().Pods(l.namespace).Get(ctx, l.name, metav1.GetOptions{})
	why := ""
	switch {
	case apierrors.IsNotFound(err):
		why = "it is gone"
	case err == nil:
		why = ended(p)
	}
	if why == "" {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = fmt.Errorf("what users got is not known: the load generator, pod %s in %s, has lost count: %s",
		l.name, l.namespace, why)
	return l.lost
}

// Lag implements Load.
func (l *podLoad) Lag() workload.Lag {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lag
}

// Begin implements Load.
func (l *podLoad) Begin(ctx context.Context) error { return l.insist(ctx, l.remote.Begin) }

// End implements Load.
func (l *podLoad) End() {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	_ = l.remote.End(ctx) // Stop says what is wrong.
}

// Stop implements Load. The pod and its Secret are removed.
func (l *podLoad) Stop(ctx context.Context) (sli workload.SLI, err error) {
	defer l.tidy(ctx)
	limited, cancel := context.WithTimeout(ctx, lastAnswers)
	defer cancel()
	s, err := l.remote.Stop(limited)
	if err != nil {
		if lost := l.lostWhy(ctx); lost != nil {
			return sli, lost
		}
		return sli, fmt.Errorf("stop the load of pod %s in %s: %w", l.name, l.namespace, err)
	}
	return s.Window("whole").Total, nil
}

// tidy removes the pod, and whatever is for it.
func (l *podLoad) tidy(ctx context.Context) {
	l.cancel()
	<-l.done
	l.remote.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTimeout)
	defer cancel()
	_ = l.client.CoreV1().Pods(l.namespace).Delete(ctx, l.name, metav1.DeleteOptions{})
	_ = l.client.CoreV1().Secrets(l.namespace).Delete(ctx, l.name, metav1.DeleteOptions{})
}

// From implements Load.
func (l *podLoad) From() record.Load {
	return record.Load{From: record.FromCluster, Namespace: l.namespace, Pod: l.name}
}

func (l *podLoad) surge(ctx context.Context, spec workload.Spec) error {
	return l.remote.Surge(ctx, spec)
}

// LoadImage is the image of a load generator that is a pod, from a prefix of a registry if there is one.
func LoadImage(registry string) (string, error) {
	if registry == "" {
		return remote.ImageName, nil
	}
	return kit.Under(registry, remote.ImageName)
}
