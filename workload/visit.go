package workload

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"regexp"
	"strings"
	"time"
)

// visit is one time that an operation is done.
type visit struct {
	op     *compiled
	chance chance
	n      uint64
	vars   map[string]any
	first  *Request
}

// visit begins the n-th operation of a load and renders its first request. The user is the number of
// the session, if it is one of a session's; kept is what the operation recalls.
func (c *compiled) visit(ch chance, n, user uint64, kept map[string]any) (*visit, error) {
	v := &visit{op: c, chance: ch, n: n}
	r, err := c.borrow()
	if err != nil {
		return v, err
	}
	defer c.pool.Put(r)
	if err := v.begin(r, user, kept); err != nil {
		return v, err
	}
	v.first, err = r.request(c.Operation, 0, v.vars)
	return v, err
}

// borrow takes a renderer from the pool, where it must be put back.
func (c *compiled) borrow() (*renderer, error) {
	if r, _ := c.pool.Get().(*renderer); r != nil {
		return r, nil
	}
	return c.renderer()
}

// begin computes the variables.
func (v *visit) begin(r *renderer, user uint64, kept map[string]any) error {
	r.dice.throw(v.chance, v.n)
	v.vars = make(map[string]any, len(v.op.Vars)+3)
	if v.op.Recall != "" {
		v.vars["kept"] = kept
	}
	v.vars["n"], v.vars["user"] = v.n, user
	for i, f := range v.op.Vars {
		v.vars[f.Name] = r.run(r.vars[i], v.vars)
	}
	return r.failed()
}

// render makes the request of a step after the first, from random numbers of its own.
func (v *visit) render(r *renderer, step int) (*Request, error) {
	if step > 0 {
		r.dice.throw(v.chance, v.n|uint64(step)<<stepShift)
	}
	return r.request(v.op.Operation, step, v.vars)
}

// request is the request of a step.
func (v *visit) request(step int) (*Request, error) {
	if step == 0 {
		return v.first, nil
	}
	r, err := v.op.borrow()
	if err != nil {
		return nil, err
	}
	defer v.op.pool.Put(r)
	return v.render(r, step)
}

// pattern is what the body of a step's answer must match; nil is anything.
func (v *visit) pattern(r *renderer, step int) (*regexp.Regexp, error) {
	s := v.op.steps[step]
	if s.Expect.Body == "" || s.pattern != nil {
		return s.pattern, nil
	}
	text := r.run(r.steps[step].expect, v.vars)
	if err := r.failed(); err != nil {
		return nil, err
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("expect: body: %w", err)
	}
	return re, nil
}

// again is how long to wait before a step is tried again.
const again = 50 * time.Millisecond

// do makes the requests of a visit, and records what became of them.
func (g *Generator) do(ctx context.Context, jar http.CookieJar, v *visit, intended time.Time) {
	if jar == nil && len(v.op.Then) > 0 {
		jar, _ = cookiejar.New(nil) // It never fails without options.
	}
	client := g.client(jar)
	o := outcome{operation: v.op.index}
	for step := range v.op.steps {
		var received int64
		until := time.Now()
		if step > 0 {
			until = until.Add(v.op.Then[step-1].Within)
		}
		for {
			o.failure, o.sample, received = g.step(ctx, client, v, step)
			o.received += received
			if o.failure == "" || !time.Now().Before(until) || ctx.Err() != nil {
				break
			}
			select {
			case <-time.After(again):
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil && o.failure != "" {
			return // Abandoned.
		}
		if step == 0 {
			o.latency = time.Since(intended)
		}
		if o.failure != "" {
			break
		}
		g.keeper.keep(v.op.steps[step].Keep, v.vars)
	}
	g.done(o)
}

// step makes one request and judges its answer. It captures what later steps use.
func (g *Generator) step(ctx context.Context, client *http.Client, v *visit,
	step int,
) (failure Class, sample string, received int64) {
	r, err := v.request(step)
	if err != nil {
		return Other, err.Error(), 0
	}
	ctx, cancel := context.WithTimeout(ctx, g.spec.timeout())
	defer cancel()
	status, body, received, err := g.exchange(ctx, client, r)
	if err != nil {
		failure, sample = classify(err), err.Error()
	} else {
		failure, sample = v.judge(ctx, step, status, body)
	}
	if failure != "" && step > 0 {
		sample = fmt.Sprintf("then %s %s: %s", r.Method, r.Path, sample)
	}
	return failure, sample, received
}

// maxBody is how much of a body is looked at; the rest is read and forgotten.
const maxBody = 1 << 20

func (g *Generator) exchange(ctx context.Context, client *http.Client,
	r *Request,
) (status int, body []byte, received int64, err error) {
	req, err := http.NewRequestWithContext(ctx, r.Method, g.base+r.Path, strings.NewReader(r.Body))
	if err != nil {
		return 0, nil, 0, err
	}
	for _, h := range r.Headers {
		req.Header.Set(h.Name, h.Value)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, 0, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err == nil {
		received, err = io.Copy(io.Discard, resp.Body)
	}
	return resp.StatusCode, body, received + int64(len(body)), err
}
