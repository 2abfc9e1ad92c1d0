package mcp

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/session"
)

// User is who answers, in the record.
const User = "the MCP client's user"

const (
	// maxShown is how much of a command or a request is shown, in characters.
	maxShown = 2000
	// maxReason is how much of a reason is kept, in characters.
	maxReason = 500
)

// fields are what the form has. A yes takes more than to send it.
var fields = json.RawMessage(`{
	"type": "object",
	"properties": {
		"approve": {"type": "boolean", "title": "Approve", "description": "Whether the change may be made"},
		"reason": {"type": "string", "title": "Reason", "description": "The agent is told it, if it is a no"}
	},
	"required": ["approve"]
}`)

// form asks a question. What the agent wrote stays in its line, whatever it is.
func form(q guard.Question) *mcp.ElicitParams {
	var b strings.Builder
	command := q.Command
	q.Command = nil
	fmt.Fprintf(&b, "The agent wants to %s.\n", plain(q.Change.String()))
	if len(command) > 0 {
		words := make([]string, len(command))
		for i, w := range command {
			if words[i] = w; w == "" || strings.ContainsAny(w, " \t\n\"'\\") {
				words[i] = strconv.Quote(w)
			}
		}
		fmt.Fprintf(&b, "Command: %s\n", plain(strings.Join(words, " ")))
	}
	if len(q.Request) > 0 {
		fmt.Fprintf(&b, "Request: %s\n", plain(string(q.Request)))
	}
	fmt.Fprintf(&b, "Risk: %s, because %s\nPolicy: %s, which has it approved by you.", q.Risk, plain(q.Because),
		plain(q.Policy))
	return &mcp.ElicitParams{Mode: "form", Message: b.String(), RequestedSchema: fields}
}

// verdict is what the client's user said.
func verdict(r mcp.InputResponse) guard.Answer {
	a := guard.Answer{By: User}
	e, ok := r.(*mcp.ElicitResult)
	if !ok || e == nil {
		a.Why = "what the MCP client sent does not answer the form"
		return a
	}
	reason, _ := e.Content["reason"].(string)
	a.Why = clip(strings.Join(strings.Fields(strings.ToValidUTF8(reason, "\uFFFD")), " "), maxReason)
	yes, _ := e.Content["approve"].(bool)
	a.Approved = e.Action == "accept" && yes
	if e.Action == "cancel" && a.Why == "" {
		a.Why = "the form was closed without an answer"
	}
	return a
}

// key names a question among those of a call.
func key(q session.Approval) string { return "approval-" + strconv.Itoa(q.Number) }

// plain is a text in one line, without what could change how others are shown, and not too long.
func plain(text string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return clip(b.String(), maxShown)
}

// clip shortens a text, and says by how much.
func clip(text string, characters int) string {
	if n := utf8.RuneCountInString(text); n > characters {
		return fmt.Sprintf("%s... (%d characters more)", string([]rune(text)[:characters]), n-characters)
	}
	return text
}
