package ask

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a server and returns a way to it.
func serve(t *testing.T, run func(net.Listener)) Dial {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() { run(ln) })
	t.Cleanup(func() { ln.Close(); done.Wait() })
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, ln.Addr().String())
	}
}

// script answers each thing that it is sent with the next answer, and then closes.
func script(answers ...string) func(net.Listener) {
	return func(ln net.Listener) {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			buf := make([]byte, 4096)
			for _, a := range answers {
				if _, err := c.Read(buf); err != nil {
					break
				}
				fmt.Fprint(c, strings.ReplaceAll(a, "$request", string(buf)))
			}
			c.Close()
		}
	}
}

func web(answer func(path string) string) func(net.Listener) {
	return func(ln net.Listener) {
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, answer(r.URL.Path)) })}
		srv.Serve(ln)
		srv.Close()
	}
}

func rpc(healthy bool) func(net.Listener) {
	return func(ln net.Listener) {
		srv, h := grpc.NewServer(), health.NewServer()
		h.SetServingStatus("geo.Geo", map[bool]healthpb.HealthCheckResponse_ServingStatus{true: healthpb.HealthCheckResponse_SERVING, false: healthpb.HealthCheckResponse_NOT_SERVING}[healthy])
		healthpb.RegisterHealthServer(srv, h)
		srv.Serve(ln)
		srv.Stop()
	}
}

// reply is a message of a MongoDB server.
func reply(code int, doc bson.D) string {
	b, _ := bson.Marshal(doc)
	var msg []byte
	for _, n := range []int{21 + len(b), 9, 1, code, 0} {
		msg = binary.LittleEndian.AppendUint32(msg, uint32(n))
	}
	return string(append(append(msg, 0), b...))
}

func TestQuestions(t *testing.T) {
	serves := GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error { return Serves(ctx, c, "geo.Geo") })
	hello := bson.D{{Key: "ok", Value: 1.0}, {Key: "isWritablePrimary", Value: true}, {Key: "maxWireVersion", Value: 9}, {Key: "localTime", Value: time.Now()}}
	consul := func(services string) func(net.Listener) {
		return web(func(path string) string {
			return map[string]string{"/v1/status/leader": `"10.0.0.1:8300"`, "/v1/catalog/services": services}[path]
		})
	}
	jaeger := func(traces string) func(net.Listener) {
		return web(func(path string) string {
			return map[string]string{"/api/services": `{"data":["frontend"]}`, "/api/traces": traces}[path]
		})
	}
	for _, tt := range []struct {
		name     string
		question Question
		run      func(net.Listener)
		want     string // the beginning of the error
	}{
		{"redis", Of("redis"), script("+PONG\r\n", "$40\r\n# Server\r\nredis_version:6.2.4\r\n"), ""},
		{"redis with a password", Of("redis"), script("-NOAUTH Authentication required.\r\n"), ""},
		{"a pong alone", Of("redis"), script("+PONG\r\n", "+PONG\r\n"), `it answers "+PONG"`},
		{"redis echo", Of("redis"), script("$request\r\n"), `it answers "PING"`},
		{"another that knows INFO", Of("redis"), script("+PONG\r\n", "$4\r\n"+strings.Repeat("x\r\n", 20)), "it answers without saying"},
		{"memcached", Of("memcached"), script("VERSION 1.6.7\r\n", "STAT pid 1\r\nEND\r\n"), ""},
		{"a version alone", Of("memcached"), script("VERSION 1.6.7\r\n", "VERSION 1.6.7\r\n"), `it answers "VERSION 1.6.7"`},
		{"mongodb", Of("mongodb"), script(reply(2013, hello)), ""},
		{"mongodb refuses", Of("mongodb"), script(reply(2013, bson.D{{Key: "ok", Value: 0.0}, {Key: "errmsg", Value: "go away"}})), "go away"},
		{"mongodb says little", Of("mongodb"), script(reply(2013, bson.D{{Key: "ok", Value: 1.0}})), "it does not say that it is a MongoDB server"},
		{"mongodb echo", Of("mongodb"), script("$request"), "it does not say"},
		{"not mongodb", Of("mongodb"), script(reply(1, hello)), "it does not speak MongoDB's protocol"},
		{"gRPC", serves, rpc(true), ""},
		{"gRPC that does not serve", serves, rpc(false), "geo.Geo is NOT_SERVING"},
		{"not gRPC", serves, web(func(string) string { return "ok" }), "Unavailable: "},
		{"any gRPC", Of("service"), rpc(true), ""},
		{"any web server", Of("service"), web(func(string) string { return "ok" }), ""},
		{"neither", Of("service"), script("nonsense\r\n", "nonsense\r\n"), "net/http: "},
		{"consul", Consul("srv-geo"), consul(`{"consul":[],"srv-geo":[]}`), ""},
		{"consul that forgot", Consul("srv-geo"), consul(`{"consul":[]}`), "it answers without a service srv-geo"},
		{"not consul", Consul("srv-geo"), web(func(string) string { return "ok" }), "it answers 200 ok"},
		{"jaeger", Jaeger("frontend"), jaeger(`{"data":[{"traceID":"a","spans":[{"traceID":"a"}]}]}`), ""},
		{"jaeger mixes traces up", Jaeger("frontend"), jaeger(`{"data":[{"traceID":"a","spans":[{"traceID":"b"}]}]}`), "it answers {"},
		{"not jaeger", Jaeger("frontend"), web(func(string) string { return `{"data":[]}` }), "it answers 200"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.question(t.Context(), serve(t, tt.run), "server:1")
			if (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
	if err := serves(t.Context(), func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }, "x:1"); err != net.ErrClosed {
		t.Error(err)
	}
}
