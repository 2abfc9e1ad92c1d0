// Package ask asks a running service something that only it can answer, in its own protocol. An
// open port, or just any answer, does not tell who is there.
//
//	question := ask.GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error { ... })
//	err := question(ctx, dial, "geo.test-hotel-reservation:8083")
//
// Questions change nothing that users see. They leave no spans, and no lines in logs but those of a
// connection.
package ask

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Dial connects to an address.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// Question asks the server at an address, on a new connection, and says what is wrong with the answer. It ends
// with the context.
type Question = func(ctx context.Context, dial Dial, address string) error

// Unsampled is a trace header that says not to keep the trace, so that requests of the lab leave no spans.
const Unsampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"

// Of returns the question for a kind of server. Kinds with a protocol of their own have their own question; all
// other services are only known to speak gRPC or HTTP.
func Of(kind string) Question {
	switch kind {
	case "redis":
		return redis
	case "memcached":
		return memcached
	case "mongodb":
		return mongodb
	}
	return anyService
}

// GRPC returns a question that makes gRPC calls.
func GRPC(calls func(ctx context.Context, c grpc.ClientConnInterface) error) Question {
	return func(ctx context.Context, dial Dial, address string) error {
		wire, err := dial(ctx, "tcp", address) // Its errors say more than those of a call.
		if err != nil {
			return err
		}
		defer wire.Close()
		once := make(chan net.Conn, 1)
		once <- wire
		client, err := grpc.NewClient("passthrough:///"+address,
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
				select {
				case c := <-once:
					return c, nil
				default:
					return nil, io.EOF
				}
			}))
		if err != nil {
			return err
		}
		defer client.Close()
		err = calls(metadata.AppendToOutgoingContext(ctx, "traceparent", Unsampled), client)
		if s, ok := status.FromError(err); ok && err != nil {
			return fmt.Errorf("%v: %s", s.Code(), s.Message())
		}
		return err
	}
}

// Serves checks that a gRPC server has a service, such as "geo.Geo".
func Serves(ctx context.Context, c grpc.ClientConnInterface, service string) error {
	r, err := healthpb.NewHealthClient(c).Check(ctx, &healthpb.HealthCheckRequest{Service: service})
	if err == nil && r.Status != healthpb.HealthCheckResponse_SERVING {
		err = fmt.Errorf("%s is %s", service, r.Status)
	}
	return err
}

// maxAnswer is how much of an answer is read.
const maxAnswer = 1 << 20

// Page returns a question that asks for a page and checks the answer.
func Page(path string, check func(status int, body []byte) error) Question {
	return send(http.MethodGet, path, "", check)
}

// Post returns a question that sends JSON and checks the answer.
func Post(path, body string, check func(status int, body []byte) error) Question {
	return send(http.MethodPost, path, body, check)
}

func send(method, path, question string, check func(status int, body []byte) error) Question {
	return func(ctx context.Context, dial Dial, address string) error {
		transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
		defer transport.CloseIdleConnections()
		req, err := http.NewRequestWithContext(ctx, method, "http://"+address+path, strings.NewReader(question))
		if err != nil {
			return err
		}
		req.Header.Set("traceparent", Unsampled)
		if question != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		if err != nil {
			return err
		}
		return check(resp.StatusCode, body)
	}
}

// Connects is the question whether somebody takes connections at all, for servers of which no more is known. Where a
// connection goes through somebody else, such as an API server, it is opened in any case, and hung up if there is
// nobody.
func Connects(ctx context.Context, dial Dial, address string) error {
	c, err := dial(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetReadDeadline(time.Now().Add(hangUp)); err != nil {
		return err
	}
	n, err := c.Read(make([]byte, 1))
	if late, ok := errors.AsType[net.Error](err); n > 0 || ok && late.Timeout() {
		return nil // It greets, or waits for what is asked.
	}
	return fmt.Errorf("it hangs up: %w", err)
}

// hangUp is how long it may take until a connection is hung up that leads to nobody.
const hangUp = 300 * time.Millisecond

// All returns a question that asks several, one after the other.
func All(questions ...Question) Question {
	return func(ctx context.Context, dial Dial, address string) error {
		for _, q := range questions {
			if err := q(ctx, dial, address); err != nil {
				return err
			}
		}
		return nil
	}
}

// Wrong is the error of an answer that is not the service's.
func Wrong(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if r := []rune(text); len(r) > 120 {
		text = string(r[:120]) + "..."
	}
	return fmt.Errorf("it answers %s", text)
}

// anyService asks for gRPC's own health check, and otherwise for a page.
func anyService(ctx context.Context, dial Dial, address string) error {
	grpcErr := GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error {
		ctx, cancel := context.WithTimeout(ctx, anyWait)
		defer cancel()
		return Serves(ctx, c, "")
	})(ctx, dial, address)
	if grpcErr == nil || ctx.Err() != nil {
		return grpcErr
	}
	return Page("/", func(status int, _ []byte) error {
		if status >= http.StatusInternalServerError {
			return Wrong("%d %s", status, http.StatusText(status))
		}
		return nil
	})(ctx, dial, address)
}

// anyWait is how long a server that may not speak gRPC has to say so.
const anyWait = time.Second
