package network

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"path"
	"strings"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// uploadBody is what is sent. It can be read anew for every attempt, unless it is a stream.
type uploadBody struct {
	data        []byte
	stream      io.Reader // of -T -
	contentType string
	query       string // with -G
	method      string
	file        string // of -T
}

// reader returns the body and its length; -1 if that is not known.
func (b *uploadBody) reader() (io.Reader, int64) {
	if b.stream != nil {
		return b.stream, -1
	}
	return bytes.NewReader(b.data), int64(len(b.data))
}

// collectBody puts the body together from -d, --json, -F and -T, in the order they were given.
func (r *curlRun) collectBody() (*uploadBody, error) {
	var parts []string
	b := &uploadBody{method: "POST", contentType: "application/x-www-form-urlencoded"}
	has := false
	var form []string
	for _, opt := range r.c.Opts.InOrder() {
		var part string
		var err error
		switch opt.Name {
		case "d", "data-binary", "data-raw", "json":
			part, err = r.data(opt)
		case "data-urlencode":
			part, err = r.urlEncoded(opt.Value)
		case "F", "form-string":
			form = append(form, opt.Name+opt.Value)
			continue
		default:
			continue
		}
		if err != nil {
			return nil, err
		}
		if opt.Name == "json" {
			b.contentType = "application/json"
		}
		has = true
		parts = append(parts, part)
	}
	if file := r.c.Opts.Get("T", ""); file != "" {
		return r.upload(file)
	}
	if form != nil {
		return r.multipart(form)
	}
	if !has {
		return nil, nil
	}
	sep := "&"
	if b.contentType == "application/json" {
		sep = ""
	}
	text := strings.Join(parts, sep)
	if r.c.Opts.Has("G") {
		b.query, b.method = text, "GET"
		return b, nil
	}
	b.data = []byte(text)
	return b, nil
}

// data is the value of -d and its relatives: @ names a file, of which -d drops the newlines.
func (r *curlRun) data(opt tool.Option) (string, error) {
	name, isFile := strings.CutPrefix(opt.Value, "@")
	if !isFile || opt.Name == "data-raw" {
		return opt.Value, nil
	}
	data, err := r.c.ReadAll(name)
	if err != nil {
		return "", &curlError{26, "Failed to open " + name}
	}
	if opt.Name == "d" {
		return strings.NewReplacer("\r", "", "\n", "", "\x00", "").Replace(string(data)), nil
	}
	return string(data), nil
}

// urlEncoded is the value of --data-urlencode: content, =content, name=content, @file or name@file.
func (r *curlRun) urlEncoded(value string) (string, error) {
	escape := func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
	at := strings.IndexAny(value, "=@")
	if at < 0 {
		return escape(value), nil
	}
	name, content := value[:at], value[at+1:]
	if value[at] == '@' {
		data, err := r.c.ReadAll(content)
		if err != nil {
			return "", &curlError{26, "Failed to open " + content}
		}
		content = string(data)
	}
	if name == "" {
		return escape(content), nil
	}
	return name + "=" + escape(content), nil
}

func (r *curlRun) upload(file string) (*uploadBody, error) {
	b := &uploadBody{method: "PUT", file: path.Base(file)}
	if file == "-" || file == "." {
		b.stream, b.file = r.c.Stdin, ""
		return b, nil
	}
	data, err := r.c.ReadAll(file)
	if err != nil {
		return nil, &curlError{26, fmt.Sprintf("Failed to open/read local data from file/application: %s", file)}
	}
	b.data = data
	return b, nil
}

// multipart is the body of -F: name=value, name=@file or name=<file, with ;type= and ;filename=.
func (r *curlRun) multipart(form []string) (*uploadBody, error) {
	boundary := fmt.Sprintf("------------------------%016x", rand.Uint64())
	var b bytes.Buffer
	for _, item := range form {
		literal := strings.HasPrefix(item, "form-string")
		name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(item, "form-string"), "F"), "=")
		if !ok {
			return nil, &curlError{26, "Failed to open/read local data from file/application"}
		}
		kind, filename := "", ""
		if !literal {
			pieces := strings.Split(value, ";")
			value = pieces[0]
			for _, p := range pieces[1:] {
				if v, ok := strings.CutPrefix(p, "type="); ok {
					kind = v
				} else if v, ok := strings.CutPrefix(p, "filename="); ok {
					filename = v
				} else {
					value += ";" + p
				}
			}
			if file := strings.TrimPrefix(strings.TrimPrefix(value, "@"), "<"); file != value {
				data, err := r.c.ReadAll(file)
				if err != nil {
					return nil, &curlError{26, "Failed to open/read local data from file/application"}
				}
				if strings.HasPrefix(value, "@") {
					if filename == "" {
						filename = path.Base(file)
					}
					if kind == "" {
						kind = contentType(file)
					}
				}
				value = string(data)
			}
		}
		fmt.Fprintf(&b, "--%s\r\nContent-Disposition: form-data; name=\"%s\"", boundary, name)
		if filename != "" {
			fmt.Fprintf(&b, "; filename=\"%s\"", filename)
		}
		b.WriteString("\r\n")
		if kind != "" {
			fmt.Fprintf(&b, "Content-Type: %s\r\n", kind)
		}
		b.WriteString("\r\n" + value + "\r\n")
	}
	fmt.Fprintf(&b, "--%s--\r\n", boundary)
	return &uploadBody{method: "POST", data: b.Bytes(), contentType: "multipart/form-data; boundary=" + boundary}, nil
}

// contentType guesses what a file is by its name, as curl does for forms.
func contentType(file string) string {
	switch path.Ext(file) {
	case ".gif":
		return "image/gif"
	case ".jpg", ".jpeg":
		return "image/jpeg"
	case ".png":
		return "image/png"
	case ".svg":
		return "image/svg+xml"
	case ".txt":
		return "text/plain"
	case ".htm", ".html":
		return "text/html"
	case ".pdf":
		return "application/pdf"
	case ".xml":
		return "application/xml"
	}
	return "application/octet-stream"
}
