package node

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"

	"github.com/aiopslab/aiopslab/cloud/embedded/cri"
	"github.com/aiopslab/aiopslab/internal/logs"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	streamIdle     = 4 * time.Hour
	streamCreation = 30 * time.Second
)

// serve starts the kubelet's HTTPS API on the node's address.
func (k *kubelet) serve() error {
	stack := k.machine.host.NewStack()
	l, err := stack.Listen("tcp", fmt.Sprintf(":%d", KubeletPort))
	if err != nil {
		return err
	}
	cfg := k.node.fleet.cfg
	k.server = &http.Server{
		Handler:  k.gated(k.authorized(k.routes())),
		ErrorLog: logs.ErrorLog(cfg.Log, slog.LevelDebug, "kubelet"), // Mostly a client has hung up.
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{cfg.TLS}, ClientCAs: cfg.ClientCA,
			ClientAuth: tls.VerifyClientCertIfGiven, NextProtos: []string{"http/1.1"},
		},
	}
	k.wg.Go(func() {
		_ = k.server.ServeTLS(l, "", "")
		stack.Close()
	})
	return nil
}

func (k *kubelet) routes() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	m.HandleFunc("GET /pods", k.servePods)
	m.HandleFunc("GET /configz", k.serveConfig)
	m.HandleFunc("GET /stats/summary", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, k.summary()) })
	m.HandleFunc("GET /metrics", k.serveMetrics(k.kubeletMetrics))
	m.HandleFunc("GET /metrics/cadvisor", k.serveMetrics(k.cadvisorMetrics))
	m.HandleFunc("GET /metrics/resource", k.serveMetrics(k.resourceMetrics))
	m.HandleFunc("GET /logs/", k.serveNodeLogs)
	m.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", k.serveLogs)
	for _, path := range []string{"/{namespace}/{pod}/{container}", "/{namespace}/{pod}/{uid}/{container}"} {
		m.HandleFunc("/exec"+path, k.serveExec)
		m.HandleFunc("/attach"+path, k.serveAttach)
		m.HandleFunc("POST /run"+path, k.serveRun)
	}
	m.HandleFunc("/portForward/{namespace}/{pod}", k.servePortForward)
	m.HandleFunc("/portForward/{namespace}/{pod}/{uid}", k.servePortForward)
	return m
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (k *kubelet) servePods(w http.ResponseWriter, _ *http.Request) {
	list := v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
	for _, p := range k.all() {
		list.Items = append(list.Items, *p.current())
	}
	writeJSON(w, list)
}

func (k *kubelet) serveConfig(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, map[string]any{"kubeletconfig": map[string]any{
		"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1", "port": KubeletPort,
		"maxPods": maxPods, "clusterDomain": k.node.fleet.cfg.ClusterDomain,
		"clusterDNS": []string{k.node.fleet.cfg.ClusterDNS.String()}, "evictionHard": evictionHard,
		"enableSystemLogHandler": true, "enableSystemLogQuery": true,
	}})
}

// find returns the worker of the pod a request is about, or answers that there is none.
func (k *kubelet) find(w http.ResponseWriter, r *http.Request) *worker {
	namespace, name := r.PathValue("namespace"), r.PathValue("pod")
	for _, p := range k.all() {
		if p.namespace == namespace && p.name == name && !p.removed() {
			return p
		}
	}
	http.Error(w, fmt.Sprintf("pod %q does not exist", name), http.StatusNotFound)
	return nil
}

// running returns the ID of the running container a request is about, or answers that there is none.
func (k *kubelet) running(w http.ResponseWriter, r *http.Request) (id string, ok bool) {
	p := k.find(w, r)
	if p == nil {
		return "", false
	}
	name := r.PathValue("container")
	observed, err := p.observe(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return "", false
	}
	for _, run := range runsOf(observed, name) {
		if run.State == kubecontainer.ContainerStateRunning {
			return run.ID.ID, true
		}
	}
	http.Error(w, fmt.Sprintf("container not found (%q)", name), http.StatusNotFound)
	return "", false
}

func (k *kubelet) serveExec(w http.ResponseWriter, r *http.Request) {
	id, ok := k.running(w, r)
	if !ok {
		return
	}
	opts, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeExec(w, r, streams{k, id}, r.PathValue("pod"), "", r.PathValue("container"),
		r.URL.Query()["command"], opts, streamIdle, streamCreation, remotecommand.SupportedStreamingProtocols)
}

func (k *kubelet) serveAttach(w http.ResponseWriter, r *http.Request) {
	id, ok := k.running(w, r)
	if !ok {
		return
	}
	opts, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeAttach(w, r, streams{k, id}, r.PathValue("pod"), "", r.PathValue("container"), opts, streamIdle,
		streamCreation, remotecommand.SupportedStreamingProtocols)
}

// serveRun runs a command and answers with its output.
func (k *kubelet) serveRun(w http.ResponseWriter, r *http.Request) {
	id, ok := k.running(w, r)
	if !ok {
		return
	}
	out, errOut, err := k.machine.runtime.ExecSync(r.Context(), id, strings.Fields(r.FormValue("cmd")), 0)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(append(out, errOut...))
}

func (k *kubelet) servePortForward(w http.ResponseWriter, r *http.Request) {
	p := k.find(w, r)
	if p == nil {
		return
	}
	ids, err := k.machine.runtime.SandboxesOf(string(p.uid))
	if err != nil || len(ids) == 0 {
		http.Error(w, fmt.Sprintf("pod not found (%q)", p.name), http.StatusNotFound)
		return
	}
	opts, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, streams{k, ids[0]}, p.name, "", opts, streamIdle, streamCreation,
		portforward.SupportedProtocols)
}

// streams connects the streaming servers to a container or sandbox.
type streams struct {
	kubelet *kubelet
	id      string
}

func (s streams) open(in io.Reader, out, errOut io.WriteCloser, tty bool,
	resize <-chan remotecommand.TerminalSize,
) cri.Streams {
	st := cri.Streams{Stdin: in, TTY: tty}
	if out != nil {
		st.Stdout = out
	}
	if errOut != nil {
		st.Stderr = errOut
	}
	if tty {
		sizes := make(chan kit.TerminalSize, 1)
		st.Resize = sizes
		go func() {
			defer close(sizes)
			for size := range resize {
				select {
				case sizes <- kit.TerminalSize(size):
				default:
				}
			}
		}()
	}
	return st
}

// ExecInContainer implements remotecommand.Executor.
func (s streams) ExecInContainer(ctx context.Context, _, _, _ string, argv []string, in io.Reader, out,
	errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration,
) error {
	err := s.kubelet.machine.runtime.Run(ctx, s.id, argv, s.open(in, out, errOut, tty, resize))
	if st, ok := status.FromError(err); ok && err != nil {
		return errors.New(st.Message()) // Without the words of a remote call.
	}
	return err
}

// AttachContainer implements remotecommand.Attacher.
func (s streams) AttachContainer(ctx context.Context, _, _, _ string, in io.Reader, out, errOut io.WriteCloser,
	tty bool, resize <-chan remotecommand.TerminalSize,
) error {
	return s.kubelet.machine.runtime.Connect(ctx, s.id, s.open(in, out, errOut, tty, resize))
}

// PortForward implements portforward.PortForwarder.
func (s streams) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	c, err := s.kubelet.machine.runtime.Dial(ctx, s.id, port)
	if err != nil {
		return err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.Copy(c, stream)
		if w, ok := c.(interface{ CloseWrite() error }); ok {
			_ = w.CloseWrite()
		}
	}()
	_, err = io.Copy(stream, c)
	_ = stream.Close()
	<-sent
	return err
}
