package nginx

import (
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// level is how grave a message is; the gravest are the smallest.
type level int

const (
	levelEmerg level = iota + 1
	levelAlert
	levelCrit
	levelError
	levelWarn
	levelNotice
	levelInfo
	levelDebug
)

var levels = map[string]level{
	"emerg": levelEmerg, "alert": levelAlert, "crit": levelCrit, "error": levelError,
	"warn": levelWarn, "notice": levelNotice, "info": levelInfo, "debug": levelDebug,
}

func (l level) String() string {
	for name, v := range levels {
		if v == l {
			return name
		}
	}
	return "unknown"
}

// In the image the files of these names are links to the standard streams.
const (
	logDir           = "/var/log/nginx"
	defaultAccessLog = logDir + "/access.log"
	defaultErrorLog  = logDir + "/error.log"
)

// combinedFormat is the format of an access log that names none.
const combinedFormat = `$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"`

type accessLog struct {
	path   string
	format *text
}

type errorLog struct {
	path  string
	level level // the least grave that is written
}

// logs are the open files of a configuration's logs.
type logs struct {
	sinks map[string]io.Writer
	files []kit.File
}

// openLogs opens what a configuration logs to.
func (in *instance) openLogs(cfg *config) (*logs, error) {
	l := &logs{sinks: map[string]io.Writer{}}
	paths := []string{cfg.errorLog.path}
	add := func(s *scope) {
		paths = append(paths, s.errorLog.path)
		for _, a := range s.accessLogs {
			paths = append(paths, a.path)
		}
	}
	var visit func(locations)
	visit = func(list locations) {
		for _, loc := range list {
			add(&loc.scope)
			visit(loc.locations)
		}
	}
	for _, listen := range cfg.listens {
		for _, s := range listen.servers {
			add(&s.scope)
			visit(s.locations)
		}
	}
	for _, p := range paths {
		if err := l.open(in, p); err != nil {
			l.close()
			return nil, err
		}
	}
	return l, nil
}

func (l *logs) open(in *instance, name string) error {
	if l.sinks[name] != nil {
		return nil
	}
	switch {
	case name == "/dev/null":
		l.sinks[name] = io.Discard
	case name == "stderr", name == "/dev/stderr", name == defaultErrorLog && in.isLinked(name):
		l.sinks[name] = in.stderr
	case name == "/dev/stdout", name == defaultAccessLog && in.isLinked(name):
		l.sinks[name] = in.stdout
	default:
		f, err := in.env.FS.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
		if err != nil {
			return &confError{msg: fmt.Sprintf("open() %q failed (%s)", name, errnoText(err))}
		}
		l.files = append(l.files, f)
		l.sinks[name] = &lockedWriter{w: f}
	}
	return nil
}

// isLinked reports whether a log is still the image's link: no file was put there, and no volume
// mounted over its directory. An image here carries no links, so that is what tells.
func (in *instance) isLinked(name string) bool {
	if _, err := in.env.FS.Lstat(name); err == nil {
		return false
	}
	info, err := in.env.FS.StatFS(path.Dir(name))
	return err != nil || info.Mount == "/"
}

func (l *logs) close() {
	for _, f := range l.files {
		f.Close()
	}
}

// write logs a message about the server itself.
func (in *instance) write(to io.Writer, l level, connection, msg string) {
	fmt.Fprintf(to, "%s [%s] %d#%d: %s%s\n", time.Now().UTC().Format("2006/01/02 15:04:05"), l, in.pid, in.pid,
		connection, msg)
}

// logf logs a message about the server itself, if the current configuration wants it.
func (in *instance) logf(l level, format string, args ...any) {
	gen := in.current.Load()
	if gen == nil {
		in.write(in.stderr, l, "", fmt.Sprintf(format, args...))
		return
	}
	if l <= gen.errorLog.level {
		in.write(gen.sinks[gen.errorLog.path], l, "", fmt.Sprintf(format, args...))
	}
}

// log logs a message about the request.
func (x *exchange) log(l level, format string, args ...any) {
	target := x.scope().errorLog
	if l > target.level {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, format, args...)
	fmt.Fprintf(&b, ", client: %s, server: %s, request: %q", x.client(), x.server.name(), x.requestLine())
	if x.upstream.url != "" {
		fmt.Fprintf(&b, ", upstream: %q", x.upstream.url)
	}
	if x.r.Host != "" {
		fmt.Fprintf(&b, ", host: %q", x.r.Host)
	}
	if ref := x.r.Referer(); ref != "" {
		fmt.Fprintf(&b, ", referrer: %q", ref)
	}
	x.in.write(x.gen.sinks[target.path], l, fmt.Sprintf("*%d ", x.connection), b.String())
}

// logAccess writes the request to the access logs. A variable without a value is a hyphen.
func (x *exchange) logAccess() {
	for _, l := range x.scope().accessLogs {
		var b strings.Builder
		for _, p := range l.format.parts {
			switch {
			case p.variable == "":
				b.WriteString(p.literal)
			case x.variable(p.variable) == "":
				b.WriteByte('-')
			default:
				b.WriteString(escapeLog(x.variable(p.variable)))
			}
		}
		b.WriteByte('\n')
		io.WriteString(x.gen.sinks[l.path], b.String())
	}
}

// escapeLog makes sure that what a client sends cannot break a line of the log.
func escapeLog(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r >= 0x7f }) < 0 {
		return s
	}
	var b strings.Builder
	for _, c := range []byte(s) {
		if c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			fmt.Fprintf(&b, `\x%02X`, c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
