package anthropic

import (
	"encoding/json"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/aiopslab/aiopslab/llm"
)

// request writes a request. The protocol has the system prompt apart, takes no empty text, and wants
// the roles to alternate, with the results of tools as the user's. The provider is asked to keep what
// it has read, up to the end of the prompt and of the last message, for the next request.
func (m *Model) request(r llm.Request) sdk.MessageNewParams {
	params := sdk.MessageNewParams{Model: m.c.Model, MaxTokens: int64(r.MaxTokens)}
	if r.Temperature != nil {
		params.Temperature = param.NewOpt(*r.Temperature)
	} else if r.TopP != nil { // It takes one of the two.
		params.TopP = param.NewOpt(*r.TopP)
	}
	for _, msg := range r.Messages {
		if msg.Role == llm.System {
			if msg.Text != "" {
				params.System = append(params.System, sdk.TextBlockParam{Text: msg.Text})
			}
			continue
		}
		role := sdk.MessageParamRoleUser
		if msg.Role == llm.Assistant {
			role = sdk.MessageParamRoleAssistant
		}
		blocks := blocksOf(msg)
		if n := len(params.Messages); n > 0 && params.Messages[n-1].Role == role {
			params.Messages[n-1].Content = append(params.Messages[n-1].Content, blocks...)
		} else if len(blocks) > 0 {
			params.Messages = append(params.Messages, sdk.MessageParam{Role: role, Content: blocks})
		}
	}
	for _, t := range r.Tools {
		params.Tools = append(params.Tools, sdk.ToolUnionParam{OfTool: &sdk.ToolParam{
			Name: t.Name, Description: param.NewOpt(t.Doc),
			InputSchema: param.Override[sdk.ToolInputSchemaParam](t.Schema),
		}})
	}
	if n := len(params.System); n > 0 {
		params.System[n-1].CacheControl = sdk.NewCacheControlEphemeralParam()
	}
	if n := len(params.Messages); n > 0 {
		last := params.Messages[n-1].Content
		if c := last[len(last)-1].GetCacheControl(); c != nil { // A thought has none.
			*c = sdk.NewCacheControlEphemeralParam()
		}
	}
	return params
}

func blocksOf(msg llm.Message) []sdk.ContentBlockParamUnion {
	if msg.Role == llm.Result {
		result := sdk.ToolResultBlockParam{ToolUseID: msg.For}
		if msg.Text != "" {
			result.Content = []sdk.ToolResultBlockParamContentUnion{{OfText: &sdk.TextBlockParam{Text: msg.Text}}}
		}
		return []sdk.ContentBlockParamUnion{{OfToolResult: &result}}
	}
	var list []sdk.ContentBlockParamUnion
	var thoughts []sealed
	if json.Unmarshal(msg.Sealed, &thoughts) == nil {
		for _, s := range thoughts {
			if s.Data != "" {
				list = append(list, sdk.NewRedactedThinkingBlock(s.Data))
			} else {
				list = append(list, sdk.NewThinkingBlock(s.Signature, s.Thinking))
			}
		}
	}
	if msg.Text != "" {
		list = append(list, sdk.NewTextBlock(msg.Text))
	}
	for _, c := range msg.Calls {
		input := json.RawMessage(c.Arguments)
		var object map[string]json.RawMessage
		if json.Unmarshal(input, &object) != nil || object == nil { // The protocol takes objects only.
			input = json.RawMessage("{}")
		}
		list = append(list, sdk.NewToolUseBlock(c.ID, input, c.Name))
	}
	return list
}
