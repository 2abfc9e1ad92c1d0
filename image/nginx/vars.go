package nginx

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// text is a string of a configuration in which variables are replaced.
type text struct {
	source string
	parts  []fragment
}

// fragment is literal text, or the value of a variable if it has a name.
type fragment struct{ literal, variable string }

// isConstant reports whether there is no variable in a text.
func (t *text) isConstant() bool {
	for _, p := range t.parts {
		if p.variable != "" {
			return false
		}
	}
	return true
}

// eval returns the text for a request.
func (t *text) eval(x *exchange) string {
	var b strings.Builder
	for _, p := range t.parts {
		if p.variable != "" {
			b.WriteString(x.variable(p.variable))
		} else {
			b.WriteString(p.literal)
		}
	}
	return b.String()
}

// compile reads a text. known tells whether a variable exists that is not built in.
func compile(s string, known func(string) bool) (*text, error) {
	t := &text{source: s}
	literal := func(s string) {
		if s != "" {
			t.parts = append(t.parts, fragment{literal: s})
		}
	}
	for {
		before, after, found := strings.Cut(s, "$")
		literal(before)
		if !found {
			return t, nil
		}
		name, rest := variableName(after)
		if name == "" {
			return nil, fmt.Errorf("invalid variable name")
		}
		if !isVariable(name) && !known(name) {
			return nil, fmt.Errorf("unknown %q variable", name)
		}
		t.parts = append(t.parts, fragment{variable: name})
		s = rest
	}
}

