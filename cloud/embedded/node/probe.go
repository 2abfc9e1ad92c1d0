package node

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/version"
	"k8s.io/kubernetes/pkg/kubelet/util/format"
	"k8s.io/kubernetes/pkg/kubelet/util/ioutils"
	"k8s.io/kubernetes/pkg/probe"
	httpprobe "k8s.io/kubernetes/pkg/probe/http"
	utilexec "k8s.io/utils/exec"

	"github.com/aiopslab/aiopslab/cloud/embedded/cri"
)

// maxProbeOutput is how much of a probe's answer an event shows.
const maxProbeOutput = 10 * 1024

// check runs one probe of a container once, over the cluster's network. The texts are the kubelet's.
func (k *kubelet) check(ctx context.Context, p *v1.Probe, pod *v1.Pod, c *v1.Container, containerID,
	podIP string,
) (probe.Result, string, error) {
	timeout := time.Duration(p.TimeoutSeconds) * time.Second
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	switch {
	case p.Exec != nil:
		return k.checkExec(ctx, p.Exec.Command, containerID, timeout)
	case p.HTTPGet != nil:
		req, err := httpprobe.NewRequestForHTTPGetAction(p.HTTPGet, c, podIP, "probe")
		if err != nil {
			return probe.Unknown, "", err
		}
		return httpprobe.DoHTTPProbe(req, k.probeClient(timeout))
	case p.TCPSocket != nil:
		port, err := probe.ResolveContainerPort(p.TCPSocket.Port, c)
		if err != nil {
			return probe.Unknown, "", err
		}
		host := p.TCPSocket.Host
		if host == "" {
			host = podIP
		}
		conn, err := k.dial(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			return probe.Failure, err.Error(), nil
		}
		return probe.Success, "", conn.Close()
	case p.GRPC != nil:
		service := ""
		if p.GRPC.Service != nil {
			service = *p.GRPC.Service
		}
		return k.checkGRPC(ctx, podIP, service, int(p.GRPC.Port), timeout)
	}
	return probe.Unknown, "", fmt.Errorf("missing probe handler for %s:%s", format.Pod(pod), c.Name)
}

// dial connects from the node to a pod.
func (k *kubelet) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return k.probes.stack.DialContext(ctx, network, address)
}

func (k *kubelet) probeClient(timeout time.Duration) httpprobe.GetHTTPInterface {
	return &http.Client{
		Timeout:       timeout,
		CheckRedirect: httpprobe.RedirectChecker(false),
		Transport: &http.Transport{
			DialContext: k.dial, DisableKeepAlives: true, DisableCompression: true,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		},
	}
}

func (k *kubelet) checkGRPC(ctx context.Context, host, service string, port int,
	timeout time.Duration,
) (probe.Result, string, error) {
	addr := net.JoinHostPort(host, strconv.Itoa(port))
	v := version.Get()
	conn, err := grpc.NewClient("passthrough:"+addr,
		grpc.WithUserAgent(fmt.Sprintf("kube-probe/%s.%s", v.Major, v.Minor)),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return k.dial(ctx, "tcp", addr)
		}))
	if err != nil {
		return probe.Failure, err.Error(), nil
	}
	defer conn.Close()
	res, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: service},
		grpc.WaitForReady(true))
	if err != nil {
		switch s, _ := status.FromError(err); {
		case s.Code() == codes.Unimplemented:
			return probe.Failure, fmt.Sprintf(
				"server at %q does not implement the grpc health protocol (grpc.health.v1.Health)", addr), nil
		case s.Code() == codes.DeadlineExceeded:
			return probe.Failure, fmt.Sprintf("timeout: failed to connect service %q within %v: %s", addr, timeout,
				err.Error()), nil
		}
		return probe.Failure, fmt.Sprintf("health rpc probe failed: %s", err.Error()), nil
	}
	if st := res.GetStatus(); st != healthpb.HealthCheckResponse_SERVING {
		return probe.Failure, fmt.Sprintf("service unhealthy (responded with %q)", st), nil
	}
	return probe.Success, "service healthy", nil
}

// checkExec runs a command in a container.
func (k *kubelet) checkExec(ctx context.Context, argv []string, containerID string,
	timeout time.Duration,
) (probe.Result, string, error) {
	var out bytes.Buffer
	limited := ioutils.LimitWriter(&out, maxProbeOutput)
	err := k.machine.runtime.Run(ctx, containerID, argv, cri.Streams{Stdout: limited, Stderr: limited})
	switch _, exited := errors.AsType[utilexec.CodeExitError](err); {
	case err == nil:
		return probe.Success, out.String(), nil
	case ctx.Err() != nil:
		return probe.Failure, fmt.Sprintf("command timed out: %q timed out after %s", strings.Join(argv, " "), timeout),
			nil
	case exited:
		return probe.Failure, out.String(), nil
	}
	return probe.Unknown, "", err
}
