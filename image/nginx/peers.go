package nginx

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// peers is a transport that tries the servers of an upstream one after the other.
type peers struct {
	x      *exchange
	target *proxyPass
	path   string
}

func (t *peers) RoundTrip(r *http.Request) (*http.Response, error) {
	x, u := t.x, t.target.upstream
	body := r.Body
	if body != nil {
		r.Body = io.NopCloser(body) // It is kept for the next attempt.
	}
	var tried []*peer
	for {
		p := u.pick(tried, time.Now())
		if p == nil {
			if len(tried) == 0 {
				x.upstream.url = t.target.scheme + "://" + u.name + t.path
				x.log(levelError, "no live upstreams while connecting to upstream")
				u.forget()
			}
			return nil, errNoUpstream
		}
		tried = append(tried, p)
		x.upstream.url = t.target.scheme + "://" + p.addr + t.path
		began := time.Now()
		resp, connected, err := t.try(r, p)
		x.upstream.addrs = append(x.upstream.addrs, p.addr)
		x.upstream.times = append(x.upstream.times, strconv.FormatFloat(time.Since(began).Seconds(), 'f', 3, 64))
		u.report(p, err == nil, time.Now())
		if err == nil {
			x.upstream.statuses = append(x.upstream.statuses, strconv.Itoa(resp.StatusCode))
			return resp, nil
		}
		if r.Context().Err() != nil {
			return nil, err
		}
		status := http.StatusBadGateway
		if isTimeout(err) {
			status = http.StatusGatewayTimeout
		}
		x.upstream.statuses = append(x.upstream.statuses, strconv.Itoa(status))
		x.log(levelError, "%s", failureText(err, connected))
		// What may have been received is not sent twice, unless doing so is harmless.
		repeatable := !connected || r.Method == http.MethodGet || r.Method == http.MethodHead
		if !x.scope().proxyNext || !repeatable || len(tried) == len(u.peers) {
			return nil, err
		}
	}
}

var errNoUpstream = errors.New("no live upstreams")

// try asks one server.
func (t *peers) try(r *http.Request, p *peer) (resp *http.Response, connected bool, err error) {
	s := t.x.scope()
	var dialled atomic.Bool
	transport := t.x.in.env.HTTPTransport()
	transport.DisableKeepAlives = true
	transport.DisableCompression = true
	transport.ResponseHeaderTimeout = s.proxyRead
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} // The original trusts everybody, too.
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, s.proxyConnect)
		defer cancel()
		c, err := t.x.in.env.Net.DialContext(ctx, network, p.addr)
		dialled.Store(err == nil)
		return c, err
	}
	resp, err = transport.RoundTrip(r)
	return resp, dialled.Load(), err
}

// failureText words what went wrong as the original does.
func failureText(err error, connected bool) string {
	while := "while connecting to upstream"
	if connected {
		while = "while reading response header from upstream"
	}
	var errno syscall.Errno
	switch {
	case isTimeout(err):
		return fmt.Sprintf("upstream timed out (%d: Connection timed out) %s", int(syscall.ETIMEDOUT), while)
	case errors.As(err, &errno) && connected:
		return fmt.Sprintf("recv() failed (%s) %s", errnoText(err), while)
	case errors.As(err, &errno):
		return fmt.Sprintf("connect() failed (%s) %s", errnoText(err), while)
	case connected && (errors.Is(err, io.EOF) || strings.Contains(err.Error(), "EOF")):
		return "upstream prematurely closed connection " + while
	}
	return fmt.Sprintf("upstream failed (%v) %s", err, while)
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, &n) && n.Timeout()
}
