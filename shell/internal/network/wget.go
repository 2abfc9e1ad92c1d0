package network

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var wget = tool.Tool{
	Name: "wget",
	Options: "c,continue q,quiet nv,no-verbose S,server-response O:,output-document o:,output-file " +
		"P:,directory-prefix T:,timeout t:,tries U:,user-agent Y:,proxy header: post-data: " +
		"post-file: method: body-data: body-file: spider no-check-certificate user: password: " +
		"http-user: http-password: connect-timeout: read-timeout: dns-timeout: retry-connrefused " +
		"waitretry: max-redirect: content-on-error no-cache no-proxy 4,inet4-only 6 N n: r x",
	Args: "[-cqS] [--spider] [-O FILE] [-o LOGFILE] [--header STR]\n" +
		"\t[--post-data STR | --post-file FILE] [-Y on/off] [--no-check-certificate]\n" +
		"\t[-P DIR] [-U AGENT] [-T SEC] URL...",
	Help: "Retrieve files via HTTP or FTP\n" +
		"\n" +
		"\t--spider\tOnly check URL existence: $? is 0 if exists\n" +
		"\t--header STR\tAdd STR (of form 'header: value') to headers\n" +
		"\t--post-data STR\tSend STR using POST method\n" +
		"\t-c\t\tContinue retrieval of aborted transfer\n" +
		"\t-q\t\tQuiet\n" +
		"\t-P DIR\t\tSave to DIR (default .)\n" +
		"\t-S\t\tShow server response\n" +
		"\t-T SEC\t\tNetwork read timeout is SEC seconds\n" +
		"\t-O FILE\t\tSave to FILE ('-' for stdout)\n" +
		"\t-U STR\t\tUse STR for User-Agent header",
	Run: func(ctx context.Context, c *tool.Call) error {
		if len(c.Args) == 0 {
			return c.Usage()
		}
		w := &wgetRun{c: c, timeout: 900 * time.Second}
		if text := c.Opts.Get("T", c.Opts.Get("connect-timeout", "")); text != "" {
			d, err := tool.ParseDuration(text)
			if err != nil {
				return c.Fail(1, "%v", err)
			}
			w.timeout = d
		}
		for _, raw := range c.Args {
			if err := w.get(ctx, raw); err != nil {
				return err
			}
		}
		return nil
	},
}

// wgetRun is a wget under way.
type wgetRun struct {
	c       *tool.Call
	timeout time.Duration
}

func (w *wgetRun) note(format string, args ...any) {
	if !w.c.Opts.Has("q") {
		w.c.Note(format, args...)
	}
}

// maxWgetRedirects is BusyBox's.
const maxWgetRedirects = 16

func (w *wgetRun) get(ctx context.Context, raw string) error {
	if !strings.Contains(raw, "://") {
		raw = "http://" + raw
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return w.c.Fail(1, "not an http or ftp url: %s", raw)
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return w.c.Fail(1, "not an http or ftp url: %s", raw)
	}
	name := w.target(u)
	for range maxWgetRedirects {
		next, err := w.fetch(ctx, u, name)
		if err != nil || next == nil {
			return err
		}
		u = next
	}
	return w.c.Fail(1, "too many redirections")
}

// target is the file to save to; "-" is standard output.
func (w *wgetRun) target(u *url.URL) string {
	name := w.c.Opts.Get("O", "")
	if name == "" {
		if name = path.Base(u.Path); name == "." || name == "/" || strings.HasSuffix(u.Path, "/") {
			name = "index.html"
		}
		if dir := w.c.Opts.Get("P", ""); dir != "" {
			name = tool.Join(dir, name)
		}
	}
	return name
}

// fetch makes one request. It returns where the server redirects to, if it does.
func (w *wgetRun) fetch(ctx context.Context, u *url.URL, name string) (*url.URL, error) {
	c := w.c
	// The timeout is for the network to be silent, so every sign of life starts it anew.
	alive, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(w.timeout, func() { cancel(errWgetTimeout) })
	defer timer.Stop()
	conn, err := w.connect(alive, u)
	if err != nil {
		if errors.Is(context.Cause(alive), errWgetTimeout) {
			return nil, c.Fail(1, "download timed out")
		}
		return nil, err
	}
	defer conn.Close()
	defer guard(alive, conn)()
	q, err := w.request(u)
	if err != nil {
		return nil, err
	}
	c.Out.Flush()
	fail := func(err error) error {
		tool.Stopped(ctx)
		switch {
		case errors.Is(context.Cause(alive), errWgetTimeout):
			return c.Fail(1, "download timed out")
		case errors.Is(err, errEmptyReply), errors.Is(err, errNotHTTP):
			return c.Fail(1, "error getting response")
		}
		return c.Fail(1, "error getting response: %s", tool.Reason(err))
	}
	q.send(conn) // What the server says counts, even if it did not read everything.
	resp, err := readResponse(bufio.NewReaderSize(conn, 64<<10), q.method, func(p *httpResponse) {
		if c.Opts.Has("S") {
			w.note("  %s\n", p.line)
			for _, f := range p.header {
				w.note("  %s: %s\n", f.name, f.value)
			}
		}
	})
	if err != nil {
		return nil, fail(err)
	}
	defer resp.body.Close()
	timer.Reset(w.timeout)
	switch location := resp.get("Location"); {
	case resp.code >= 300 && resp.code < 400 && location != "":
		next, err := u.Parse(location)
		if err != nil {
			return nil, c.Fail(1, "bad redirect '%s'", location)
		}
		return next, nil
	case resp.code/100 != 2:
		if c.Opts.Has("content-on-error") {
			io.Copy(c.Out, resp.body)
		}
		return nil, c.Fail(1, "server returned error: %s", resp.line)
	case c.Opts.Has("spider"):
		w.note("remote file exists\n")
		return nil, nil
	}
	return nil, w.save(resp, name, timer, fail)
}

