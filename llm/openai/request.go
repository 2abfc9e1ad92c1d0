package openai

import (
	"cmp"
	"slices"
	"strings"

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
	if r.TopP != nil && !q.noTemperature {
		params.TopP = param.NewOpt(*r.TopP)
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
	messages := r.Messages
	if q.noSystem {
		messages = folded(messages)
	}
	for _, msg := range messages {
		params.Messages = append(params.Messages, message(msg, q))
	}
	for _, t := range r.Tools {
		f := shared.FunctionDefinitionParam{Name: t.Name, Description: param.NewOpt(t.Doc)}
		f.SetExtraFields(map[string]any{"parameters": t.Schema}) // As it is, with its order.
		params.Tools = append(params.Tools, sdk.ChatCompletionFunctionTool(f))
	}
	return params
}

// folded puts what the system says in front of what the user says first, for endpoints that know no
// system.
func folded(messages []llm.Message) []llm.Message {
	var said []string
	list := slices.Clone(messages)
	for len(list) > 0 && list[0].Role == llm.System {
		said, list = append(said, list[0].Text), list[1:]
	}
	text := strings.Join(said, "\n\n")
	if len(list) > 0 && list[0].Role == llm.User {
		list[0].Text = text + "\n\n" + list[0].Text
		return list
	}
	return slices.Insert(list, 0, llm.Message{Role: llm.User, Text: text})
}

// message writes a message. An endpoint that wants thoughts back wants them with every message of the
// model, also where there are none.
func message(msg llm.Message, q quirks) sdk.ChatCompletionMessageParamUnion {
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
					ID: c.ID,
					Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{
						Name:      c.Name,
						Arguments: c.Arguments,
					},
				},
			})
		}
		if q.thoughts == llm.Back {
			a.SetExtraFields(map[string]any{cmp.Or(q.field, thoughtFields[0]): msg.Thoughts})
		}
		return sdk.ChatCompletionMessageParamUnion{OfAssistant: &a}
	}
	return sdk.UserMessage(msg.Text)
}
