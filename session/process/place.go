package process

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"sync"

	"k8s.io/client-go/tools/clientcmd"
)

// A Place is where the process of an environment runs, if that is not this machine.
type Place interface {
	// Run runs the process until it ends, or until ctx does, which ends it. It reads in, answers there, and says there
	// what else it has to say. An error that is a [*session.Death] tells how it ended.
	Run(ctx context.Context, in io.Reader, answers, words io.Writer) error
	// Dial connects to a port of the loopback there.
	Dial(ctx context.Context, port int) (net.Conn, error)
	// String names the place.
	String() string
}

// lodge starts the process at its place.
func (e *Environment) lodge(requests, answers, out *os.File) {
	ctx, cancel := context.WithCancel(context.Background())
	e.leave = cancel
	go func() {
		defer cancel()
		read := e.listen(out)
		err := e.Place.Run(ctx, requests, answers, e.stderr)
		requests.Close()
		answers.Close()
		e.letIn(nil)
		e.ended(err, read, out)
	}()
}

// inlet is a port of this machine that leads to one of a place.
type inlet struct {
	net.Listener
	ctx    context.Context
	cancel context.CancelFunc
	to     func(ctx context.Context) (net.Conn, error)
	conns  sync.WaitGroup
}

// letIn closes the way to the cluster's API, and opens another, if there is one.
func (e *Environment) letIn(next *inlet) {
	e.mu.Lock()
	last := e.inlet
	e.inlet = next
	e.mu.Unlock()
	if last != nil {
		last.close()
	}
}

// reach makes a kubeconfig of the place work on this machine.
func (e *Environment) reach(kubeconfig []byte) ([]byte, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("the environment's kubeconfig: %w", err)
	}
	for _, c := range config.Clusters {
		u, err := url.Parse(c.Server)
		if err != nil {
			return nil, fmt.Errorf("the environment's kubeconfig: %w", err)
		}
		port, err := strconv.Atoi(u.Port())
		if err != nil {
			return nil, fmt.Errorf("the environment's kubeconfig: %s has no port", c.Server)
		}
		i, err := newInlet(func(ctx context.Context) (net.Conn, error) { return e.Place.Dial(ctx, port) })
		if err != nil {
			return nil, err
		}
		e.letIn(i)
		u.Host = i.Addr().String()
		c.Server = u.String()
	}
	return clientcmd.Write(*config)
}

func newInlet(to func(ctx context.Context) (net.Conn, error)) (*inlet, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	i := &inlet{Listener: l, to: to}
	i.ctx, i.cancel = context.WithCancel(context.Background())
	i.conns.Go(i.serve)
	return i, nil
}

func (i *inlet) serve() {
	for {
		c, err := i.Accept()
		if err != nil {
			return
		}
		i.conns.Go(func() { i.join(c) })
	}
}

// join passes on what either end says until one of them has nothing more to say. Both speak TLS, so that half a
// connection is of no use.
func (i *inlet) join(here net.Conn) {
	defer here.Close()
	there, err := i.to(i.ctx)
	if err != nil {
		return // Who called sees that nobody answers.
	}
	end := context.AfterFunc(i.ctx, func() { here.Close(); there.Close() })
	defer end()
	back := make(chan struct{})
	go func() {
		defer close(back)
		_, _ = io.Copy(here, there)
		here.Close()
	}()
	_, _ = io.Copy(there, here)
	there.Close()
	<-back
}

func (i *inlet) close() {
	i.Close()
	i.cancel()
	i.conns.Wait()
}

// maxFetch is how much telemetry, packed, comes from another place at a time: all of it is one line.
const maxFetch = maxMessage/4*3 - 1<<20

// pack is what a directory has.
func pack(dir string) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	if err := z.AddFS(os.DirFS(dir)); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	if b.Len() > maxFetch {
		return nil, fmt.Errorf("the telemetry takes %d MB, packed, and %d can be fetched: ask for a shorter time",
			b.Len()>>20, maxFetch>>20)
	}
	return b.Bytes(), nil
}

// unpack makes a new directory of it, in the one that is given.
func unpack(packed []byte, in string) (string, error) {
	z, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		return "", fmt.Errorf("the environment's telemetry: %w", err)
	}
	dir, err := os.MkdirTemp(in, "telemetry-")
	if err != nil {
		return "", err
	}
	return dir, os.CopyFS(dir, z)
}
