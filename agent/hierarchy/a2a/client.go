package a2a

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// CardPath is where an agent's card is.
const CardPath = "/.well-known/agent-card.json"

// Bounds of what the other side may send.
const (
	maxBody = 1 << 20
	maxText = 64 << 10
)

// Client is a conversation with one agent. It is not safe for concurrent use.
type Client struct {
	// Name is what the agent's card calls it.
	Name string

	url   string
	token string // that is shown with each request; empty for none
	v1    bool   // version 1.0 of the protocol; else 0.3
	http  *http.Client
	wait  time.Duration // before something is asked a second time
	// The conversation, and the task at hand, as the agent names them.
	context, task string
}

// card is what is needed of an agent's card.
type card struct {
	Name string `json:"name"`
	// Of version 0.3.
	URL                  string  `json:"url"`
	PreferredTransport   string  `json:"preferredTransport"`
	AdditionalInterfaces []route `json:"additionalInterfaces"`
	// Of version 1.0.
	SupportedInterfaces []route `json:"supportedInterfaces"`
}

// route is where an agent can be talked to, and how.
type route struct {
	URL             string `json:"url"`
	Transport       string `json:"transport"`
	ProtocolBinding string `json:"protocolBinding"`
	ProtocolVersion string `json:"protocolVersion"`
}

// CheckURL says what is wrong with the address of an agent.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%s is no address of an agent; write it as https://host/path", text)
	case u.User != nil:
		return errors.New("the address of an agent has no password in it: it would be in the record")
	}
	return nil
}

// Open reads the card of the agent at an address: below it, or else at the root of its host. A token, if there is one,
// is shown to that host alone, and is in nothing that the client returns.
func Open(ctx context.Context, address, token string) (*Client, error) {
	if err := CheckURL(address); err != nil {
		return nil, err
	}
	if err := CheckToken(address, token); err != nil {
		return nil, err
	}
	return open(ctx, address, token, firstWait)
}

func open(ctx context.Context, address, token string, wait time.Duration) (*Client, error) {
	c := &Client{token: token, wait: wait, http: &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errElsewhere
		},
	}}
	if err := c.read(ctx, address); err != nil {
		return nil, c.discreet(err)
	}
	return c, nil
}

// read reads the agent's card.
func (c *Client) read(ctx context.Context, address string) error {
	base, err := url.Parse(address)
	if err != nil {
		return err
	}
	body, err := c.get(ctx, strings.TrimSuffix(address, "/")+CardPath)
	if err != nil && strings.Trim(base.Path, "/") != "" && ctx.Err() == nil {
		body, err = c.get(ctx, base.Scheme+"://"+base.Host+CardPath)
	}
	if err != nil {
		return fmt.Errorf("the agent's card: %w", err)
	}
	var of card
	if err := json.Unmarshal(body, &of); err != nil {
		return fmt.Errorf("the agent's card is no JSON: %w", err)
	}
	if c.url, c.v1, err = of.route(base, c.hidden); err != nil {
		return err
	}
	c.Name = clip(c.hidden(of.Name), 100)
	return nil
}

// route finds where the agent speaks JSON-RPC. It must be on the host that the user has named.
func (c card) route(base *url.URL, hidden func(string) string) (address string, v1 bool, err error) {
	list := c.SupportedInterfaces
	if c.URL != "" {
		list = append(list, route{URL: c.URL, Transport: c.PreferredTransport})
	}
	for _, r := range append(list, c.AdditionalInterfaces...) {
		binding := r.ProtocolBinding + r.Transport
		if binding != "" && !strings.EqualFold(binding, "JSONRPC") {
			continue
		}
		u, err := base.Parse(r.URL)
		if err != nil || u.Host != base.Host || u.Scheme != base.Scheme {
			return "", false, fmt.Errorf("the agent's card says that it is at %s, which is not on %s",
				clip(hidden(r.URL), 100), base.Host)
		}
		return u.String(), strings.HasPrefix(r.ProtocolVersion, "1."), nil
	}
	return "", false, errors.New("the agent's card names no interface that speaks JSON-RPC")
}

func (c *Client) get(ctx context.Context, address string) (body []byte, err error) {
	err = c.insist(ctx, func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		body, err = c.do(req)
		return err
	})
	return body, err
}

// do makes a request, and reads as much of the answer as is allowed.
func (c *Client) do(req *http.Request) ([]byte, error) {
	req.Header.Set("A2A-Version", "1.0")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, ofMoment(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, refused(resp)
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "text/event-stream" {
		return nil, errors.New("it answers with a stream, which nobody asked for")
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return nil, ofMoment(err)
	}
	if len(body) > maxBody {
		return nil, fmt.Errorf("its answer is longer than %d bytes", maxBody)
	}
	return body, nil
}

// call calls a method by JSON-RPC.
func (c *Client) call(ctx context.Context, old, current string, params, result any) error {
	method := old
	if c.v1 {
		method = current
	}
	id := rand.Text()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		return err
	}
	var answer []byte
	err = c.insist(ctx, func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		answer, err = c.do(req)
		return err
	})
	if err != nil {
		return err
	}
	var reply struct {
		ID     any             `json:"id"`
		Result json.RawMessage `json:"result"`
		Error  *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(answer, &reply); err != nil {
		return fmt.Errorf("its answer is no JSON: %w", err)
	}
	switch {
	case reply.Error != nil:
		return fmt.Errorf("it answers with error %d: %s", reply.Error.Code, clip(c.hidden(reply.Error.Message), 200))
	case reply.ID != id:
		return errors.New("its answer is to another question")
	}
	if err := json.Unmarshal(reply.Result, result); err != nil {
		return fmt.Errorf("its answer has another form: %w", err)
	}
	return nil
}

