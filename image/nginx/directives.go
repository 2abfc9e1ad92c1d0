package nginx

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// spec says how a directive is used and what it does.
type spec struct {
	in       place
	min, max int // number of arguments; max -1 is any
	block    bool
	inherits bool // a block that is applied after the directives around it
	apply    func(b *builder, f *frame, d *directive) error
}

// directives are all that is known.
var directives map[string]*spec

func init() {
	directives = map[string]*spec{
		// The process.
		"user":               {in: inMain, min: 1, max: 2, apply: applyUser},
		"pid":                {in: inMain, min: 1, max: 1, apply: applyPid},
		"daemon":             {in: inMain, min: 1, max: 1, apply: applyDaemon},
		"master_process":     {in: inMain, min: 1, max: 1, apply: applyFlag(func(*frame, bool) {})},
		"error_log":          {in: inMain | anyHTTP, min: 1, max: 2, apply: applyErrorLog},
		"worker_processes":   {in: inMain, min: 1, max: 1, apply: applyNumber},
		"events":             {in: inMain, block: true, apply: applyEvents},
		"worker_connections": {in: inEvents, min: 1, max: 1, apply: applyNumber},
		"http":               {in: inMain, block: true, inherits: true, apply: applyHTTP},
		"server":             {in: inHTTP, block: true, inherits: true, apply: applyServer},
		"location": {
			in: inServer | inLocation, min: 1, max: 2, block: true, inherits: true,
			apply: applyLocation,
		},
		"upstream":             {in: inHTTP, min: 1, max: 1, block: true, inherits: true, apply: applyUpstream},
		"listen":               {in: inServer, min: 1, max: -1, apply: applyListen},
		"http2":                {in: inHTTP | inServer, min: 1, max: 1, apply: applyHTTP2},
		"server_name":          {in: inServer, min: 1, max: -1, apply: applyServerName},
		"ssl_certificate":      {in: inHTTP | inServer, min: 1, max: 1, apply: applyCertificate},
		"ssl_certificate_key":  {in: inHTTP | inServer, min: 1, max: 1, apply: applyCertificate},
		"keepalive_timeout":    {in: anyHTTP, min: 1, max: 2, apply: applyKeepalive},
		"client_max_body_size": {in: anyHTTP, min: 1, max: 1, apply: applyMaxBody},
		"server_tokens": {in: anyHTTP, min: 1, max: 1, apply: applyFlag(func(f *frame, on bool) {
			f.scope.tokens = on
		})},

		// Files.
		"root": {in: anyHTTP, min: 1, max: 1, apply: applyText(func(f *frame, t *text) {
			f.scope.root = t
		})},
		"alias": {in: inLocation, min: 1, max: 1, apply: applyText(func(f *frame, t *text) {
			f.scope.alias = t
		})},
		"index": {in: anyHTTP, min: 1, max: -1, apply: applyIndex},
		"autoindex": {in: anyHTTP, min: 1, max: 1, apply: applyFlag(func(f *frame, on bool) {
			f.scope.autoindex = on
		})},
		"try_files":    {in: inServer | inLocation, min: 2, max: -1, apply: applyTryFiles},
		"types":        {in: anyHTTP, block: true, apply: applyTypes},
		"default_type": {in: anyHTTP, min: 1, max: 1, apply: applyDefaultType},
		"charset":      {in: anyHTTP, min: 1, max: 1, apply: applyCharset},
		"internal":     {in: inLocation, apply: applyInternal},
		"stub_status":  {in: inLocation, max: 1, apply: applyStatus},
		"absolute_redirect": {in: anyHTTP, min: 1, max: 1, apply: applyFlag(func(f *frame, on bool) {
			f.scope.absolute = on
		})},
		"port_in_redirect": {in: anyHTTP, min: 1, max: 1, apply: applyFlag(func(f *frame, on bool) {
			f.scope.portInTarget = on
		})},

		// Answers.
		"return":     {in: inServer | inLocation, min: 1, max: 2, apply: applyReturn},
		"rewrite":    {in: inServer | inLocation, min: 2, max: 3, apply: applyRewrite},
		"set":        {in: inServer | inLocation, min: 2, max: 2, apply: applySet},
		"error_page": {in: anyHTTP, min: 2, max: -1, apply: applyErrorPage},
		"add_header": {in: anyHTTP, min: 2, max: 3, apply: applyAddHeader},
		"expires":    {in: anyHTTP, min: 1, max: 1, apply: applyExpires},
		"access_log": {in: anyHTTP, min: 1, max: -1, apply: applyAccessLog},
		"log_format": {in: inHTTP, min: 2, max: -1, apply: applyLogFormat},

		// Upstreams.
		"proxy_pass":       {in: inLocation, min: 1, max: 1, apply: applyProxyPass},
		"proxy_set_header": {in: anyHTTP, min: 2, max: 2, apply: applyProxyHeader},
		"proxy_connect_timeout": {in: anyHTTP, min: 1, max: 1, apply: applyTime(func(f *frame, t time.Duration) {
			f.scope.proxyConnect = t
		})},
		"proxy_read_timeout": {in: anyHTTP, min: 1, max: 1, apply: applyTime(func(f *frame, t time.Duration) {
			f.scope.proxyRead = t
		})},
		"proxy_send_timeout": {in: anyHTTP, min: 1, max: 1, apply: applyTime(func(f *frame, t time.Duration) {
			f.scope.proxySend = t
		})},
		"proxy_redirect":      {in: anyHTTP, min: 1, max: 2, apply: applyProxyRedirect},
		"proxy_next_upstream": {in: anyHTTP, min: 1, max: -1, apply: applyProxyNext},
		"proxy_intercept_errors": {in: anyHTTP, min: 1, max: 1, apply: applyFlag(func(f *frame, on bool) {
			f.scope.proxyIntercept = on
		})},
		"proxy_http_version": {in: anyHTTP, min: 1, max: 1, apply: applyNothing},
		"resolver":           {in: anyHTTP, min: 1, max: -1, apply: applyResolver},
	}
	// These tune what a kernel, a disk or a thread does. Their absence changes no answer.
	for _, name := range []string{
		"use", "multi_accept", "accept_mutex", "worker_rlimit_nofile", "worker_cpu_affinity", "worker_shutdown_timeout",
		"pcre_jit", "sendfile", "tcp_nopush", "tcp_nodelay", "aio", "directio", "open_file_cache",
		"open_file_cache_valid", "open_file_cache_min_uses", "gzip", "gzip_types", "gzip_min_length", "gzip_comp_level",
		"gzip_vary", "gzip_proxied", "gzip_disable", "gzip_buffers", "gzip_http_version", "keepalive_requests",
		"reset_timedout_connection", "send_timeout", "lingering_close", "client_body_timeout", "client_header_timeout",
		"client_body_buffer_size", "client_header_buffer_size", "large_client_header_buffers", "types_hash_max_size",
		"types_hash_bucket_size", "server_names_hash_bucket_size", "server_names_hash_max_size",
		"variables_hash_max_size", "log_not_found", "log_subrequest", "resolver_timeout", "proxy_buffering",
		"proxy_buffers", "proxy_buffer_size", "proxy_busy_buffers_size", "proxy_request_buffering",
		"proxy_max_temp_file_size", "proxy_next_upstream_tries", "proxy_next_upstream_timeout",
		"proxy_socket_keepalive", "ssl_protocols", "ssl_ciphers", "ssl_prefer_server_ciphers", "ssl_session_cache",
		"ssl_session_timeout", "ssl_session_tickets", "ssl_ecdh_curve",
	} {
		directives[name] = &spec{in: inMain | inEvents | anyHTTP, min: 1, max: -1, apply: applyNothing}
	}
}

