package cri

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/aiopslab/aiopslab/cloud/embedded/vfs"
	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
	"github.com/aiopslab/aiopslab/kit"
)

// What a node says of its system.
const (
	Name           = "containerd"
	Version        = "2.1.4"
	KernelVersion  = "6.12.48"
	DefaultHandler = "runc"
)

// Config is what a node's runtime works with.
type Config struct {
	NodeName string
	Images   *Images
	Machine  *Machine
	Network  *vnet.Network
	Host     *vnet.Host     // the node's own place in the network
	Pods     netip.Prefix   // where pod addresses come from
	Disk     *vfs.Tree      // the node's disk
	Files    *vfs.Namespace // the node's files: the disk, with volumes mounted
	Dir      string         // a directory on the host, for what cannot be in memory
	Now      func() time.Time
	// OnChange is told the UID of a pod whose containers or sandbox changed by themselves. It must
	// not block.
	OnChange func(podUID string)
}

// Runtime is the container runtime of a node. It is safe for concurrent use.
type Runtime struct {
	unsupported
	cfg       Config
	addresses *addresses
	booted    time.Time
	space     *pidSpace
	logs      *vfs.Tree   // what is in logDir
	silent    atomic.Bool // nobody is told of changes any more

	mu          sync.Mutex
	interrupted chan struct{}
	sandboxes   map[string]*sandbox
	containers  map[string]*Container
	images      map[string]*pulledImage
	effects     map[string][]Effect // by the UID of a pod
	created     time.Time           // when the last sandbox or container was
}

var (
	_ internalapi.RuntimeService      = (*Runtime)(nil)
	_ internalapi.ImageManagerService = (*Runtime)(nil)
)

// New returns a runtime without containers.
func New(cfg Config) *Runtime {
	booted := time.Now()
	return &Runtime{
		cfg: cfg, addresses: newAddresses(cfg.Pods), booted: booted, space: newNodeSpace(booted),
		interrupted: make(chan struct{}), logs: vfs.NewTree(vfs.Options{Type: "ext4", Disk: cfg.Disk.Disk()}),
		sandboxes: map[string]*sandbox{}, containers: map[string]*Container{}, images: map[string]*pulledImage{},
		effects: map[string][]Effect{},
	}
}

// creationTime returns the time, and never the same twice: the kubelet tells the latest sandbox of a
// pod, or run of a container, by when it was created.
func (r *Runtime) creationTime() time.Time {
	now := r.cfg.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !now.After(r.created) {
		now = r.created.Add(time.Nanosecond)
	}
	r.created = now
	return now
}

func (r *Runtime) notify(podUID string) {
	if !r.silent.Load() {
		r.cfg.OnChange(podUID)
	}
}

// env gives access to the node's files.
func (r *Runtime) env() *kit.Env { return &kit.Env{FS: r.cfg.Files.As(kit.User{}), Dir: "/"} }

// newID returns an ID as containerd makes them.
func newID() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

// Version implements the CRI.
func (r *Runtime) Version(context.Context, string) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{
		Version: "0.1.0", RuntimeName: Name, RuntimeVersion: Version,
		RuntimeApiVersion: "v1",
	}, nil
}

// Status implements the CRI.
func (r *Runtime) Status(context.Context, bool) (*runtimeapi.StatusResponse, error) {
	return &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
		{Type: runtimeapi.RuntimeReady, Status: true}, {Type: runtimeapi.NetworkReady, Status: true},
	}}}, nil
}

// UpdateRuntimeConfig implements the CRI; there is nothing to configure.
func (r *Runtime) UpdateRuntimeConfig(context.Context, *runtimeapi.RuntimeConfig) error { return nil }

// UpdatePodSandboxResources implements the CRI. Limits are enforced per container, so there is
// nothing to do for the pod.
func (r *Runtime) UpdatePodSandboxResources(context.Context,
	*runtimeapi.UpdatePodSandboxResourcesRequest,
) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	return &runtimeapi.UpdatePodSandboxResourcesResponse{}, nil
}

// ReopenContainerLog implements the CRI; logs rotate by themselves.
func (r *Runtime) ReopenContainerLog(context.Context, string) error { return nil }

// ImageFsInfo implements the CRI.
func (r *Runtime) ImageFsInfo(context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	bytes, files := r.cfg.Disk.Used()
	usage := &runtimeapi.FilesystemUsage{
		Timestamp: time.Now().UnixNano(), FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: "/var/lib/containerd"},
		UsedBytes:  &runtimeapi.UInt64Value{Value: uint64(bytes)},
		InodesUsed: &runtimeapi.UInt64Value{Value: uint64(files)},
	}
	return &runtimeapi.ImageFsInfoResponse{
		ImageFilesystems:     []*runtimeapi.FilesystemUsage{usage},
		ContainerFilesystems: []*runtimeapi.FilesystemUsage{usage},
	}, nil
}

// Close implements the CRI.
func (r *Runtime) Close(context.Context) error { return nil }

// unsupported are the calls of the CRI that nothing in this process makes: the node streams and
// counts through the runtime's own methods.
type unsupported struct{}

func errUnsupported(call string) error {
	return status.Errorf(codes.Unimplemented, "%s is not offered over the CRI", call)
}

func (unsupported) Exec(context.Context, *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	return nil, errUnsupported("Exec")
}

func (unsupported) Attach(context.Context, *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	return nil, errUnsupported("Attach")
}

func (unsupported) PortForward(context.Context,
	*runtimeapi.PortForwardRequest,
) (*runtimeapi.PortForwardResponse, error) {
	return nil, errUnsupported("PortForward")
}

func (unsupported) CheckpointContainer(context.Context, *runtimeapi.CheckpointContainerRequest) error {
	return errUnsupported("CheckpointContainer")
}

func (unsupported) CheckpointPod(context.Context, *runtimeapi.CheckpointPodRequest) error {
	return errUnsupported("CheckpointPod")
}

func (unsupported) RestorePod(context.Context, *runtimeapi.RestorePodRequest) (*runtimeapi.RestorePodResponse, error) {
	return nil, errUnsupported("RestorePod")
}

func (unsupported) GetContainerEvents(context.Context, chan *runtimeapi.ContainerEventResponse,
	func(runtimeapi.RuntimeService_GetContainerEventsClient),
) error {
	return errUnsupported("GetContainerEvents")
}

func (unsupported) ContainerStats(context.Context, string) (*runtimeapi.ContainerStats, error) {
	return nil, errUnsupported("ContainerStats")
}

func (unsupported) ListContainerStats(context.Context,
	*runtimeapi.ContainerStatsFilter,
) ([]*runtimeapi.ContainerStats, error) {
	return nil, errUnsupported("ListContainerStats")
}

func (unsupported) PodSandboxStats(context.Context, string) (*runtimeapi.PodSandboxStats, error) {
	return nil, errUnsupported("PodSandboxStats")
}

func (unsupported) ListPodSandboxStats(context.Context,
	*runtimeapi.PodSandboxStatsFilter,
) ([]*runtimeapi.PodSandboxStats, error) {
	return nil, errUnsupported("ListPodSandboxStats")
}

func (unsupported) ListMetricDescriptors(context.Context) ([]*runtimeapi.MetricDescriptor, error) {
	return nil, errUnsupported("ListMetricDescriptors")
}

func (unsupported) ListPodSandboxMetrics(context.Context) ([]*runtimeapi.PodSandboxMetrics, error) {
	return nil, errUnsupported("ListPodSandboxMetrics")
}

func (unsupported) RuntimeConfig(context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
	return nil, errUnsupported("RuntimeConfig")
}
