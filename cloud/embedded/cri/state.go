package cri

import (
	"context"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
)

// State is what a runtime holds besides its disk: enough to make the same sandboxes and containers
// again. What is in the memory of a program is not part of it; a restored container starts afresh,
// with its files and its log, under its old identity.
type State struct {
	Booted     time.Time // the machine
	Images     []string
	Sandboxes  []SandboxState
	Containers []ContainerState
}

// SandboxState is a saved sandbox.
type SandboxState struct {
	ID, Handler, Hostname string
	Config                []byte // a runtimeapi.PodSandboxConfig
	Created               time.Time
	Address               netip.Addr
	Shared, Ready         bool
}

// ContainerState is a saved container.
type ContainerState struct {
	ID, Sandbox, Image         string
	Config                     []byte // a runtimeapi.ContainerConfig
	Created, Started, Finished time.Time
	State                      runtimeapi.ContainerState
	ExitCode                   int32
	Reason, Message            string
	Log                        []byte // in the format of the CRI's log files
}

// Dir is where the container's files are on the node.
func (s *ContainerState) Dir() string { return containerDir(s.ID) }

// restartsAnnotation is where the kubelet notes how often a container was started again.
const restartsAnnotation = "io.kubernetes.container.restartCount"

// Name is what the pod calls the container.
func (s *ContainerState) Name() string { return s.metadata().GetName() }

// Restarts is how often the pod's container was started again before this one ran.
func (s *ContainerState) Restarts() int { return int(s.metadata().GetAttempt()) }

func (s *ContainerState) metadata() *runtimeapi.ContainerMetadata {
	config := &runtimeapi.ContainerConfig{}
	if err := proto.Unmarshal(s.Config, config); err != nil {
		return nil // It will be told when the container is restored.
	}
	return config.GetMetadata()
}

// SetRestarts has the container be the nth after the first one, as the kubelet would have made it.
func (s *ContainerState) SetRestarts(n int) error {
	config := &runtimeapi.ContainerConfig{}
	if err := proto.Unmarshal(s.Config, config); err != nil {
		return err
	}
	config.Metadata.Attempt = uint32(n)
	if _, ok := config.Annotations[restartsAnnotation]; ok {
		config.Annotations[restartsAnnotation] = strconv.Itoa(n)
	}
	if config.LogPath != "" {
		config.LogPath = fmt.Sprintf("%s/%d.log", path.Dir(config.LogPath), n)
	}
	b, err := proto.Marshal(config)
	s.Config = b
	return err
}

// Dirs are where the sandbox and its pod have files on the node.
func (s *SandboxState) Dirs() []string {
	config := &runtimeapi.PodSandboxConfig{}
	if err := proto.Unmarshal(s.Config, config); err != nil {
		return nil // It will be told when the sandbox is restored.
	}
	return []string{sandboxDir(s.ID), "/var/lib/kubelet/pods/" + config.GetMetadata().GetUid()}
}

// Save returns the runtime's state.
func (r *Runtime) Save() (State, error) {
	var st State
	r.mu.Lock()
	st.Booted = r.booted
	for name := range r.images {
		st.Images = append(st.Images, name)
	}
	var err error
	for _, s := range r.sandboxes {
		b, merr := proto.Marshal(s.config)
		if merr != nil {
			err = merr
		}
		st.Sandboxes = append(st.Sandboxes, SandboxState{
			ID: s.id, Handler: s.handler, Hostname: s.hostname, Config: b, Created: s.created, Address: s.host.Addr(),
			Shared: s.shared, Ready: s.ready,
		})
	}
	r.mu.Unlock()
	for _, c := range r.containersOf("") {
		b, merr := proto.Marshal(c.config)
		if merr != nil {
			err = merr
		}
		c.mu.Lock()
		st.Containers = append(st.Containers, ContainerState{
			ID: c.id, Sandbox: c.sandbox.id, Image: c.image.full, Config: b, Created: c.created, Started: c.started,
			Finished: c.finished, State: c.state, ExitCode: c.exitCode, Reason: c.reason, Message: c.message,
			Log: c.log.text(),
		})
		c.mu.Unlock()
	}
	return st, err
}

