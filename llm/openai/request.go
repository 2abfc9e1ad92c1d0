package openai

import (
	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/aiopslab/aiopslab/llm"
)

// request writes a request for an endpoint.
func (m *Model) request(r llm.Request, q quirks) sdk.ChatCompletionNewParams {
	params := sdk.ChatCompletionNewParams{Model: m.c.Model}
	if r.Temperature != nil && !q.noTemperature {
		params.Temperature = param.NewOpt(*r.Temperature)
	}
	if !q.noUsage {
		params.StreamOptions.IncludeUsage = param.NewOpt(true)
	}
	if limit := param.NewOpt(int64(r.MaxTokens)); r.MaxTokens > 0 {
		if m.newLimit(q) {
			params.MaxCompletionTokens = limit
		} else {
			params.MaxTokens = limit
		}
	}
	for _, msg := range r.Messages {
		params.Messages = append(params.Messages, message(msg))
	}
	for _, t := range r.Tools {
		f := shared.FunctionDefinitionParam{Name: t.Name, Description: param.NewOpt(t.Doc)}
		f.SetExtraFields(map[string]any{"parameters": t.Schema}) // As it is, with its order.
		params.Tools = append(params.Tools, sdk.ChatCompletionFunctionTool(f))
	}
	return params
}

func message(msg llm.Message) sdk.ChatCompletionMessageParamUnion {
	switch msg.Role {
	case llm.System:
		return sdk.SystemMessage(msg.Text)
	case llm.Result:
		return sdk.ToolMessage(msg.Text, msg.For)
	case llm.Assistant:
		var a sdk.ChatCompletionAssistantMessageParam
		if msg.Text != "" || len(msg.Calls) == 0 {
			a.Content.OfString = param.NewOpt(msg.Text)
		}
		for _, c := range msg.Calls {
			a.ToolCalls = append(a.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{
				OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
					ID:       c.ID,
					Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Name, Arguments: c.Arguments},
				},
			})
		}
		return sdk.ChatCompletionMessageParamUnion{OfAssistant: &a}
	}
	return sdk.UserMessage(msg.Text)
}
