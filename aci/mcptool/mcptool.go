// Package mcptool has the actions as tools of an MCP server: what a client is told of them, how its arguments are read,
// and who may call them. Whoever serves clients decides what a call does.
//
//	server.AddTool(mcptool.Of(a), func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
//		args, wrong := mcptool.Arguments(a, req)
//		if wrong != nil {
//			return wrong, nil
//		}
//		...
//	})
package mcptool

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/aiopslab/aiopslab/aci"
)

// Of is an action as a tool.
func Of(a *aci.Action) *mcp.Tool {
	return &mcp.Tool{
		Name: a.Name, Description: a.Doc + "\n\nReturns: " + a.Returns, InputSchema: a.Schema(),
		Annotations: annotations(a),
	}
}

// annotations tell a client what an action does to the cloud.
func annotations(a *aci.Action) *mcp.ToolAnnotations {
	closed := false
	t := &mcp.ToolAnnotations{ReadOnlyHint: a.Kind == aci.Read, OpenWorldHint: &closed}
	if a.Kind == aci.Submit {
		harmless := false
		t.DestructiveHint = &harmless
	}
	return t
}

// Arguments are those of a call, or the result that says what is wrong with them.
func Arguments(a *aci.Action, req *mcp.CallToolRequest) (args map[string]any, wrong *mcp.CallToolResult) {
	if raw := req.Params.Arguments; len(raw) > 0 {
		if err := json.Unmarshal(raw, &args); err != nil {
			return nil, Failed("Error: the arguments of %s must be a JSON object: %v", a.Name, err)
		}
	}
	if err := a.Check(args); err != nil {
		return nil, Failed("%v", err)
	}
	return args, nil
}

// Text is a result.
func Text(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// Failed is the result of a call that did not do what it was to do.
func Failed(format string, args ...any) *mcp.CallToolResult {
	r := Text(fmt.Sprintf(format, args...))
	r.IsError = true
	return r
}

// Guard lets in who has a token, if there is one, and no pages of other origins. The SDK refuses names of other hosts
// that lead to the loopback interface.
func Guard(token string, h http.Handler) http.Handler {
	if token != "" {
		h = auth.RequireBearerToken(func(_ context.Context, got string, _ *http.Request) (*auth.TokenInfo, error) {
			if subtle.ConstantTimeCompare([]byte(got), []byte(token)) != 1 {
				return nil, auth.ErrInvalidToken
			}
			return &auth.TokenInfo{Expiration: time.Now().Add(time.Hour)}, nil
		}, nil)(h)
	}
	return http.NewCrossOriginProtection().Handler(h)
}
