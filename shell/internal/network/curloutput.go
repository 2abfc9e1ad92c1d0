package network

import (
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
	"github.com/aiopslab/aiopslab/shell/internal/tty"
)

// curlOutput is where a transfer goes. A file is only created when there is something to write.
type curlOutput struct {
	r     *curlRun
	index int
	file  io.WriteCloser
	dump  io.WriteCloser
	name  string
	began time.Time
	bytes int64
}

// target is the file for the transfer; "" is standard output.
func (o *curlOutput) target() (string, error) {
	opts := &o.r.c.Opts
	names := opts.All("o")
	name := ""
	switch {
	case o.index < len(names):
		name = names[o.index]
	case opts.Has("O"):
		urls := append(append([]string(nil), opts.All("url")...), o.operands()...)
		if o.index < len(urls) {
			name = remoteName(urls[o.index])
		}
		if name == "" {
			return "", &curlError{23, "Failed to extract a filename to use for storage"}
		}
	}
	if name == "-" || name == "" {
		return "", nil
	}
	if dir := opts.Get("output-dir", ""); dir != "" {
		name = tool.Join(dir, name)
	}
	return name, nil
}

// operands are the URLs that were given without --url.
func (o *curlOutput) operands() []string {
	_, operands, _ := tool.ParseOptions(curlOptions, o.r.c.Args)
	return operands
}

