package network

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// field is a line of an HTTP header. Order and spelling are kept, since tools show them.
type field struct{ name, value string }

// httpRequest is a request as it is sent.
type httpRequest struct {
	method, target, version string
	header                  []field
	body                    io.Reader // nil if there is none
	length                  int64     // -1 is sent in chunks
}

func (r *httpRequest) has(name string) bool {
	for _, f := range r.header {
		if strings.EqualFold(f.name, name) {
			return true
		}
	}
	return false
}

// head is the request line and the header, with the empty line.
func (r *httpRequest) head() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s\r\n", r.method, r.target, r.version)
	for _, f := range r.header {
		fmt.Fprintf(&b, "%s: %s\r\n", f.name, f.value)
	}
	b.WriteString("\r\n")
	return b.String()
}

// send writes the request. It returns how many bytes of the body were sent.
func (r *httpRequest) send(w io.Writer) (int64, error) {
	if _, err := io.WriteString(w, r.head()); err != nil || r.body == nil {
		return 0, err
	}
	if r.length >= 0 {
		return io.Copy(w, r.body)
	}
	var sent int64
	buf := make([]byte, 16<<10)
	for {
		n, err := r.body.Read(buf)
		if n > 0 {
			if _, err := fmt.Fprintf(w, "%x\r\n%s\r\n", n, buf[:n]); err != nil {
				return sent, err
			}
			sent += int64(n)
		}
		if err == io.EOF {
			_, err = io.WriteString(w, "0\r\n\r\n")
			return sent, err
		}
		if err != nil {
			return sent, err
		}
	}
}

// httpResponse is a response whose header has been read.
type httpResponse struct {
	line   string // the status line
	proto  string
	code   int
	header []field
	size   int // of the head, in bytes
	body   io.ReadCloser
	length int64 // -1 if it is not known
}

func (r *httpResponse) get(name string) string {
	for _, f := range r.header {
		if strings.EqualFold(f.name, name) {
			return f.value
		}
	}
	return ""
}

var (
	errEmptyReply = errors.New("empty reply")
	errNotHTTP    = errors.New("not HTTP")
)

// maxHead bounds what is read of a header.
const maxHead = 300 << 10

// readResponse reads the head of a response. Those that are only provisional are passed over, after
// they were shown.
func readResponse(br *bufio.Reader, method string, show func(*httpResponse)) (*httpResponse, error) {
	for {
		var raw bytes.Buffer
		for {
			line, err := br.ReadSlice('\n')
			raw.Write(line)
			if err != nil {
				if err == io.EOF && raw.Len() == 0 {
					return nil, errEmptyReply
				}
				if err == io.EOF || err == bufio.ErrBufferFull {
					return nil, errNotHTTP
				}
				return nil, err
			}
			if len(bytes.TrimRight(line, "\r\n")) == 0 {
				break
			}
			if !bytes.HasPrefix(raw.Bytes(), []byte("HTTP/")) || raw.Len() > maxHead {
				return nil, errNotHTTP
			}
		}
		r := parseHead(raw.String())
		std, err := http.ReadResponse(bufio.NewReader(io.MultiReader(&raw, br)), &http.Request{Method: method})
		if err != nil {
			return nil, errNotHTTP
		}
		if show != nil {
			show(r)
		}
		if r.code >= 200 || r.code == http.StatusSwitchingProtocols {
			r.body, r.length = std.Body, std.ContentLength
			return r, nil
		}
	}
}

func parseHead(raw string) *httpResponse {
	r := &httpResponse{size: len(raw)}
	for i, line := range strings.Split(strings.TrimRight(raw, "\r\n"), "\n") {
		line = strings.TrimRight(line, "\r")
		if i == 0 {
			r.line = line
			parts := strings.SplitN(line, " ", 3)
			r.proto = parts[0]
			if len(parts) > 1 {
				r.code, _ = strconv.Atoi(parts[1])
			}
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		r.header = append(r.header, field{name, strings.TrimLeft(value, " ")})
	}
	return r
}

// guard makes the reads and writes of a connection end with the context.
func guard(ctx context.Context, conn net.Conn) (stop func() bool) {
	return context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
}
