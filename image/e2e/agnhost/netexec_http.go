package agnhost

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// answer is what a handler has to say. A status of 0 is success.
type answer struct {
	status int
	body   string
}

func bad(format string, args ...any) answer {
	return answer{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// document is an answer in JSON. Like the original, it has no header that says so.
func document(v any) answer {
	data, err := json.Marshal(v)
	if err != nil {
		return answer{http.StatusInternalServerError, err.Error()}
	}
	return answer{body: string(data)}
}

func (n *netexec) routes() http.Handler {
	fixed := func(body string) func(*http.Request) answer {
		return func(*http.Request) answer { return answer{body: body} }
	}
	mux := http.NewServeMux()
	for path, handle := range map[string]func(*http.Request) answer{
		"/":           func(*http.Request) answer { return answer{body: time.Now().UTC().String()} },
		"/clientip":   func(r *http.Request) answer { return answer{body: r.RemoteAddr} },
		"/hostname":   fixed(n.env.Hostname),
		"/hostName":   fixed(n.env.Hostname),
		"/serverport": fixed(strconv.Itoa(n.httpPort)),
		"/echo":       n.echo,
		"/envvar":     n.variable,
		"/dial":       n.dial,
		"/shell":      n.shell,
		"/healthz":    func(*http.Request) answer { return n.health(false) },
		"/readyz":     func(*http.Request) answer { return n.health(n.terminating.Load()) },
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			// Specs search the log for a line such as "GET /echo?msg=prestop".
			n.log.Printf("%s %s", r.Method, r.URL.RequestURI())
			a := handle(r)
			if a.status != 0 {
				w.WriteHeader(a.status)
			}
			io.WriteString(w, a.body)
		})
	}
	return mux
}

// echo says what it was told to say, with the status it was told.
func (n *netexec) echo(r *http.Request) answer {
	a := answer{body: r.FormValue("msg")}
	if code := r.FormValue("code"); code != "" {
		var err error
		if a.status, err = strconv.Atoi(code); err != nil || a.status < 200 || a.status > 599 {
			return bad("code=%s is not a status of HTTP", code)
		}
	}
	return a
}

func (n *netexec) variable(r *http.Request) answer {
	name := r.FormValue("var")
	value, ok := n.env.Vars[name]
	if !ok {
		return bad("var=%s names no variable of the environment", name)
	}
	return answer{body: value}
}

// health is good while the pod answers datagrams, and nobody tells it to go.
func (n *netexec) health(leaving bool) answer {
	switch {
	case leaving:
		return answer{http.StatusServiceUnavailable, "terminating"}
	case !n.listening.Load():
		return answer{http.StatusPreconditionFailed, "not listening for datagrams"}
	}
	return answer{body: "ok"}
}

// shell runs a command and tells what it printed.
func (n *netexec) shell(r *http.Request) answer {
	line := r.FormValue("shellCommand")
	if line == "" {
		line = r.FormValue("cmd")
	}
	var result struct {
		Output string `json:"output,omitempty"`
		Error  string `json:"error,omitempty"`
	}
	var err error
	if result.Output, err = n.output(r.Context(), "/bin/sh", "-c", line); err != nil {
		result.Error = err.Error()
	}
	return document(result)
}

// output runs a command to its end and returns all that it printed.
func (p *program) output(ctx context.Context, args ...string) (string, error) {
	var mu sync.Mutex
	var printed bytes.Buffer
	env := p.env.Child(args...)
	env.Stdin = strings.NewReader("")
	env.Stdout = &lockedWriter{&mu, &printed}
	env.Stderr = env.Stdout
	env.Terminal = nil
	proc, err := p.env.Procs.Start(ctx, env)
	if err != nil {
		return "", err
	}
	if code := proc.Wait(); code != 0 {
		err = kit.ExitError(code)
	}
	mu.Lock() // A child of the command may outlive it.
	defer mu.Unlock()
	return printed.String(), err
}
