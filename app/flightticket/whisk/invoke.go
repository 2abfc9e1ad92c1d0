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
)

const (
	// coldWait is how long an invocation waits for a pod.
	coldWait = 15 * time.Second
	// runWait is how long an action may run, initialisation included.
	runWait = 6 * time.Second
	// maxBody is how much an invocation may send or return.
	maxBody = 256 << 10
	// tries is how often an invocation looks for a pod, when those that it got are gone.
	tries = 4
)

// errUnreached says that nobody took the connection, so that nothing was run.
var errUnreached = errors.New("the pod cannot be reached")

// invoke runs an action and returns what came of it. What is wrong with the request itself is an error. Who has gone,
// as the context says, is not waited with any more; but what was begun is finished.
func (c *controller) invoke(ctx context.Context, act *Activation, params json.RawMessage) error {
	began := time.Now()
	var waited time.Duration
	var out outcome
	for range tries {
		wait, cancel := context.WithTimeoutCause(ctx, coldWait-waited,
			fmt.Errorf("no pod of the action was ready within %v", coldWait))
		looking := time.Now()
		i, err := c.fleet.acquire(wait, act.Name)
		cancel()
		waited += time.Since(looking)
		var busy busyError
		if errors.Is(err, errUnknown) || errors.As(err, &busy) {
			return err
		}
		if err != nil {
			out = failed(internalError, fmt.Sprintf("cannot start %s: %v", act.Name, err))
			break
		}
		out, err = c.runOn(context.WithoutCancel(ctx), i, act, params)
		c.fleet.release(act.Name, i, errors.Is(err, errUnreached))
		if err == nil {
			break
		}
		out = failed(internalError, fmt.Sprintf("cannot run %s on %s: %v", act.Name, i.name, err))
		if !errors.Is(err, errUnreached) || ctx.Err() != nil {
			break
		}
	}
	act.end(out, began, time.Now(), waited)
	c.count(act, out, waited)
	c.store.add(act)
	return nil
}

// runOn runs an action on a pod, which is initialised if it was not yet.
func (c *controller) runOn(ctx context.Context, i *instance, act *Activation, params json.RawMessage) (outcome, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, runWait,
		fmt.Errorf("the action exceeded its time limit of %v", runWait))
	defer cancel()
	deadline, _ := ctx.Deadline()
	body, err := json.Marshal(runRequest{
		Value: params, ActivationID: act.ID, ActionName: "/" + guest + "/" + act.Name,
		Namespace: guest, Deadline: deadline.UnixMilli(),
	})
	if err != nil {
		return outcome{}, err
	}
	out := outcome{pod: i.name}
	for initialised := false; ; initialised = true {
		code, answer, err := c.post(ctx, i.address, "/run", body)
		switch {
		case err != nil:
			return out, err
		case code == http.StatusForbidden && !initialised: // By nobody yet.
			began := time.Now()
			code, answer, err = c.post(ctx, i.address, "/init",
				fmt.Appendf(nil, `{"value":{"name":%q,"main":"main"}}`, act.Name))
			if err != nil {
				return out, err
			}
			if code == http.StatusForbidden { // Another was quicker.
				continue
			}
			out.cold, out.init = true, time.Since(began)
			if code != http.StatusOK {
				out.status, out.result = developerError, resultOf(answer)
				return out, nil
			}
			continue
		case code == http.StatusOK:
			var r runResponse
			if json.Unmarshal(answer, &r) != nil || len(r.Result) == 0 {
				out.status, out.result = developerError, failed(0, "the action did not return an object").result
				return out, nil
			}
			out.result, out.logs = r.Result, r.Logs
			if r.Failed {
				out.status = applicationError
			}
			return out, nil
		}
		out.status, out.result = developerError, resultOf(answer)
		return out, nil
	}
}

// resultOf is the error that a pod answers with.
func resultOf(answer []byte) json.RawMessage {
	var r struct{ Error string }
	if json.Unmarshal(answer, &r) == nil && r.Error != "" {
		return failed(0, r.Error).result
	}
	return failed(0, "the action does not answer as a runtime does").result
}

// post sends something to a pod, on a connection of its own: one that was kept may lead to a pod that is gone.
func (c *controller) post(ctx context.Context, address, path string, body []byte) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, podURL(address, path), bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Close = true
	resp, err := c.pods.Do(req)
	if err != nil {
		var dialled *net.OpError
		switch {
		case ctx.Err() != nil:
			return 0, nil, context.Cause(ctx)
		case errors.As(err, &dialled) && dialled.Op == "dial":
			return 0, nil, fmt.Errorf("%w: %w", errUnreached, dialled.Err)
		}
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err == nil && len(answer) > maxBody {
		err = fmt.Errorf("the action returned more than %d bytes", maxBody)
	}
	return resp.StatusCode, answer, err
}