// Restore makes the images and sandboxes of a state, on a disk that holds the files of its containers.
// The runtime must be new. RestoreContainers does the rest.
func (r *Runtime) Restore(st State) error {
	r.mu.Lock()
	r.booted, r.space = st.Booted, newNodeSpace(st.Booted)
	r.mu.Unlock()
	for _, name := range st.Images {
		if _, err := r.PullImage(context.Background(), &runtimeapi.ImageSpec{Image: name}, nil, nil); err != nil {
			return fmt.Errorf("restore image: %w", err)
		}
	}
	for _, saved := range st.Sandboxes {
		if err := r.restoreSandbox(saved); err != nil {
			return fmt.Errorf("restore sandbox %s: %w", saved.ID, err)
		}
	}
	return nil
}

// RestoreContainers makes the containers of a state that was restored. Those that ran are started.
func (r *Runtime) RestoreContainers(st State) error {
	older := func(a, b ContainerState) int { return a.Created.Compare(b.Created) }
	// One may share the processes of an older one.
	for _, saved := range slices.SortedFunc(slices.Values(st.Containers), older) {
		if err := r.restoreContainer(saved); err != nil {
			return fmt.Errorf("restore container %s: %w", saved.ID, err)
		}
	}
	return nil
}

func (r *Runtime) restoreSandbox(saved SandboxState) error {
	config := &runtimeapi.PodSandboxConfig{}
	if err := proto.Unmarshal(saved.Config, config); err != nil {
		return err
	}
	s := &sandbox{
		id: saved.ID, config: config, handler: saved.Handler, created: saved.Created,
		hostname: saved.Hostname, shared: saved.Shared, ready: saved.Ready,
	}
	var err error
	switch {
	case saved.Shared:
		s.host = r.cfg.Host
	case saved.Ready:
		s.host, err = r.addresses.claim(r.cfg.Network, saved.Address, kindOf(config.GetMetadata()))
	default: // It is off the network; only its record remains.
		s.host = vnet.Detached(saved.Address)
	}
	if err != nil {
		return err
	}
	if r.populate(s); !s.ready {
		r.depopulate(s)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sandboxes[s.id] = s
	return nil
}

func (r *Runtime) restoreContainer(saved ContainerState) error {
	s, err := r.sandbox(saved.Sandbox)
	if err != nil {
		return err
	}
	config := &runtimeapi.ContainerConfig{}
	if err := proto.Unmarshal(saved.Config, config); err != nil {
		return err
	}
	c, err := r.newContainer(saved.ID, s, config, restoreLog(r.cfg.Now, saved.Log))
	if err != nil {
		return err
	}
	c.created = saved.Created
	for _, t := range c.special {
		t.Date(saved.Created)
	}
	r.mu.Lock()
	r.containers[c.id] = c
	r.mu.Unlock()
	switch saved.State {
	case runtimeapi.ContainerState_CONTAINER_RUNNING:
		return c.start(saved.Started)
	case runtimeapi.ContainerState_CONTAINER_EXITED:
		c.state, c.started, c.finished = saved.State, saved.Started, saved.Finished
		c.exitCode, c.reason, c.message = saved.ExitCode, saved.Reason, saved.Message
		c.log.Close()
		close(c.done)
	}
	return nil
}

// Booted is when the machine was started.
func (r *Runtime) Booted() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.booted
}

// Restored marks the end of a restore: from now on the output of programs is logged.
func (r *Runtime) Restored() {
	for _, c := range r.containersOf("") {
		c.log.release()
	}
}

// Listening reports whether the programs of a sandbox accept connections on a TCP port.
func (r *Runtime) Listening(sandboxID string, port uint16) bool {
	s, err := r.sandbox(sandboxID)
	return err == nil && s.host.Listens(port)
}
