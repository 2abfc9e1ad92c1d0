package nginx

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

func applyKeepalive(_ *builder, f *frame, d *directive) error {
	t, ok := parseTime(d.args[0])
	if !ok {
		return badValue(d, d.args[0])
	}
	f.scope.keepalive = t
	return f.unique(d)
}

func applyMaxBody(_ *builder, f *frame, d *directive) error {
	n, ok := parseSize(d.args[0])
	if !ok {
		return badValue(d, d.args[0])
	}
	f.scope.maxBody = n
	return f.unique(d)
}

func applyIndex(b *builder, f *frame, d *directive) error {
	if f.first("index") {
		f.scope.index = nil
	}
	for _, a := range d.args {
		t, err := b.text(d, a)
		if err != nil {
			return err
		}
		f.scope.index = append(f.scope.index, t)
	}
	return nil
}

func applyTryFiles(b *builder, f *frame, d *directive) error {
	args := d.args
	if code, ok := strings.CutPrefix(args[len(args)-1], "="); ok {
		n, err := strconv.Atoi(code)
		if err != nil || n > 999 {
			return d.errorf("invalid code %q", args[len(args)-1])
		}
		f.scope.tryCode = n
		args = args[:len(args)-1]
	}
	for _, a := range args {
		t, err := b.text(d, a)
		if err != nil {
			return err
		}
		f.scope.tryFiles = append(f.scope.tryFiles, t)
	}
	return f.unique(d)
}

func applyTypes(_ *builder, f *frame, d *directive) error {
	for _, t := range d.block {
		if len(t.args) == 0 {
			return t.errorf("invalid number of arguments in %q directive", t.name)
		}
		f.scope.addType(t.name, t.args...)
	}
	return nil
}

func applyDefaultType(_ *builder, f *frame, d *directive) error {
	f.scope.defaultType = d.args[0]
	return f.unique(d)
}

func applyCharset(_ *builder, f *frame, d *directive) error {
	f.scope.charset = d.args[0]
	if d.args[0] == "off" {
		f.scope.charset = ""
	}
	return f.unique(d)
}

func applyInternal(_ *builder, f *frame, _ *directive) error {
	f.location.internal = true
	return nil
}

func applyStatus(_ *builder, f *frame, _ *directive) error {
	f.location.status = true
	return nil
}

// addStep notes what is done with a request before it is answered.
func (f *frame) addStep(s step) {
	if f.location != nil {
		f.location.steps = append(f.location.steps, s)
		return
	}
	f.server.steps = append(f.server.steps, s)
}

func applyReturn(b *builder, f *frame, d *directive) error {
	s := step{kind: stepReturn}
	code, err := strconv.Atoi(d.args[0])
	value := ""
	switch {
	case err == nil && code <= 999:
		s.code = code
		if len(d.args) == 2 {
			value = d.args[1]
		}
	case len(d.args) == 1 && (strings.HasPrefix(d.args[0], "http://") || strings.HasPrefix(d.args[0], "https://") ||
		strings.HasPrefix(d.args[0], "$")):
		s.code, value = 302, d.args[0]
	default:
		return d.errorf("invalid return code %q", d.args[0])
	}
	if value != "" {
		if s.text, err = b.text(d, value); err != nil {
			return err
		}
	}
	f.addStep(s)
	return nil
}

func applyRewrite(b *builder, f *frame, d *directive) error {
	re, err := regexp.Compile(d.args[0])
	if err != nil {
		return d.errorf("pcre2_compile() failed: %v in %q", err, d.args[0])
	}
	t, err := b.text(d, d.args[1])
	if err != nil {
		return err
	}
	s := step{kind: stepRewrite, re: re, text: t}
	if strings.HasPrefix(d.args[1], "http://") || strings.HasPrefix(d.args[1], "https://") ||
		strings.HasPrefix(d.args[1], "$scheme") {
		s.code = 302
	}
	if len(d.args) == 3 {
		switch d.args[2] {
		case "last", "break":
			s.flag = d.args[2]
		case "redirect":
			s.code = 302
		case "permanent":
			s.code = 301
		default:
			return d.errorf("invalid parameter %q", d.args[2])
		}
	}
	f.addStep(s)
	return nil
}

