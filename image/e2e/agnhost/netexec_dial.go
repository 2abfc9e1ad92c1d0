package agnhost

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// dialTimeout is how long one attempt of /dial may take.
const dialTimeout = 5 * time.Second

// handleDial makes requests to somebody else and tells what came of them.
func (n *netexec) handleDial(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	host, port, request, protocol := q.Get("host"), q.Get("port"), q.Get("request"), q.Get("protocol")
	n.log.Printf("GET /dial?host=%s&protocol=%s&port=%s&request=%s&tries=%s", host, protocol, port, request, q.Get("tries"))
	tries := 1
	if s := q.Get("tries"); s != "" {
		var err error
		if tries, err = strconv.Atoi(s); err != nil {
			http.Error(w, fmt.Sprintf("tries parameter is invalid. %v", err), http.StatusBadRequest)
			return
		}
	}
	if request == "" {
		http.Error(w, "request parameter not specified.", http.StatusBadRequest)
		return
	}
	var dial func(ctx context.Context, request, addr string) (string, error)
	switch strings.ToLower(protocol) {
	case "", "http":
		dial = n.dialHTTP
	case "udp":
		dial = n.dialUDP
	default:
		http.Error(w, fmt.Sprintf("unsupported protocol. %s", protocol), http.StatusBadRequest)
		return
	}
	addr, err := n.resolve(r.Context(), net.JoinHostPort(host, port))
	if err != nil {
		http.Error(w, fmt.Sprintf("host and/or port param are invalid. %v", err), http.StatusBadRequest)
		return
	}
	var response string
	var responses, errors []string
	for range tries {
		if response, err = dial(r.Context(), request, addr); err != nil {
			errors = append(errors, err.Error())
		} else {
			responses = append(responses, response)
		}
	}
	output := map[string][]string{}
	if response != "" { // Only if the last attempt was answered.
		output["responses"] = responses
	}
	if len(errors) > 0 {
		output["errors"] = errors
	}
	n.writeJSON(w, output)
}

// resolve turns host:port into a numeric address.
func (p *program) resolve(ctx context.Context, hostPort string) (string, error) {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return "", err
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", &net.AddrError{Err: "invalid port", Addr: port}
	}
	if _, err := netip.ParseAddr(host); err == nil || host == "" {
		return hostPort, nil
	}
	addrs, err := p.env.Net.LookupHost(ctx, host)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(addrs[0], port), nil
}

func (p *program) dialHTTP(ctx context.Context, request, addr string) (string, error) {
	return p.get(ctx, fmt.Sprintf("http://%s/%s", addr, request))
}

// get fetches a page, whatever its status, over a connection of its own.
func (p *program) get(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return "", err
	}
	transport := p.env.HTTPTransport()
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport, Timeout: dialTimeout}).Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func (p *program) dialUDP(ctx context.Context, request, addr string) (string, error) {
	conn, err := p.env.Net.DialContext(ctx, "udp", addr)
	if err != nil {
		return "", fmt.Errorf("udp dial failed. err:%v", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if _, err := conn.Write([]byte(request)); err != nil {
		return "", fmt.Errorf("udp connection write failed. err:%v", err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(dialTimeout)); err != nil {
		return "", err
	}
	buf := make([]byte, 2048)
	count, err := conn.Read(buf)
	if err != nil || count == 0 {
		return "", fmt.Errorf("reading from udp connection failed. err:'%v'", err)
	}
	return string(buf[:count]), nil
}

// combinedOutput runs a command to its end and returns what it printed.
func (p *program) combinedOutput(ctx context.Context, args ...string) (string, error) {
	var mu sync.Mutex
	var printed bytes.Buffer
	env := p.env.Child(args...)
	env.Stdin = strings.NewReader("")
	env.Stdout = &lockedWriter{&mu, &printed}
	env.Stderr = env.Stdout
	env.Terminal = nil
	proc, err := p.env.Procs.Start(ctx, env)
	if err != nil {
		return "", err
	}
	code := proc.Wait()
	mu.Lock() // A child of the command may outlive it.
	defer mu.Unlock()
	if code != 0 {
		err = kit.ExitError(code)
	}
	return printed.String(), err
}
