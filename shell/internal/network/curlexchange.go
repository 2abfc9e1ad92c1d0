package network

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// request builds what is sent for a URL.
func (r *curlRun) request(u *url.URL, method string, body *uploadBody, origin string) *httpRequest {
	o := &r.c.Opts
	target := u.EscapedPath()
	if target == "" {
		target = "/"
	}
	query := u.RawQuery
	for _, extra := range append(o.All("url-query"), bodyQuery(body)) {
		if extra != "" {
			query = strings.TrimPrefix(query+"&"+extra, "&")
		}
	}
	if body != nil && body.file != "" && strings.HasSuffix(target, "/") {
		target += body.file
	}
	if query != "" || u.ForceQuery {
		target += "?" + query
	}
	if u.Scheme == "http" && r.proxy(u) != nil {
		target = u.Scheme + "://" + u.Host + target
	}
	if t := o.Get("request-target", ""); t != "" {
		target = t
	}
	q := &httpRequest{method: method, target: target, version: "HTTP/1.1"}
	if o.Has("0") {
		q.version = "HTTP/1.0"
	}
	custom, removed := r.customHeader()
	add := func(name, value string) {
		for _, f := range custom {
			if strings.EqualFold(f.name, name) {
				return
			}
		}
		if value != "" && !removed[strings.ToLower(name)] {
			q.header = append(q.header, field{name, value})
		}
	}
	add("Host", u.Host)
	if credentials := r.credentials(u, origin); credentials != "" {
		add("Authorization", credentials)
	}
	add("User-Agent", o.Get("A", "curl/"+curlVersion))
	add("Accept", map[bool]string{true: "application/json", false: "*/*"}[o.Has("json")])
	if o.Has("compressed") {
		add("Accept-Encoding", "deflate, gzip")
	}
	referer, _, _ := strings.Cut(o.Get("e", ""), ";auto")
	add("Referer", referer)
	add("Cookie", r.jar.header(u))
	if rng := o.Get("r", ""); rng != "" {
		add("Range", "bytes="+rng)
	}
	q.header = append(q.header, custom...)
	if body == nil || body.method == "GET" {
		return q
	}
	q.body, q.length = body.reader()
	if q.length >= 0 {
		add("Content-Length", fmt.Sprint(q.length))
	} else {
		add("Transfer-Encoding", "chunked")
	}
	add("Content-Type", body.contentType)
	return q
}

func bodyQuery(b *uploadBody) string {
	if b == nil {
		return ""
	}
	return b.query
}

// customHeader are the fields of -H. "Name:" removes one that curl would send, "Name;" sends it
// empty.
func (r *curlRun) customHeader() (fields []field, removed map[string]bool) {
	removed = map[string]bool{}
	var lines []string
	for _, h := range r.c.Opts.All("H") {
		if file, ok := strings.CutPrefix(h, "@"); ok {
			if data, err := r.c.ReadAll(file); err == nil {
				lines = append(lines, strings.Split(strings.TrimSpace(string(data)), "\n")...)
			}
			continue
		}
		lines = append(lines, h)
	}
	for _, line := range lines {
		name, value, ok := strings.Cut(strings.TrimRight(line, "\r"), ":")
		value = strings.TrimSpace(value)
		switch {
		case !ok && strings.HasSuffix(name, ";"):
			fields = append(fields, field{strings.TrimSuffix(name, ";"), ""})
		case !ok:
		case value == "":
			removed[strings.ToLower(name)] = true
		default:
			fields = append(fields, field{name, value})
		}
	}
	return fields, removed
}

// credentials is the value of Authorization. It is not sent to other hosts than the first.
func (r *curlRun) credentials(u *url.URL, origin string) string {
	if u.Host != origin && !r.c.Opts.Has("location-trusted") {
		return ""
	}
	if token := r.c.Opts.Get("oauth2-bearer", ""); token != "" {
		return "Bearer " + token
	}
	user := r.c.Opts.Get("u", "")
	if user == "" && u.User != nil {
		password, _ := u.User.Password()
		user = u.User.Username() + ":" + password
	}
	if user == "" {
		return ""
	}
	if !strings.Contains(user, ":") {
		user += ":"
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user))
}

// exchange makes one request. It returns where the server redirects to, or "".
func (r *curlRun) exchange(
	ctx context.Context, u *url.URL, method string, body *uploadBody, origin string, st *stats, out *curlOutput,
) (follow string, err error) {
	st.method, st.scheme, st.code = method, u.Scheme, 0
	conn, err := r.connect(ctx, u, st)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	defer guard(ctx, conn)()
	st.pretransfer = time.Since(st.start)
	q := r.request(u, method, body, origin)
	r.info("using HTTP/1.x")
	r.traffic(">", q.head())
	r.c.Out.Flush()
	sent, err := q.send(conn)
	st.request += int64(len(q.head()))
	st.up += sent
	if sent > 0 {
		if r.verbose {
			r.c.Note("} [%d bytes data]\n* upload completely sent off: %d bytes\n", sent, sent)
		}
	}
	if err != nil && ctx.Err() != nil {
		return "", r.timedOut(st, -1)
	}
	// A server may answer without reading the body; what it says counts.
	resp, err := readResponse(bufio.NewReaderSize(conn, 64<<10), method, func(p *httpResponse) {
		if st.started == 0 {
			st.started = time.Since(st.start)
		}
		st.head += int64(p.size)
		r.showHead(p, out)
	})
	if err != nil {
		return "", r.receiveError(ctx, err, st, -1)
	}
	defer resp.body.Close()
	st.code, st.proto, st.contentType, st.header = resp.code, resp.proto, resp.get("Content-Type"), resp.header
	r.jar.take(u, resp)
	location := resp.get("Location")
	redirected := resp.code >= 300 && resp.code < 400 && location != ""
	if redirected && (r.c.Opts.Has("L") || r.c.Opts.Has("location-trusted")) {
		return location, nil
	}
	if resp.code >= 400 && r.c.Opts.Has("f") {
		r.info("The requested URL returned error: %d", resp.code)
		return "", &curlError{22, fmt.Sprintf("The requested URL returned error: %d", resp.code)}
	}
	if method != "HEAD" {
		if err := r.receive(ctx, resp, st, out); err != nil {
			return "", err
		}
	}
	r.info("Connection #%d to host %s left intact", max(0, st.connects-1), u.Hostname())
	if resp.code >= 400 && r.c.Opts.Has("fail-with-body") {
		return "", &curlError{22, fmt.Sprintf("The requested URL returned error: %d", resp.code)}
	}
	if !redirected {
		location = ""
	}
	return location, nil
}