func applyNothing(*builder, *frame, *directive) error { return nil }

// applyFlag makes a directive of something that is on or off.
func applyFlag(set func(*frame, bool)) func(*builder, *frame, *directive) error {
	return func(_ *builder, f *frame, d *directive) error {
		on, err := flagArg(d)
		if err == nil {
			err = f.unique(d)
		}
		if err == nil {
			set(f, on)
		}
		return err
	}
}

// applyText makes a directive of a text.
func applyText(set func(*frame, *text)) func(*builder, *frame, *directive) error {
	return func(b *builder, f *frame, d *directive) error {
		t, err := b.text(d, d.args[0])
		if err == nil {
			err = f.unique(d)
		}
		if err == nil {
			set(f, t)
		}
		return err
	}
}

// applyTime makes a directive of a duration.
func applyTime(set func(*frame, time.Duration)) func(*builder, *frame, *directive) error {
	return func(_ *builder, f *frame, d *directive) error {
		t, ok := parseTime(d.args[0])
		if !ok {
			return badValue(d, d.args[0])
		}
		set(f, t)
		return f.unique(d)
	}
}

func applyNumber(_ *builder, f *frame, d *directive) error {
	if _, err := strconv.Atoi(d.args[0]); err != nil && d.args[0] != "auto" {
		return d.errorf("invalid number %q", d.args[0])
	}
	return f.unique(d)
}

func applyUser(b *builder, f *frame, d *directive) error {
	if b.env.User.UID != 0 {
		b.warn(d,
			`the "user" directive makes sense only if the master process runs with super-user privileges, ignored`)
		return f.unique(d)
	}
	// Whoever has no list of users knows no user by name.
	data, err := b.env.ReadFile("/etc/passwd")
	known := func(line string) bool { return strings.HasPrefix(line, d.args[0]+":") }
	if err != nil || !slices.ContainsFunc(strings.Split(string(data), "\n"), known) {
		return d.errorf("getpwnam(%q) failed", d.args[0])
	}
	return f.unique(d)
}

func applyPid(b *builder, f *frame, d *directive) error {
	b.cfg.pid = confPath(d.args[0])
	return f.unique(d)
}

func applyDaemon(b *builder, f *frame, d *directive) error {
	on, err := flagArg(d)
	if err != nil {
		return err
	}
	b.cfg.daemon = on
	return f.unique(d)
}

func applyEvents(b *builder, f *frame, d *directive) error {
	s := f.scope.child()
	return b.block(&frame{place: inEvents, scope: &s}, d.block)
}

func applyHTTP(b *builder, f *frame, d *directive) error {
	if err := f.unique(d); err != nil {
		return err
	}
	s := f.scope.child()
	return b.block(&frame{place: inHTTP, scope: &s}, d.block)
}

// parseTime reads "60", "60s", "1m", "500ms" and the like.
func parseTime(s string) (time.Duration, bool) {
	units := []struct {
		suffix string
		unit   time.Duration
	}{
		{"ms", time.Millisecond},
		{"s", time.Second},
		{"m", time.Minute},
		{"h", time.Hour},
		{"d", 24 * time.Hour},
		{"", time.Second},
	}
	for _, u := range units {
		if number, ok := strings.CutSuffix(s, u.suffix); ok {
			n, err := strconv.Atoi(number)
			return time.Duration(n) * u.unit, err == nil && n >= 0
		}
	}
	return 0, false
}

// parseSize reads "1024", "8k", "1m", "1g".
func parseSize(s string) (int64, bool) {
	unit := int64(1)
	for i, suffix := range []string{"k", "m", "g"} {
		if number, ok := strings.CutSuffix(strings.ToLower(s), suffix); ok {
			s, unit = number, 1<<(10*(i+1))
			break
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n * unit, err == nil && n >= 0
}