func applySet(b *builder, f *frame, d *directive) error {
	name, ok := strings.CutPrefix(d.args[0], "$")
	if !ok || name == "" {
		return d.errorf("invalid variable name %q", d.args[0])
	}
	t, err := b.text(d, d.args[1])
	if err != nil {
		return err
	}
	f.addStep(step{kind: stepSet, name: name, text: t})
	return nil
}

func applyErrorPage(b *builder, f *frame, d *directive) error {
	if f.first("error_page") {
		f.scope.errorPages = nil
	}
	var page errorPage
	for _, a := range d.args[:len(d.args)-1] {
		if code, ok := strings.CutPrefix(a, "="); ok {
			page.code = -1
			if code != "" {
				n, err := strconv.Atoi(code)
				if err != nil {
					return badValue(d, a)
				}
				page.code = n
			}
			continue
		}
		n, err := strconv.Atoi(a)
		if err != nil || n < 300 || n > 599 {
			return d.errorf("value %q must be between 300 and 599", a)
		}
		page.codes = append(page.codes, n)
	}
	t, err := b.text(d, d.args[len(d.args)-1])
	if err != nil {
		return err
	}
	page.target = t
	f.scope.errorPages = append(f.scope.errorPages, page)
	return nil
}

func applyAddHeader(b *builder, f *frame, d *directive) error {
	if f.first("add_header") {
		f.scope.headers = nil
	}
	h := header{name: d.args[0]}
	if len(d.args) == 3 {
		if d.args[2] != "always" {
			return d.errorf("invalid parameter %q", d.args[2])
		}
		h.always = true
	}
	var err error
	if h.value, err = b.text(d, d.args[1]); err != nil {
		return err
	}
	f.scope.headers = append(f.scope.headers, h)
	return nil
}

// applyExpires adds the headers that tell how long an answer may be kept.
func applyExpires(b *builder, f *frame, d *directive) error {
	value := ""
	switch arg := d.args[0]; arg {
	case "off":
		return f.unique(d)
	case "epoch", "-1":
		value = "no-cache"
	case "max":
		value = "max-age=315360000"
	default:
		t, ok := parseTime(arg)
		if !ok {
			return badValue(d, arg)
		}
		value = "max-age=" + strconv.Itoa(int(t/time.Second))
	}
	t, err := b.text(d, value)
	if err != nil {
		return err
	}
	f.scope.headers = append(f.scope.headers[:len(f.scope.headers):len(f.scope.headers)],
		header{name: "Cache-Control", value: t})
	return f.unique(d)
}

func applyAccessLog(b *builder, f *frame, d *directive) error {
	if f.first("access_log") {
		f.scope.accessLogs = nil
	}
	if d.args[0] == "off" {
		return nil
	}
	l := accessLog{path: confPath(d.args[0])}
	name := "combined"
	if len(d.args) > 1 && !strings.Contains(d.args[1], "=") {
		name = d.args[1]
	}
	f.scope.accessLogs = append(f.scope.accessLogs, l)
	i := len(f.scope.accessLogs) - 1
	format, ok := b.cfg.formats[name]
	if !ok {
		return d.errorf("unknown log format %q", name)
	}
	f.scope.accessLogs[i].format = format
	return nil
}

func applyLogFormat(b *builder, _ *frame, d *directive) error {
	args := d.args[1:]
	if strings.HasPrefix(args[0], "escape=") {
		args = args[1:]
	}
	if _, ok := b.cfg.formats[d.args[0]]; ok {
		return d.errorf("duplicate %q %q name", "log_format", d.args[0])
	}
	t, err := b.text(d, strings.Join(args, ""))
	if err != nil {
		return err
	}
	b.cfg.formats[d.args[0]] = t
	return nil
}

func applyErrorLog(_ *builder, f *frame, d *directive) error {
	l := errorLog{path: d.args[0], level: levelError}
	if l.path != "stderr" {
		l.path = confPath(l.path)
	}
	if len(d.args) == 2 {
		level, ok := levels[d.args[1]]
		if !ok {
			return d.errorf("invalid log level %q", d.args[1])
		}
		l.level = level
	}
	f.scope.errorLog = l
	return f.unique(d)
}