// showHead shows the head of a response where it is wanted.
func (r *curlRun) showHead(p *httpResponse, out *curlOutput) {
	var b strings.Builder
	b.WriteString(p.line + "\r\n")
	for _, f := range p.header {
		b.WriteString(f.name + ": " + f.value + "\r\n")
	}
	b.WriteString("\r\n")
	r.traffic("<", b.String())
	out.head(b.String())
}

// receive copies the body to the output.
func (r *curlRun) receive(ctx context.Context, resp *httpResponse, st *stats, out *curlOutput) error {
	var body io.Reader = &counted{resp.body, &st.down}
	if r.c.Opts.Has("compressed") {
		switch strings.ToLower(resp.get("Content-Encoding")) {
		case "gzip", "x-gzip":
			z, err := gzip.NewReader(body)
			if err != nil {
				return &curlError{61, "Error while processing content unencoding: incorrect header check"}
			}
			body = z
		case "deflate":
			body = flate.NewReader(body)
		}
	}
	buf := make([]byte, 32<<10)
	for first := true; ; first = false {
		n, err := body.Read(buf)
		if n > 0 {
			if r.verbose && first {
				r.c.Note("{ [%d bytes data]\n", n)
			}
			r.c.Work(n)
			if err := out.write(buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return r.receiveError(ctx, err, st, resp.length)
		}
	}
}

// counted counts what is read.
type counted struct {
	io.Reader
	n *int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	*c.n += int64(n)
	return n, err
}

func (r *curlRun) timedOut(st *stats, length int64) error {
	ms := time.Since(st.start).Milliseconds()
	text := fmt.Sprintf("Operation timed out after %d milliseconds with %d bytes received", ms, st.down)
	if length >= 0 {
		text = fmt.Sprintf("Operation timed out after %d milliseconds with %d out of %d bytes received",
			ms, st.down, length)
	}
	r.info("%s", text)
	r.info("closing connection #0")
	return &curlError{28, text}
}

// receiveError says what went wrong while a response was read.
func (r *curlRun) receiveError(ctx context.Context, err error, st *stats, length int64) error {
	var e *curlError
	switch {
	case ctx.Err() != nil:
		return r.timedOut(st, length)
	case errors.Is(err, errEmptyReply):
		e = &curlError{52, "Empty reply from server"}
	case errors.Is(err, syscall.ECONNRESET):
		e = &curlError{56, "Recv failure: Connection reset by peer"}
	case errors.Is(err, errNotHTTP):
		e = &curlError{1, "Received HTTP/0.9 when not allowed"}
	case errors.Is(err, io.ErrUnexpectedEOF) && length >= 0:
		e = &curlError{18, fmt.Sprintf("end of response with %d bytes missing", length-st.down)}
	case errors.Is(err, io.ErrUnexpectedEOF):
		e = &curlError{18, "transfer closed with outstanding read data remaining"}
	default:
		var op *net.OpError
		if errors.As(err, &op) {
			e = &curlError{56, "Recv failure: " + op.Err.Error()}
		} else {
			e = &curlError{56, "Failure when receiving data from the peer: " + err.Error()}
		}
	}
	r.info("%s", e.text)
	r.info("closing connection #0")
	return e
}

// tunnel asks a proxy for a connection to the host of a URL.
func (r *curlRun) tunnel(ctx context.Context, conn net.Conn, u *url.URL) error {
	defer guard(ctx, conn)()
	target := net.JoinHostPort(u.Hostname(), portOf(u))
	q := &httpRequest{method: "CONNECT", target: target, version: "HTTP/1.1", header: []field{
		{"Host", target}, {"User-Agent", "curl/" + curlVersion}, {"Proxy-Connection", "Keep-Alive"},
	}}
	r.traffic(">", q.head())
	if _, err := q.send(conn); err != nil {
		return &curlError{56, "Send failure: " + err.Error()}
	}
	resp, err := readResponse(bufio.NewReader(conn), "CONNECT", nil)
	if err != nil {
		return &curlError{56, "Proxy CONNECT aborted"}
	}
	if resp.code/100 != 2 {
		return &curlError{56, fmt.Sprintf("CONNECT tunnel failed, response %d", resp.code)}
	}
	return nil
}
