package whisk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/aiopslab/aiopslab/app/service"
)

const (
	// callWait is how long an action waits for another.
	callWait = 5 * time.Second
	// callTries is how often it tries to connect, and callPause how long it waits in between: the controller may be
	// replaced.
	callTries = 5
	callPause = 100 * time.Millisecond
	// causeHeader says which activation invokes.
	causeHeader = "X-Whisk-Cause"
)

type causeKey struct{}

// WithCause returns a context in which invocations say that an activation has made them.
func WithCause(ctx context.Context, activation string) context.Context {
	return context.WithValue(ctx, causeKey{}, activation)
}

// Client invokes actions.
type Client struct {
	host string
	http *http.Client
}

// NewClient returns a client of the controller at an address, "host:port".
func NewClient(s *service.Service, host string) *Client {
	return &Client{host: host, http: s.HTTPClient(callWait)}
}

// Invoke has an action run, and decodes its result.
func (c *Client) Invoke(ctx context.Context, action string, params, result any) error {
	body, err := json.Marshal(params)
	if err != nil {
		return err
	}
	code, answer, err := c.send(ctx, action, body)
	if err != nil {
		return fmt.Errorf("invoke %s: %w", action, err)
	}
	if code != http.StatusOK {
		var r struct{ Error string }
		_ = json.Unmarshal(answer, &r)
		return fmt.Errorf("invoke %s: %d: %s", action, code, r.Error)
	}
	if err := json.Unmarshal(answer, result); err != nil {
		return fmt.Errorf("invoke %s: %w", action, err)
	}
	return nil
}

// send asks the controller. It tries again as long as nobody takes the connection: nothing was run then.
func (c *Client) send(ctx context.Context, action string, body []byte) (code int, answer []byte, err error) {
	for range callTries {
		code, answer, err = c.try(ctx, action, body)
		var dialled *net.OpError
		if err == nil || !errors.As(err, &dialled) || dialled.Op != "dial" {
			break
		}
		select {
		case <-time.After(callPause):
		case <-ctx.Done():
			return 0, nil, context.Cause(ctx)
		}
	}
	return code, answer, err
}

func (c *Client) try(ctx context.Context, action string, body []byte) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost,
		"http://"+c.host+"/api/v1/namespaces/_/actions/"+action+"?blocking=true&result=true", bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if cause, ok := ctx.Value(causeKey{}).(string); ok {
		req.Header.Set(causeHeader, cause)
	}
	req.Close = true // The next one may go to another controller.
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	return resp.StatusCode, answer, err
}