var errWgetTimeout = errors.New("timed out")

func (w *wgetRun) connect(ctx context.Context, u *url.URL) (net.Conn, error) {
	c := w.c
	port := portOf(u)
	addrs, err := c.Env.Net.LookupHost(ctx, u.Hostname())
	if err != nil || len(addrs) == 0 {
		tool.Stopped(c.Context())
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, c.Fail(1, "bad address '%s'", u.Host)
	}
	w.note("Connecting to %s (%s)\n", u.Host, net.JoinHostPort(addrs[0], port))
	conn, err := c.Env.Net.DialContext(ctx, "tcp", net.JoinHostPort(addrs[0], port))
	if err != nil {
		tool.Stopped(c.Context())
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, c.Fail(1, "can't connect to remote host (%s): %s", addrs[0], tool.Reason(err))
	}
	if u.Scheme != "https" {
		return conn, nil
	}
	if !c.Opts.Has("no-check-certificate") {
		w.note("wget: note: TLS certificate validation not implemented\n")
	}
	t := tls.Client(conn, &tls.Config{ServerName: u.Hostname(), InsecureSkipVerify: true})
	if err := t.HandshakeContext(ctx); err != nil {
		conn.Close()
		tool.Stopped(c.Context())
		return nil, c.Fail(1, "TLS error from peer")
	}
	return t, nil
}

func (w *wgetRun) request(u *url.URL) (*httpRequest, error) {
	o := &w.c.Opts
	q := &httpRequest{method: "GET", target: u.RequestURI(), version: "HTTP/1.1"}
	body, has := o.Get("post-data", ""), o.Has("post-data")
	if has || o.Has("post-file") {
		q.method = "POST"
	}
	if o.Has("body-data") {
		body, has = o.Get("body-data", ""), true
	}
	for _, option := range []string{"post-file", "body-file"} {
		if file := o.Get(option, ""); file != "" {
			data, err := w.c.ReadAll(file)
			if err != nil {
				return nil, w.c.Fail(1, "can't open '%s': %s", file, tool.Reason(err))
			}
			body, has = string(data), true
		}
	}
	q.method = o.Get("method", q.method)
	if o.Has("spider") {
		q.method = "HEAD"
	}
	for _, h := range o.All("header") {
		name, value, _ := strings.Cut(h, ":")
		q.header = append(q.header, field{name, strings.TrimSpace(value)})
	}
	add := func(name, value string) {
		if !q.has(name) {
			q.header = append(q.header, field{name, value})
		}
	}
	add("Host", u.Host)
	add("User-Agent", o.Get("U", "Wget"))
	add("Connection", "close")
	user, password := o.Get("user", o.Get("http-user", "")), o.Get("password", o.Get("http-password", ""))
	if u.User != nil {
		user = u.User.Username()
		password, _ = u.User.Password()
	}
	if user != "" {
		add("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
	}
	if has {
		q.body, q.length = strings.NewReader(body), int64(len(body))
		add("Content-Type", "application/x-www-form-urlencoded")
		add("Content-Length", strconv.Itoa(len(body)))
	}
	return q, nil
}

// save copies the body to the file, and tells so.
func (w *wgetRun) save(resp *httpResponse, name string, timer *time.Timer, fail func(error) error) error {
	c := w.c
	var out io.WriteCloser = nopCloser{c.Out}
	if name == "-" {
		w.note("writing to stdout\n")
	} else {
		flag := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
		if !c.Opts.Has("O") && !c.Opts.Has("c") {
			flag |= os.O_EXCL
		}
		f, err := c.Create(name, flag, 0o666)
		if err != nil {
			return c.Fail(1, "can't open '%s': %s", name, tool.Reason(err))
		}
		defer f.Close()
		out = f
		w.note("saving to '%s'\n", name)
	}
	var total int64
	buf := make([]byte, 32<<10)
	for {
		n, err := resp.body.Read(buf)
		timer.Reset(w.timeout)
		if n > 0 {
			total += int64(n)
			if _, err := out.Write(buf[:n]); err != nil {
				return c.Fail(1, "write error: %s", tool.Reason(err))
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) {
				return c.Fail(1, "connection closed prematurely")
			}
			return fail(err)
		}
	}
	c.Out.Flush()
	shown := tool.Base(name)
	w.note("%-20.20s 100%% |%s| %5s  0:00:00 ETA\n", shown, strings.Repeat("*", 32), shortSize(total))
	if name == "-" {
		w.note("written to stdout\n")
	} else {
		w.note("'%s' saved\n", name)
	}
	return nil
}

// shortSize is a size as the progress bar shows it.
func shortSize(n int64) string {
	if n < 100_000 {
		return strconv.FormatInt(n, 10)
	}
	if n < 100_000<<10 {
		return fmt.Sprintf("%dk", n>>10)
	}
	return fmt.Sprintf("%dM", n>>20)
}