// part is a piece of a message.
type part struct {
	Kind string `json:"kind,omitempty"` // of version 0.3
	Text string `json:"text,omitempty"`
}

// message is what one side says. Results of version 0.3 are a message or a task, told apart by kind; those of 1.0 are
// in an envelope.
type message struct {
	Kind      string `json:"kind,omitempty"`
	MessageID string `json:"messageId"`
	ContextID string `json:"contextId,omitempty"`
	TaskID    string `json:"taskId,omitempty"`
	Role      string `json:"role"`
	Parts     []part `json:"parts"`
}

func (m *message) text() string {
	var list []string
	if m != nil {
		for _, p := range m.Parts {
			list = append(list, p.Text)
		}
	}
	return strings.TrimSpace(strings.Join(list, "\n"))
}

// task is the work that an agent makes of a message.
type task struct {
	ID        string `json:"id"`
	ContextID string `json:"contextId"`
	Status    struct {
		State   string   `json:"state"`
		Message *message `json:"message"`
	} `json:"status"`
	Artifacts []message `json:"artifacts"`
}

// envelope is the result of sending a message.
type envelope struct {
	Kind    string   `json:"kind"`
	Message *message `json:"message"`
	Task    *task    `json:"task"`
}

// Say says something and returns what the agent answers. If the agent makes a task of it, Say waits until that has
// ended, or until the agent wants to be answered itself.
func (c *Client) Say(ctx context.Context, text string) (string, error) {
	answer, err := c.say(ctx, text)
	return answer, c.discreet(err)
}

func (c *Client) say(ctx context.Context, text string) (string, error) {
	m := message{
		MessageID: rand.Text(), ContextID: c.context, TaskID: c.task, Role: "ROLE_USER", Parts: []part{{Text: text}},
	}
	if !c.v1 {
		m.Kind, m.Role, m.Parts = "message", "user", []part{{Kind: "text", Text: text}}
	}
	var raw json.RawMessage
	if err := c.call(ctx, "message/send", "SendMessage", map[string]any{"message": m}, &raw); err != nil {
		return "", err
	}
	said, work, err := c.result(raw)
	if err != nil {
		return "", err
	}
	if work == nil {
		c.context, c.task = said.ContextID, said.TaskID
		return c.reply(said.text())
	}
	return c.follow(ctx, work)
}

// result is the message or the task that came of a message.
func (c *Client) result(raw json.RawMessage) (*message, *task, error) {
	var e envelope
	if err := json.Unmarshal(raw, &e); err != nil {
		return nil, nil, fmt.Errorf("its answer has another form: %w", err)
	}
	if !c.v1 {
		var err error
		switch e.Kind {
		case "message":
			e.Message = &message{}
			err = json.Unmarshal(raw, e.Message)
		case "task":
			e.Task = &task{}
			err = json.Unmarshal(raw, e.Task)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("its answer has another form: %w", err)
		}
	}
	if e.Message == nil && e.Task == nil {
		return nil, nil, errors.New("its answer is neither a message nor a task")
	}
	return e.Message, e.Task, nil
}

// The pauses between questions whether a task is done: at first, and at most.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 2 * time.Second
)

// follow waits for what comes of a task.
func (c *Client) follow(ctx context.Context, t *task) (string, error) {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		c.context, c.task = t.ContextID, t.ID
		state := strings.ToLower(strings.TrimPrefix(c.hidden(t.Status.State), "TASK_STATE_"))
		switch state = strings.ReplaceAll(state, "_", "-"); state {
		case "completed":
			c.task = "" // What comes next is another one.
			return c.reply(words(t))
		case "input-required":
			return c.reply(words(t))
		case "submitted", "working":
		default:
			return "", fmt.Errorf("its task is %s: %s", clip(state, 40), clip(c.hidden(words(t)), 200))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		next := &task{}
		if err := c.call(ctx, "tasks/get", "GetTask", map[string]any{"id": c.task}, next); err != nil {
			return "", err
		}
		t = next
	}
}

// words are what a task tells: what it made, and what its state says.
func words(t *task) string {
	var list []string
	for i := range t.Artifacts {
		list = append(list, t.Artifacts[i].text())
	}
	return strings.TrimSpace(strings.Join(append(list, t.Status.Message.text()), "\n"))
}

func (c *Client) reply(text string) (string, error) {
	if text = c.hidden(text); text == "" {
		return "", errors.New("it says nothing in words")
	}
	return clip(text, maxText), nil
}

func clip(text string, most int) string {
	r := []rune(strings.ToValidUTF8(text, "?"))
	if len(r) > most {
		return string(r[:most]) + " [...]"
	}
	return string(r)
}