// variableName splits what follows a dollar sign.
func variableName(s string) (name, rest string) {
	if braced, ok := strings.CutPrefix(s, "{"); ok {
		name, rest, _ = strings.Cut(braced, "}")
		return name, rest
	}
	if s != "" && s[0] >= '0' && s[0] <= '9' {
		return s[:1], s[1:]
	}
	end := strings.IndexFunc(s, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	if end < 0 {
		end = len(s)
	}
	return s[:end], s[end:]
}

// prefixes are the families of variables.
var prefixes = []string{"http_", "sent_http_", "upstream_http_", "arg_", "cookie_"}

func isVariable(name string) bool {
	if _, ok := variables[name]; ok {
		return true
	}
	for _, p := range prefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return len(name) == 1 && name[0] >= '0' && name[0] <= '9'
}

// variable returns a value for the request; a variable without one is empty.
func (x *exchange) variable(name string) string {
	if f, ok := variables[name]; ok {
		return f(x)
	}
	if v, ok := x.set[name]; ok {
		return v
	}
	if len(name) == 1 && name[0] >= '0' && name[0] <= '9' {
		if i := int(name[0] - '0'); i < len(x.captures) {
			return x.captures[i]
		}
		return ""
	}
	headerName := func(s string) string { return strings.ReplaceAll(s, "_", "-") }
	for _, p := range prefixes {
		rest, ok := strings.CutPrefix(name, p)
		if !ok {
			continue
		}
		switch p {
		case "http_":
			if rest == "host" {
				return x.r.Host
			}
			return strings.Join(x.r.Header.Values(headerName(rest)), ", ")
		case "sent_http_":
			return x.w.Header().Get(headerName(rest))
		case "upstream_http_":
			return x.upstream.header.Get(headerName(rest))
		case "arg_":
			values, _ := url.ParseQuery(x.args)
			return values.Get(rest)
		case "cookie_":
			if c, err := x.r.Cookie(rest); err == nil {
				return c.Value
			}
			return ""
		}
	}
	return ""
}

// variables are the built-in ones.
var variables map[string]func(*exchange) string

func init() { // Some of them refer to texts, which refer to variables.
	seconds := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }
	variables = map[string]func(*exchange) string{
		"args":             func(x *exchange) string { return x.args },
		"query_string":     func(x *exchange) string { return x.args },
		"body_bytes_sent":  func(x *exchange) string { return strconv.FormatInt(x.w.bytes, 10) },
		"bytes_sent":       func(x *exchange) string { return strconv.FormatInt(x.w.bytes, 10) },
		"connection":       func(x *exchange) string { return strconv.FormatInt(x.connection, 10) },
		"content_length":   func(x *exchange) string { return x.r.Header.Get("Content-Length") },
		"content_type":     func(x *exchange) string { return x.r.Header.Get("Content-Type") },
		"document_root":    func(x *exchange) string { return x.documentRoot() },
		"request_filename": func(x *exchange) string { return x.filename(x.uri) },
		"document_uri":     func(x *exchange) string { return x.uri },
		"uri":              func(x *exchange) string { return x.uri },
		"host":             (*exchange).host,
		"hostname":         func(x *exchange) string { return x.in.env.Hostname },
		"is_args":          (*exchange).isArgs,
		"msec": func(*exchange) string {
			return strconv.FormatFloat(float64(time.Now().UnixMilli())/1000, 'f', 3, 64)
		},
		"nginx_version": func(*exchange) string { return Version },
		"pid":           func(x *exchange) string { return strconv.Itoa(x.in.pid) },
		"remote_addr":   (*exchange).client,
		"remote_port": func(x *exchange) string {
			_, port, _ := net.SplitHostPort(x.r.RemoteAddr)
			return port
		},
		"remote_user":            func(x *exchange) string { user, _, _ := x.r.BasicAuth(); return user },
		"request":                (*exchange).requestLine,
		"request_length":         func(x *exchange) string { return strconv.FormatInt(max(x.r.ContentLength, 0), 10) },
		"request_method":         func(x *exchange) string { return x.r.Method },
		"request_time":           func(x *exchange) string { return seconds(time.Since(x.started)) },
		"request_uri":            func(x *exchange) string { return x.r.RequestURI },
		"scheme":                 (*exchange).scheme,
		"server_addr":            (*exchange).serverAddr,
		"server_name":            func(x *exchange) string { return x.server.name() },
		"server_port":            func(x *exchange) string { return x.listen.port },
		"server_protocol":        func(x *exchange) string { return x.r.Proto },
		"status":                 func(x *exchange) string { return fmt.Sprintf("%03d", x.w.status) },
		"time_iso8601":           written("2006-01-02T15:04:05-07:00"),
		"time_local":             written("02/Jan/2006:15:04:05 -0700"),
		"proxy_host":             func(x *exchange) string { return x.upstream.host },
		"proxy_port":             func(x *exchange) string { return x.upstream.port },
		"upstream_addr":          func(x *exchange) string { return strings.Join(x.upstream.addrs, ", ") },
		"upstream_status":        func(x *exchange) string { return strings.Join(x.upstream.statuses, ", ") },
		"upstream_response_time": func(x *exchange) string { return strings.Join(x.upstream.times, ", ") },
		"proxy_add_x_forwarded_for": func(x *exchange) string {
			if before := x.r.Header.Get("X-Forwarded-For"); before != "" {
				return before + ", " + x.client()
			}
			return x.client()
		},
	}
}

// client is the address of who asks.
func (x *exchange) client() string {
	host, _, err := net.SplitHostPort(x.r.RemoteAddr)
	if err != nil {
		return x.r.RemoteAddr
	}
	return host
}

// host is the name the client asked for, in lower case and without port, else the server's.
func (x *exchange) host() string {
	if name := hostName(x.r.Host); name != "" {
		return name
	}
	return x.server.name()
}

func hostName(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

func (x *exchange) isArgs() string {
	if x.args == "" {
		return ""
	}
	return "?"
}

func (x *exchange) scheme() string {
	if x.r.TLS != nil {
		return "https"
	}
	return "http"
}

func (x *exchange) serverAddr() string {
	if a, ok := x.r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		host, _, _ := net.SplitHostPort(a.String())
		return host
	}
	return ""
}

func (x *exchange) requestLine() string {
	return x.r.Method + " " + x.r.RequestURI + " " + x.r.Proto
}

// written is a variable that tells the time in a layout. In a container, that is UTC.
func written(layout string) func(*exchange) string {
	return func(*exchange) string { return time.Now().UTC().Format(layout) }
}
