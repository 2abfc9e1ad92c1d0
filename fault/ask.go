package fault

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/aiopslab/aiopslab/app"
	questions "github.com/aiopslab/aiopslab/app/ask"
)

// askTimeout is how long a service may take to answer what costs it next to nothing.
const askTimeout = 2 * time.Second

// elasticTimeout is how long a service may take that may have to be started.
const elasticTimeout = 8 * time.Second

// Ask asks a service of the application something that only it can answer, and says what is wrong with
// the answer. A name that is not one of its services is not asked.
func Ask(ctx context.Context, e *Env, name string) error {
	if _, ok := e.App.Service(name); !ok {
		return nil
	}
	return ask(ctx, e, name, askTimeout)
}

// AskLike asks a Service of the application's namespace, on a port, what only one of its services can answer.
func AskLike(ctx context.Context, e *Env, service, at string, port int) error {
	s, ok := e.App.Service(service)
	if !ok {
		return fmt.Errorf("%s has no service %s", e.App.Name, service)
	}
	return askAt(ctx, e, s, fmt.Sprintf("%s.%s:%d", at, e.App.Namespace, port), askTimeout)
}

// askAt asks whoever is at an address what only a service can answer.
func askAt(ctx context.Context, e *Env, s app.Service, address string, timeout time.Duration) error {
	question := s.Ask
	if question == nil {
		question = questions.Of(s.Kind)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %v", timeout))
	defer cancel()
	if _, given := questions.LoginOf(ctx); s.Secret != "" && !given {
		if login, err := loginOf(ctx, e, s.Secret); err == nil { // Without one it is asked as it was deployed.
			ctx = questions.WithLogin(ctx, login)
		}
	}
	return explain(ctx, question(ctx, e.Dial, address))
}

// ask asks a service something that only it can answer, on a new connection through its Kubernetes
// Service, as its clients would.
func ask(ctx context.Context, e *Env, name string, timeout time.Duration) error {
	s, _ := e.App.Service(name)
	p, err := read(e.App)
	if err != nil {
		return err
	}
	at, port, ok := name, int32(s.Port), s.Port != 0
	if s.Elastic { // Whoever is in front starts it first.
		at, port, ok, timeout = e.App.Frontend.Service, int32(e.App.Frontend.Port), true, max(timeout, elasticTimeout)
	}
	if !ok {
		port, ok = p.port(name)
	}
	if !ok {
		return nil // It is not there to be called.
	}
	return askAt(ctx, e, s, fmt.Sprintf("%s.%s:%d", at, e.App.Namespace, port), timeout)
}

// explain says that time was up rather than what happened then.
func explain(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// fetch reads the metrics of a service from one of its pods, by the pod's own address: that is a longer
// answer than to a greeting. A service that is deployed without metrics is asked nothing.
func fetch(ctx context.Context, e *Env, name, address string, timeout time.Duration) error {
	p, err := read(e.App)
	if err != nil {
		return err
	}
	port := p.metrics(name)
	if port == "" {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %v", timeout))
	defer cancel()
	transport := &http.Transport{DialContext: e.Dial, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(address, port)+"/metrics",
		nil)
	if err != nil {
		return err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return explain(ctx, err)
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return explain(ctx, err)
}
