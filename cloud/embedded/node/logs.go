package node

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	_ "k8s.io/kubernetes/pkg/apis/core/install" // decodes log options
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/images"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/cloud/embedded/cri"
)

// serveLogs answers kubectl logs.
func (k *kubelet) serveLogs(w http.ResponseWriter, r *http.Request) {
	p := k.find(w, r)
	if p == nil {
		return
	}
	opts := &v1.PodLogOptions{}
	if err := legacyscheme.ParameterCodec.DecodeParameters(r.URL.Query(), v1.SchemeGroupVersion, opts); err != nil {
		http.Error(w, `{"message": "Unable to decode query."}`, http.StatusBadRequest)
		return
	}
	pod, name := p.current(), r.PathValue("container")
	if kubecontainer.GetContainerSpec(pod, name) == nil {
		http.Error(w, fmt.Sprintf("container %q not found in pod %q", name, pod.Name), http.StatusNotFound)
		return
	}
	st, ok := k.statuses.GetPodStatus(pod.UID)
	if !ok {
		st = pod.Status
	}
	id, err := logOf(pod.Name, &st, name, opts.Previous)
	if err == nil {
		var l *cri.Log
		if l, err = k.machine.runtime.LogOf(id); err == nil {
			err = l.Read(r.Context(), flushed(w), k.logOptions(opts))
		} else {
			err = fmt.Errorf("unable to retrieve container logs for containerd://%s", id)
		}
	}
	if err != nil && r.Context().Err() == nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

func (k *kubelet) logOptions(o *v1.PodLogOptions) cri.LogOptions {
	opts := cri.LogOptions{
		Tail: ptr.Deref(o.TailLines, -1), LimitBytes: ptr.Deref(o.LimitBytes, 0),
		Timestamps: o.Timestamps, Follow: o.Follow,
	}
	switch {
	case o.SinceSeconds != nil:
		opts.Since = k.node.fleet.cfg.Clock.Now().Add(-time.Duration(*o.SinceSeconds) * time.Second)
	case o.SinceTime != nil:
		opts.Since = o.SinceTime.Time
	}
	if s := ptr.Deref(o.Stream, v1.LogStreamAll); s != v1.LogStreamAll {
		opts.Stream = strings.ToLower(s)
	}
	return opts
}

// logOf finds the run of a container whose log is wanted, or says why there is none.
func logOf(pod string, st *v1.PodStatus, name string, previous bool) (string, error) {
	c, ok := podutil.GetContainerStatus(st.ContainerStatuses, name)
	if !ok {
		c, ok = podutil.GetContainerStatus(st.InitContainerStatuses, name)
	}
	if !ok {
		c, ok = podutil.GetContainerStatus(st.EphemeralContainerStatuses, name)
	}
	if !ok {
		return "", fmt.Errorf("container %q in pod %q is not available", name, pod)
	}
	ended := func(t *v1.ContainerStateTerminated) string {
		if t == nil {
			return ""
		}
		return containerID(t.ContainerID).ID
	}
	last := ended(c.LastTerminationState.Terminated)
	switch {
	case previous && last == "":
		return "", fmt.Errorf("previous terminated container %q in pod %q not found", name, pod)
	case previous:
		return last, nil
	case c.State.Running != nil:
		return containerID(c.ContainerID).ID, nil
	case ended(c.State.Terminated) != "":
		return ended(c.State.Terminated), nil
	case last != "":
		return last, nil
	case c.State.Waiting == nil:
		return "", fmt.Errorf("container %q in pod %q is terminated", name, pod)
	}
	why := c.State.Waiting.Reason
	switch why {
	case images.ErrImagePull.Error():
		why = "image can't be pulled"
	case images.ErrImagePullBackOff.Error():
		why = "trying and failing to pull image"
	}
	return "", fmt.Errorf("container %q in pod %q is waiting to start: %s", name, pod, why)
}

// containerID reads an ID as statuses show it, "containerd://...".
func containerID(s string) kubecontainer.ContainerID {
	kind, id, _ := strings.Cut(s, "://")
	return kubecontainer.ContainerID{Type: kind, ID: id}
}

// flushed returns a writer that sends what is written at once.
func flushed(w http.ResponseWriter) *flushWriter {
	return &flushWriter{w, http.NewResponseController(w)}
}

type flushWriter struct {
	w http.ResponseWriter
	c *http.ResponseController
}

func (f *flushWriter) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	if err == nil {
		err = f.c.Flush()
	}
	return n, err
}
