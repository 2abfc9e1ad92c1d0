package external

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
)

// Protocol is the version of the protocol. Fields may be added to the lab's messages without a new
// one.
const Protocol = 1

// What the lab says.
type (
	hello struct {
		Type         string            `json:"type"`
		Protocol     int               `json:"protocol"`
		Task         string            `json:"task"`
		Namespace    string            `json:"namespace"`
		Description  string            `json:"description"`
		Instructions string            `json:"instructions"`
		Actions      map[string]string `json:"actions"` // documentation by name
		Tools        []tool            `json:"tools"`   // the same, for function calling
		Kubeconfig   string            `json:"kubeconfig,omitempty"`
	}
	tool struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"` // JSON schema
	}
	observation struct {
		Type string `json:"type"`
		Step int    `json:"step"`
		Text string `json:"text"`
	}
	end struct {
		Type   string `json:"type"`
		Reason string `json:"reason"`
	}
)

func newHello(b agent.Briefing, kubeconfig string) hello {
	h := hello{
		Type: "hello", Protocol: Protocol, Task: string(b.Task), Namespace: b.Namespace, Description: b.Description,
		Instructions: b.Instructions, Actions: aci.Docs(b.Actions), Tools: []tool{}, Kubeconfig: kubeconfig,
	}
	for _, a := range b.Actions {
		h.Tools = append(h.Tools, tool{a.Name, a.Doc, a.Schema()})
	}
	return h
}

// encode writes a message as a line.
func encode(w io.Writer, message any) error {
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false) // Simple programs look for text in it.
	if err := e.Encode(message); err != nil {
		return err
	}
	_, err := w.Write(line.Bytes())
	return err
}

// message is what the agent says.
type message struct {
	Type      string         `json:"type"`
	Text      *string        `json:"text"`      // of an action and a log
	Name      string         `json:"name"`      // of a call
	Arguments map[string]any `json:"arguments"` // of a call
}

// rightForm ends every complaint about a line.
const rightForm = `write lines such as {"type":"call","name":"exec_shell","arguments":{"command":"kubectl get pods"}}, ` +
	`{"type":"action","text":"submit()"} or {"type":"log","text":"..."}, and everything else to standard error`

// parse reads a line of the agent. An error is one line that says what is wrong, and how it is right.
func parse(line []byte) (message, error) {
	var m message
	wrong := func(format string, args ...any) (message, error) {
		return message{}, fmt.Errorf("the agent wrote %s: %s; %s", excerpt(line), fmt.Sprintf(format, args...),
			rightForm)
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields() // A misspelt "arguments" must not become a call without any.
	if err := d.Decode(&m); err != nil {
		if _, ok := errors.AsType[*json.SyntaxError](err); ok || errors.Is(err, io.EOF) ||
			errors.Is(err, io.ErrUnexpectedEOF) {
			return wrong("this is not JSON")
		}
		return wrong("%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if d.More() {
		return wrong("there is more than one value in the line")
	}
	switch m.Type {
	case "action", "log":
		if m.Text == nil {
			return wrong("%q needs a text", m.Type)
		}
	case "call":
		if m.Name == "" {
			return wrong(`"call" needs a name`)
		}
	case "":
		return wrong("there is no type")
	default:
		return wrong("there is no type %q", short(m.Type))
	}
	return m, nil
}

// response is an action or a call in the form in which agents of the lab respond.
func (m message) response() string {
	if m.Type == "call" {
		return agent.CallNamed(m.Name, m.Arguments)
	}
	return *m.Text
}

// excerpt is a line in quotes, shortened.
func excerpt(line []byte) string { return fmt.Sprintf("%q", short(string(line))) }

// short is the beginning of a long text.
func short(s string) string {
	const most = 100
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "..."
	}
	return s
}
