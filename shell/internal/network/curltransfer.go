package network

import (
	"context"
	"errors"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// stats are what -w shows of a transfer.
type stats struct {
	start                                            time.Time
	lookup, connect, handshake, pretransfer, started time.Duration
	total, redirect                                  time.Duration
	url, effective, method, scheme, redirectURL      string
	code, redirects, connects, exit                  int
	proto, contentType                               string
	remoteIP, remotePort, localIP, localPort         string
	down, up, head, request                          int64
	file, message                                    string
	header                                           []field
}

// transfer fetches one URL, as often as --retry says.
func (r *curlRun) transfer(ctx context.Context, raw string, index int) error {
	o := &r.c.Opts
	retries, _ := strconv.Atoi(o.Get("retry", "0"))
	delay := time.Second
	for left := retries; ; left-- {
		st := &stats{start: time.Now(), url: raw}
		out := &curlOutput{r: r, index: index}
		err := r.attempt(ctx, raw, st, out)
		st.total = time.Since(st.start)
		tool.Stopped(r.c.Context())
		if reason := r.transient(st, err); reason != "" && left > 0 {
			wait := delay
			if text := o.Get("retry-delay", ""); text != "" {
				if d, err := tool.ParseDuration(text); err == nil && d > 0 {
					wait = d
				}
			}
			out.close()
			if !o.Has("s") {
				seconds, retries := "seconds", "retries"
				if wait == time.Second {
					seconds = "second"
				}
				if left == 1 {
					retries = "retry"
				}
				r.c.Note("Warning: Problem : %s. Will retry in %d %s. %d %s left.\n",
					reason, int(wait.Seconds()), seconds, left, retries)
			}
			r.c.Sleep(ctx, wait)
			delay = min(2*delay, 10*time.Minute)
			continue
		}
		st.file = out.name
		if closeErr := out.close(); err == nil {
			err = closeErr
		}
		if e, ok := errors.AsType[*curlError](err); ok {
			st.exit, st.message = e.code, e.text
			r.failed(e)
		}
		r.writeOut(st)
		return err
	}
}

// transient says why a transfer is worth another try, or "".
func (r *curlRun) transient(st *stats, err error) string {
	o := &r.c.Opts
	if e, ok := errors.AsType[*curlError](err); ok {
		switch {
		case e.code == 28:
			return "timeout"
		case e.code == 7 && o.Has("retry-connrefused"):
			return "connection refused"
		case o.Has("retry-all-errors"):
			return "(retrying all errors)"
		}
	}
	switch st.code {
	case 408, 429, 500, 502, 503, 504:
		return "HTTP error"
	}
	return ""
}

// limit is the context of one attempt.
func (r *curlRun) limit(ctx context.Context) (context.Context, context.CancelFunc, error) {
	text := r.c.Opts.Get("m", "")
	if text == "" {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel, nil
	}
	d, err := tool.ParseDuration(text)
	if err != nil {
		return nil, nil, &curlError{2, "expected a proper numerical parameter"}
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	return ctx, cancel, nil
}

// attempt fetches a URL and follows redirections.
func (r *curlRun) attempt(ctx context.Context, raw string, st *stats, out *curlOutput) error {
	ctx, cancel, err := r.limit(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	u, err := parseURL(raw)
	if err != nil {
		return err
	}
	st.effective = u.String()
	if u.Scheme == "file" {
		return r.localFile(u, out)
	}
	maxRedirects, err := strconv.Atoi(r.c.Opts.Get("max-redirs", "50"))
	if err != nil {
		maxRedirects = 50
	}
	method, body := r.method()
	origin := u.Host
	for {
		follow, err := r.exchange(ctx, u, method, body, origin, st, out)
		if err != nil || follow == "" {
			return err
		}
		target, err := u.Parse(follow)
		if err != nil {
			return &curlError{3, "URL rejected: Malformed input to a URL function"}
		}
		if st.redirectURL = target.String(); !r.c.Opts.Has("L") && !r.c.Opts.Has("location-trusted") {
			return nil
		}
		if st.redirects++; maxRedirects >= 0 && st.redirects > maxRedirects {
			return &curlError{47, "Maximum (" + strconv.Itoa(maxRedirects) + ") redirects followed"}
		}
		st.redirectURL, st.redirect = "", time.Since(st.start)
		r.info("Issue another request to this URL: '%s'", target)
		u = target
		st.effective = u.String()
		switch {
		case st.code == 303 && method != "HEAD" && !r.c.Opts.Has("post303"),
			(st.code == 301 && !r.c.Opts.Has("post301") || st.code == 302 && !r.c.Opts.Has("post302")) &&
				method == "POST":
			if body = nil; !r.c.Opts.Has("X") {
				method = "GET"
			}
		}
	}
}

// method is what the request does by its options.
func (r *curlRun) method() (string, *uploadBody) {
	method, body := "GET", r.body
	if body != nil {
		method = body.method
	}
	if r.c.Opts.Has("I") {
		method = "HEAD"
	}
	return r.c.Opts.Get("X", method), body
}

// parseURL reads a URL as curl takes it: without a scheme it is http.
func parseURL(raw string) (*url.URL, error) {
	text := strings.TrimSpace(raw)
	if scheme, _, ok := strings.Cut(text, "://"); ok {
		switch strings.ToLower(scheme) {
		case "http", "https", "file":
		default:
			return nil, &curlError{1, "Protocol \"" + scheme + "\" not supported"}
		}
	} else {
		text = "http://" + text
	}
	// Blanks and the like would be refused; curl sends them as they are, encoded.
	text = strings.ReplaceAll(text, " ", "%20")
	u, err := url.Parse(text)
	if err != nil {
		if strings.Contains(err.Error(), "invalid port") {
			return nil, &curlError{3, "URL rejected: Port number was not a decimal number between 0 and 65535"}
		}
		return nil, &curlError{3, "URL rejected: Malformed input to a URL function"}
	}
	if u.Scheme != "file" && u.Hostname() == "" {
		return nil, &curlError{3, "URL rejected: No host part in the URL"}
	}
	return u, nil
}

func (r *curlRun) localFile(u *url.URL, out *curlOutput) error {
	data, err := r.c.ReadAll(u.Path)
	if err != nil {
		return &curlError{37, "Couldn't open file " + u.Path}
	}
	return out.write(data)
}

// remoteName is what -O calls the file.
func remoteName(raw string) string {
	u, err := parseURL(raw)
	if err != nil || u.Path == "" || strings.HasSuffix(u.Path, "/") {
		return ""
	}
	return path.Base(u.Path)
}
