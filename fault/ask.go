package fault

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/app/service"
)

// askTimeout is how long a service may take to answer what costs it next to nothing.
const askTimeout = 2 * time.Second

// ask sends a service the smallest request of its protocol, on a new connection through its
// Kubernetes Service, as its clients would. It leaves no trace in spans, and in logs none but that of a connection.
func ask(ctx context.Context, e *Env, name string, timeout time.Duration) error {
	s, _ := e.App.Service(name)
	p, err := read(e.App)
	if err != nil {
		return err
	}
	port, ok := p.port(name)
	if !ok {
		return nil // It is not there to be called.
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %v", timeout))
	defer cancel()
	conn, err := e.Dial(ctx, "tcp", fmt.Sprintf("%s.%s:%d", name, e.App.Namespace, port))
	if err != nil {
		return explain(ctx, err)
	}
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
	defer conn.Close()
	return explain(ctx, greet(conn, s.Kind))
}

// explain says that time was up rather than what happened then.
func explain(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// greet exchanges a request and its answer with a server of some kind.
func greet(conn io.ReadWriter, kind string) error {
	switch kind {
	case "redis":
		return exchange(conn, "PING\r\n", "+PONG", "-NOAUTH")
	case "memcached":
		return exchange(conn, "version\r\n", "VERSION ")
	case "mongodb":
		return hello(conn)
	}
	// The preface of HTTP/2 with empty settings. A gRPC server answers with its own; a server of
	// HTTP/1 refuses it, which is an answer as well.
	const settings = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	return exchange(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+settings, "")
}

// exchange writes a request and wants an answer that begins in one of the given ways.
func exchange(conn io.ReadWriter, request string, answers ...string) error {
	if _, err := io.WriteString(conn, request); err != nil {
		return err
	}
	longest := 1
	for _, a := range answers {
		longest = max(longest, len(a))
	}
	got := make([]byte, longest)
	n, err := io.ReadAtLeast(conn, got, longest)
	for _, a := range answers {
		if n > 0 && strings.HasPrefix(string(got[:n]), a) {
			return nil
		}
	}
	if err == nil {
		err = fmt.Errorf("it answers %q", got[:n])
	}
	return err
}

// hello sends MongoDB's first command.
func hello(conn io.ReadWriter) error {
	const opMsg = 2013
	doc, err := bson.Marshal(bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}})
	if err != nil {
		return err
	}
	msg := make([]byte, 0, 64)
	for _, n := range []int{16 + 5 + len(doc), 1, 0, opMsg, 0} { // length, id, answer to, code; flags
		msg = binary.LittleEndian.AppendUint32(msg, uint32(n))
	}
	msg = append(append(msg, 0), doc...)
	if _, err := conn.Write(msg); err != nil {
		return err
	}
	head := make([]byte, 21)
	if _, err := io.ReadFull(conn, head); err != nil {
		return err
	}
	n := int(binary.LittleEndian.Uint32(head)) - len(head)
	if n < 5 || n > 1<<20 {
		return errors.New("it does not speak MongoDB's protocol")
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(conn, body); err != nil {
		return err
	}
	var reply struct {
		OK      float64 `bson:"ok"`
		Message string  `bson:"errmsg"`
	}
	if err := bson.Unmarshal(body, &reply); err != nil {
		return err
	}
	if reply.OK != 1 {
		return errors.New(reply.Message)
	}
	return nil
}

// fetch reads the metrics of a service from one of its pods: a longer answer than to a greeting,
// over the pod's own address.
func fetch(ctx context.Context, e *Env, address string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %v", timeout))
	defer cancel()
	transport := &http.Transport{DialContext: e.Dial, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(address, fmt.Sprint(service.MetricsPort))+"/metrics", nil)
	if err != nil {
		return err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return explain(ctx, err)
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return explain(ctx, err)
}