func (o *curlOutput) open() error {
	if o.file != nil {
		return nil
	}
	name, err := o.target()
	if err != nil {
		return err
	}
	if o.began = time.Now(); name == "" {
		o.file = nopCloser{o.r.c.Out}
		return nil
	}
	if dir := path.Dir(name); o.r.c.Opts.Has("create-dirs") {
		o.r.c.Env.MkdirAll(dir, 0o755)
	}
	f, err := o.r.c.Create(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		if !o.r.c.Opts.Has("s") {
			o.r.c.Note("Warning: Failed to open the file %s: %s\n", name, tool.Reason(err))
		}
		return &curlError{23, "client returned ERROR on write, 1 was returned"}
	}
	o.file, o.name = f, name
	return nil
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func (o *curlOutput) write(p []byte) error {
	if err := o.open(); err != nil {
		return err
	}
	o.bytes += int64(len(p))
	if _, err := o.file.Write(p); err != nil {
		return &curlError{23, "Failure writing output to destination, passed " + strconv.Itoa(len(p)) + " returned 0"}
	}
	if o.name == "" {
		o.r.c.Out.Flush()
	}
	return nil
}

// head writes a header where -i, -I and -D want it.
func (o *curlOutput) head(text string) {
	opts := &o.r.c.Opts
	if opts.Has("i") || opts.Has("I") {
		o.write([]byte(text))
	}
	name := opts.Get("D", "")
	if name == "" {
		return
	}
	if name == "-" {
		o.r.c.Out.WriteString(text)
		return
	}
	if o.dump == nil {
		f, err := o.r.c.Create(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
		if err != nil {
			return
		}
		o.dump = f
	}
	io.WriteString(o.dump, text)
}

func (o *curlOutput) close() error {
	if o.dump != nil {
		o.dump.Close()
		o.dump = nil
	}
	if o.file == nil {
		return nil
	}
	err := o.file.Close()
	o.file = nil
	o.progress()
	o.r.c.Out.Flush()
	return err
}

// progress is the meter, in its final state. Scripts do not get to see it.
func (o *curlOutput) progress() {
	opts := &o.r.c.Opts
	if o.name == "" || opts.Has("s") || opts.Has("no-progress-meter") || !tty.IsTerminal(o.r.c.Env.Stderr) {
		return
	}
	speed := float64(o.bytes) / max(time.Since(o.began).Seconds(), 1e-3)
	o.r.c.Note("  %% Total    %% Received %% Xferd  Average Speed   Time    Time     Time  Current\n" +
		"                                 Dload  Upload   Total   Spent    Left  Speed\n")
	o.r.c.Note("100 %5d  100 %5d    0     0  %5.0f      0 --:--:-- --:--:-- --:--:-- %5.0f\n",
		o.bytes, o.bytes, speed, speed)
}

// writeOut prints what -w asks for.
func (r *curlRun) writeOut(st *stats) {
	format := r.c.Opts.Get("w", "")
	if format == "" {
		return
	}
	if file, ok := strings.CutPrefix(format, "@"); ok {
		data, err := r.c.ReadAll(file)
		if err != nil {
			return
		}
		format = string(data)
	}
	toStderr := false
	emit := func(s string) {
		if toStderr {
			r.c.Note("%s", s)
		} else {
			r.c.Out.WriteString(s)
		}
	}
	for format != "" {
		switch {
		case strings.HasPrefix(format, "%{"):
			name, rest, ok := strings.Cut(format[2:], "}")
			if !ok {
				emit(format)
				return
			}
			format = rest
			if name == "stderr" || name == "stdout" {
				toStderr = name == "stderr"
				continue
			}
			emit(st.variable(name))
		case strings.HasPrefix(format, "%header{"):
			name, rest, _ := strings.Cut(format[len("%header{"):], "}")
			for _, f := range st.header {
				if strings.EqualFold(f.name, name) {
					emit(f.value)
					break
				}
			}
			format = rest
		case strings.HasPrefix(format, "%%"):
			emit("%")
			format = format[2:]
		case len(format) > 1 && format[0] == '\\':
			if k := strings.IndexByte("nrt", format[1]); k >= 0 {
				emit("\n\r\t"[k : k+1])
			} else {
				emit(format[:2])
			}
			format = format[2:]
		default:
			emit(format[:1])
			format = format[1:]
		}
	}
}

func (st *stats) variable(name string) string {
	seconds := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 6, 64) }
	speed := func(n int64) string { return fmt.Sprintf("%.0f", float64(n)/max(st.total.Seconds(), 1e-6)) }
	switch name {
	case "http_code", "response_code":
		return fmt.Sprintf("%03d", st.code)
	case "http_connect":
		return "000"
	case "http_version":
		if st.proto == "" {
			return "0"
		}
		return strings.TrimPrefix(st.proto, "HTTP/")
	case "time_total":
		return seconds(st.total)
	case "time_namelookup":
		return seconds(st.lookup)
	case "time_connect":
		return seconds(st.connect)
	case "time_appconnect":
		return seconds(st.handshake)
	case "time_pretransfer":
		return seconds(st.pretransfer)
	case "time_starttransfer":
		return seconds(st.started)
	case "time_redirect":
		return seconds(st.redirect)
	case "size_download":
		return strconv.FormatInt(st.down, 10)
	case "size_upload":
		return strconv.FormatInt(st.up, 10)
	case "size_header":
		return strconv.FormatInt(st.head, 10)
	case "size_request":
		return strconv.FormatInt(st.request, 10)
	case "speed_download":
		return speed(st.down)
	case "speed_upload":
		return speed(st.up)
	case "num_connects":
		return strconv.Itoa(st.connects)
	case "num_redirects":
		return strconv.Itoa(st.redirects)
	case "num_headers":
		return strconv.Itoa(len(st.header))
	case "redirect_url":
		return st.redirectURL
	case "remote_ip":
		return st.remoteIP
	case "remote_port":
		return st.remotePort
	case "local_ip":
		return st.localIP
	case "local_port":
		return st.localPort
	case "url":
		return st.url
	case "url_effective":
		return st.effective
	case "content_type":
		return st.contentType
	case "method":
		return st.method
	case "scheme":
		return st.scheme
	case "ssl_verify_result", "proxy_ssl_verify_result":
		return "0"
	case "exitcode":
		return strconv.Itoa(st.exit)
	case "errormsg":
		return st.message
	case "filename_effective":
		return st.file
	}
	return ""
}
