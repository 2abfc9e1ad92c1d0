package cri

import (
	"context"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ContainerStatus implements the CRI.
func (r *Runtime) ContainerStatus(_ context.Context, id string, _ bool) (*runtimeapi.ContainerStatusResponse, error) {
	c, err := r.container(id)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &runtimeapi.ContainerStatus{
		Id: c.id, Metadata: c.config.Metadata, State: c.state,
		CreatedAt: c.created.UnixNano(), StartedAt: nanos(c.started), FinishedAt: nanos(c.finished),
		ExitCode: c.exitCode, Reason: c.reason, Message: c.message,
		Image:    &runtimeapi.ImageSpec{Image: c.image.full, UserSpecifiedImage: c.config.Image.UserSpecifiedImage},
		ImageRef: c.image.repoDigest(), ImageId: c.image.id,
		Labels: c.config.Labels, Annotations: c.config.Annotations, LogPath: c.hostFile(".log"),
		Resources: &runtimeapi.ContainerResources{Linux: c.config.GetLinux().GetResources()},
		User: &runtimeapi.ContainerUser{
			Linux: &runtimeapi.LinuxContainerUser{Uid: int64(c.user.UID), Gid: int64(c.user.GID)},
		},
		StopSignal: c.config.StopSignal,
	}
	s.User.Linux.SupplementalGroups = append(s.User.Linux.SupplementalGroups, int64(c.user.GID))
	for _, g := range c.user.Groups {
		if g != c.user.GID {
			s.User.Linux.SupplementalGroups = append(s.User.Linux.SupplementalGroups, int64(g))
		}
	}
	message := c.terminationPath()
	for _, m := range c.config.Mounts {
		if m.HostPath == message && message != "" {
			m = &runtimeapi.Mount{ContainerPath: m.ContainerPath, HostPath: c.hostFile(".message")}
		}
		s.Mounts = append(s.Mounts, m)
	}
	return &runtimeapi.ContainerStatusResponse{Status: s}, nil
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// ListContainers implements the CRI.
func (r *Runtime) ListContainers(_ context.Context, f *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	var list []*runtimeapi.Container
	for _, c := range r.containersOf(f.GetPodSandboxId()) {
		c.mu.Lock()
		state := c.state
		c.mu.Unlock()
		if f.GetId() != "" && f.Id != c.id || f.GetState() != nil && f.State.State != state ||
			!selects(f.GetLabelSelector(), c.config.Labels) {
			continue
		}
		list = append(list, &runtimeapi.Container{
			Id: c.id, PodSandboxId: c.sandbox.id, Metadata: c.config.Metadata, Image: c.config.Image,
			ImageRef: c.image.repoDigest(), ImageId: c.image.id, State: state, CreatedAt: c.created.UnixNano(),
			Labels: c.config.Labels, Annotations: c.config.Annotations,
		})
	}
	return list, nil
}

// containersOf returns the containers of a sandbox, or all if it is "".
func (r *Runtime) containersOf(sandboxID string) []*Container {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*Container
	for _, c := range r.containers {
		if sandboxID == "" || c.sandbox.id == sandboxID {
			list = append(list, c)
		}
	}
	return list
}
