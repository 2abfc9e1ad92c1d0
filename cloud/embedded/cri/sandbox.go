package cri

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
	"github.com/aiopslab/aiopslab/kit"
)

// sandbox is a pod's network namespace and what its containers share.
type sandbox struct {
	id       string
	config   *runtimeapi.PodSandboxConfig
	handler  string
	created  time.Time
	hostname string
	host     *vnet.Host
	shared   bool    // host is the node's own
	ready    bool    // protected by Runtime.mu
	marked   traffic // when there began to be load; protected by Runtime.mu

	space       *pidSpace // for the containers that share one
	shim, pause *kit.Running
}

func (s *sandbox) podUID() string { return s.config.GetMetadata().GetUid() }

// dir is where the sandbox keeps files on the node.
func (s *sandbox) dir() string { return sandboxDir(s.id) }

func sandboxDir(id string) string {
	return "/var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes/" + id
}

// RunPodSandbox implements the CRI.
func (r *Runtime) RunPodSandbox(_ context.Context, config *runtimeapi.PodSandboxConfig,
	handler string,
) (string, error) {
	if handler != "" && handler != DefaultHandler {
		return "", status.Errorf(codes.Unknown, "failed to get sandbox runtime: no runtime for %q is configured",
			handler)
	}
	s := &sandbox{
		id: newID(), config: config, handler: handler, created: r.creationTime(), hostname: config.Hostname,
		ready: true,
	}
	if config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetNetwork() == runtimeapi.NamespaceMode_NODE {
		s.host, s.shared = r.cfg.Host, true
		s.hostname = r.cfg.NodeName
	} else {
		host, err := r.addresses.take(r.cfg.Network, kindOf(config.GetMetadata()))
		if err != nil {
			return "", status.Errorf(codes.Unknown, "failed to setup network for sandbox %q: %v", s.id, err)
		}
		s.host = host
	}
	if err := r.sandboxFiles(s); err != nil {
		r.closeNetwork(s)
		return "", status.Errorf(codes.Unknown, "failed to setup sandbox files: %v", err)
	}
	r.populate(s)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sandboxes[s.id] = s
	return s.id, nil
}

// sandboxFiles writes what containers see as /etc/resolv.conf and /etc/hostname.
func (r *Runtime) sandboxFiles(s *sandbox) error {
	env := r.env()
	if err := env.MkdirAll(s.dir(), 0o755); err != nil {
		return err
	}
	if err := env.WriteFile(s.dir()+"/hostname", []byte(s.hostname+"\n"), 0o644); err != nil {
		return err
	}
	var b strings.Builder
	d := s.config.GetDnsConfig()
	if len(d.GetSearches()) > 0 {
		fmt.Fprintf(&b, "search %s\n", strings.Join(d.Searches, " "))
	}
	for _, server := range d.GetServers() {
		fmt.Fprintf(&b, "nameserver %s\n", server)
	}
	if len(d.GetOptions()) > 0 {
		fmt.Fprintf(&b, "options %s\n", strings.Join(d.Options, " "))
	}
	return env.WriteFile(s.dir()+"/resolv.conf", []byte(b.String()), 0o644)
}

func (r *Runtime) sandbox(id string) (*sandbox, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sandboxes[id]; s != nil {
		return s, nil
	}
	return nil, status.Errorf(codes.NotFound, "an error occurred when try to find sandbox: sandbox %q: not found", id)
}

// closeNetwork takes a sandbox off the network.
func (r *Runtime) closeNetwork(s *sandbox) {
	if !s.shared {
		s.host.Close()
		r.addresses.release(s.host.Addr())
	}
}

// StopPodSandbox implements the CRI.
func (r *Runtime) StopPodSandbox(ctx context.Context, id string) error {
	s, err := r.sandbox(id)
	if err != nil {
		return nil // Stopping what is gone succeeds.
	}
	for _, c := range r.containersOf(id) {
		c.kill()
	}
	r.mu.Lock()
	was := s.ready
	s.ready = false
	r.mu.Unlock()
	if was {
		r.depopulate(s)
		r.closeNetwork(s)
		r.notify(s.podUID())
	}
	return nil
}

// RemovePodSandbox implements the CRI.
func (r *Runtime) RemovePodSandbox(ctx context.Context, id string) error {
	s, err := r.sandbox(id)
	if err != nil {
		return nil
	}
	if err := r.StopPodSandbox(ctx, id); err != nil {
		return err
	}
	for _, c := range r.containersOf(id) {
		if err := r.RemoveContainer(ctx, c.id); err != nil {
			return err
		}
	}
	if err := r.env().RemoveAll(s.dir()); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sandboxes, id)
	return nil
}

func (s *sandbox) state() runtimeapi.PodSandboxState {
	if s.ready {
		return runtimeapi.PodSandboxState_SANDBOX_READY
	}
	return runtimeapi.PodSandboxState_SANDBOX_NOTREADY
}

// PodSandboxStatus implements the CRI.
func (r *Runtime) PodSandboxStatus(_ context.Context, id string, _ bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	s, err := r.sandbox(id)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	st := &runtimeapi.PodSandboxStatus{
		Id: s.id, Metadata: s.config.Metadata, State: s.state(), CreatedAt: s.created.UnixNano(),
		Labels: s.config.Labels, Annotations: s.config.Annotations, RuntimeHandler: s.handler,
		Linux: &runtimeapi.LinuxPodSandboxStatus{
			Namespaces: &runtimeapi.Namespace{Options: s.config.GetLinux().GetSecurityContext().GetNamespaceOptions()},
		},
	}
	if s.ready && !s.shared {
		st.Network = &runtimeapi.PodSandboxNetworkStatus{Ip: s.host.Addr().String()}
	} else {
		st.Network = &runtimeapi.PodSandboxNetworkStatus{}
	}
	return &runtimeapi.PodSandboxStatusResponse{Status: st}, nil
}

// ListPodSandbox implements the CRI.
func (r *Runtime) ListPodSandbox(_ context.Context, f *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*runtimeapi.PodSandbox
	for _, s := range r.sandboxes {
		if f.GetId() != "" && f.Id != s.id || f.GetState() != nil && f.State.State != s.state() ||
			!selects(f.GetLabelSelector(), s.config.Labels) {
			continue
		}
		list = append(list, &runtimeapi.PodSandbox{
			Id: s.id, Metadata: s.config.Metadata, State: s.state(), CreatedAt: s.created.UnixNano(),
			Labels: s.config.Labels, Annotations: s.config.Annotations, RuntimeHandler: s.handler,
		})
	}
	return list, nil
}

func selects(selector, labels map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return true
}
