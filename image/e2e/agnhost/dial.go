package agnhost

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// askTimeout is how long another pod has to answer one question.
const askTimeout = 5 * time.Second

// dial asks another pod, as often as it is told, and reports each answer and each failure:
//
//	/dial?protocol=http|udp&host=H&port=P&request=R&tries=N
func (n *netexec) dial(r *http.Request) answer {
	q := r.URL.Query()
	ask, ok := map[string]func(ctx context.Context, addr, request string) (string, error){
		"": n.askHTTP, "http": n.askHTTP, "udp": n.askUDP,
	}[strings.ToLower(q.Get("protocol"))]
	if !ok {
		return bad("protocol=%s: it speaks http and udp", q.Get("protocol"))
	}
	request := q.Get("request")
	if request == "" {
		return bad("there is no request=")
	}
	addr, err := n.resolve(r.Context(), net.JoinHostPort(q.Get("host"), q.Get("port")))
	if err != nil {
		return bad("host=%s&port=%s: %v", q.Get("host"), q.Get("port"), err)
	}
	tries := 1
	if s := q.Get("tries"); s != "" {
		if tries, err = strconv.Atoi(s); err != nil {
			return bad("tries=%s is not a number", s)
		}
	}
	var report struct {
		Responses []string `json:"responses,omitempty"`
		Errors    []string `json:"errors,omitempty"`
	}
	for range tries {
		if text, err := ask(r.Context(), addr, request); err != nil {
			report.Errors = append(report.Errors, err.Error())
		} else {
			report.Responses = append(report.Responses, text)
		}
	}
	return document(report)
}

// askHTTP fetches a page of another pod.
func (p *program) askHTTP(ctx context.Context, addr, page string) (string, error) {
	return p.get(ctx, "http://"+addr+"/"+page)
}

// get fetches a page, whatever its status, over a connection of its own.
func (p *program) get(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	transport := p.env.HTTPTransport()
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport, Timeout: askTimeout}).Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// askUDP sends a datagram and returns the one that comes back.
func (p *program) askUDP(ctx context.Context, addr, request string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	conn, err := p.env.Net.DialContext(ctx, "udp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if _, err := io.WriteString(conn, request); err != nil {
		return "", err
	}
	buf := make([]byte, maxDatagram)
	size, err := conn.Read(buf)
	if ctx.Err() != nil {
		return "", fmt.Errorf("no answer from %s within %v", addr, askTimeout)
	}
	return string(buf[:size]), err
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
