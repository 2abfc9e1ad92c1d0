package process

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/cloud/cloudtest"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/session"
)

// wire is the supervisor's end of the line to an environment.
type wire struct {
	t       *testing.T
	in      *io.PipeWriter
	out     *bufio.Scanner
	answers *io.PipeReader
	served  chan error // what Serve returned
}

// serve has an environment answer.
func serve(t *testing.T, h Host) *wire {
	t.Helper()
	in, requests := io.Pipe()
	answers, out := io.Pipe()
	w := &wire{t, requests, bufio.NewScanner(answers), answers, make(chan error, 1)}
	go func() {
		err := Serve(t.Context(), in, out, h)
		_ = in.CloseWithError(io.ErrClosedPipe)
		_ = out.Close()
		w.served <- err
	}()
	t.Cleanup(func() {
		_ = requests.Close()
		_ = answers.Close()
	})
	return w
}

func (w *wire) send(line string) {
	w.t.Helper()
	if _, err := io.WriteString(w.in, line+"\n"); err != nil {
		w.t.Fatal(err)
	}
}

func (w *wire) answer() message {
	w.t.Helper()
	var m message
	if !w.out.Scan() {
		w.t.Fatalf("no answer: %v", w.out.Err())
	}
	if err := json.Unmarshal(w.out.Bytes(), &m); err != nil {
		w.t.Fatal(err)
	}
	return m
}

// plain is a cloud that cannot be reset.
type plain struct{ cloud.Cloud }

// Whatever a supervisor asks for is answered, in words it can show.
func TestServe(t *testing.T) {
	opened := 0
	w := serve(t, Host{
		Library: func() (*problem.Library, error) { return problem.New(nil, nil) },
		Open: func(context.Context, Opening) (*session.Local, error) {
			if opened++; opened == 1 {
				return nil, errors.New("no port is free")
			}
			return &session.Local{Cloud: plain{cloudtest.New(t)}}, nil
		},
		Hint: func(err error) string {
			if strings.Contains(err.Error(), "port") {
				return "close something"
			}
			return ""
		},
	})
	for _, c := range []struct{ request, text, hint string }{
		{`{"id":1,"method":"dismiss"}`, "the environment is not open", ""},
		{`{"id":1,"method":"open","params":{"dir":"x"}}`, "no port is free", "close something"},
		{`{"id":1,"method":"dismiss"}`, "the environment is not open", ""},
		{`{"id":1,"method":"open","params":{"dir":"x"}}`, "", ""},
		{`{"id":1,"method":"dance"}`, `there is no request "dance"`, ""},
		{`{"id":1,"method":"act","params":[]}`, "cannot unmarshal", ""},
		{`{"id":1,"method":"act","params":{"response":"x"}}`, "no agent has its turn", ""},
		{`{"id":1,"method":"export","params":{}}`, "no agent has its turn", ""},
		{`{"id":1,"method":"users"}`, "no agent has its turn", ""},
		{`{"id":1,"method":"prepare","params":{"problem":{"id":"nothing"}}}`, "nothing", ""},
		{`{"id":1,"method":"keep","params":{"problem":{"id":"nothing"}}}`, "nothing", ""},
		{`{"id":1,"method":"ready","params":{"problem":{"id":"nothing"}}}`, "nothing", ""},
		{`{"id":1,"method":"cancel","params":{"id":7}}` + "\n" + `{"id":1,"method":"dismiss"}`, "", ""}, // Nothing of that kind goes on.
		{`{"id":1,"method":"watch","params":{"interrupted":true}}`, "", ""},
	} {
		w.send(c.request)
		m := w.answer()
		switch {
		case m.ID != 1:
			t.Errorf("%s: %+v", c.request, m)
		case c.text == "" && m.Error != nil:
			t.Errorf("%s: %v", c.request, m.Error)
		case c.text != "" && (m.Error == nil || !strings.Contains(m.Error.Text, c.text) || m.Error.Hint != c.hint):
			t.Errorf("%s: %+v", c.request, m.Error)
		}
	}
	_ = w.in.Close()
	if err := <-w.served; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// A request that is given up ends, and so do all when there is no supervisor any more.
func TestServeCancelled(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan error, 2)
	w := serve(t, Host{Open: func(ctx context.Context, _ Opening) (*session.Local, error) {
		begun <- struct{}{}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, context.Cause(ctx)
	}})
	w.send(`{"id":3,"method":"open","params":{}}`)
	<-begun
	w.send(`{"id":4,"method":"cancel","params":{"id":3,"why":"it was interrupted"}}`)
	if m := w.answer(); m.ID != 3 || m.Error == nil || m.Error.Text != "it was interrupted" {
		t.Errorf("%+v", m)
	}
	<-ended
	w.send(`{"id":5,"method":"open","params":{}}`)
	<-begun
	_ = w.in.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the request ended with %v", err)
	}
	_ = w.answers.Close() // Nobody reads any more.
	if err := <-w.served; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// What is no request ends the environment: who writes that is no supervisor.
func TestServeNonsense(t *testing.T) {
	for _, line := range []string{"what?", `{"id":1,"method":"cancel","params":[]}`} {
		w := serve(t, Host{})
		w.send(line)
		if err := <-w.served; err == nil {
			t.Errorf("%q was understood", line)
		}
	}
}

// An environment is told which cluster to use, and what of it.
func TestOpenOn(t *testing.T) {
	var got *Cluster
	w := serve(t, Host{Open: func(_ context.Context, o Opening) (*session.Local, error) {
		got = o.On
		return nil, errors.New("nobody answers there")
	}})
	want := Cluster{Kubeconfig: []byte("kind: Config"), Run: "r1", Namespaces: []string{"shop", "observe"}, Registry: "r.example/lab"}
	params, err := json.Marshal(openParams{On: &want})
	if err != nil {
		t.Fatal(err)
	}
	w.send(`{"id": 1, "method": "open", "params": ` + string(params) + `}`)
	if m := w.answer(); m.Error == nil || m.Error.Text != "nobody answers there" {
		t.Errorf("%+v", m)
	}
	if got == nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("it was told %+v", got)
	}
}
