package export

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/aiopslab/aiopslab/session"
)

// Spans are the run in OpenTelemetry's conventions for generative AI: invoke_agent for the agent's turn, below it chat
// for each exchange with its model and execute_tool for each action, and the verdict as a gen_ai.evaluation.result.
func (r *Run) Spans() *tracepb.ResourceSpans {
	s := &spans{run: r}
	s.agent()
	for i := range r.Exchanges {
		s.chat(&r.Exchanges[i])
	}
	for i := range r.Steps {
		if r.Steps[i].Action != "" {
			s.tool(&r.Steps[i])
		}
	}
	return &tracepb.ResourceSpans{
		Resource: &resourcepb.Resource{Attributes: attributes{}.text("service.name", "aiopslab")},
		ScopeSpans: []*tracepb.ScopeSpans{{
			Scope: &commonpb.InstrumentationScope{Name: "aiopslab"}, Spans: s.list,
		}},
	}
}

// spans are those of a run as they are made.
type spans struct {
	run     *Run
	prompts prompts
	list    []*tracepb.Span
}

// add begins a span. The first is the root.
func (s *spans) add(name string, kind tracepb.Span_SpanKind, from, to time.Time) *tracepb.Span {
	id := s.run.Record.ID
	span := &tracepb.Span{
		TraceId: digest(16, id), SpanId: digest(8, id, fmt.Sprint(len(s.list))), Name: name, Kind: kind,
		StartTimeUnixNano: nano(from), EndTimeUnixNano: nano(later(from, to)), Status: &tracepb.Status{},
	}
	if len(s.list) > 0 {
		span.ParentSpanId = s.list[0].SpanId
	}
	s.list = append(s.list, span)
	return span
}

func (s *spans) agent() {
	r := s.run
	span := s.add("invoke_agent "+r.Agent(), tracepb.Span_SPAN_KIND_INTERNAL, r.Began, r.Ended)
	u, cost := r.Usage()
	span.Attributes = attributes{}.
		text("gen_ai.operation.name", "invoke_agent").text("gen_ai.provider.name", provider(r.Model())).
		text("gen_ai.agent.name", r.Agent()).text("gen_ai.conversation.id", r.Record.ID).
		text("gen_ai.request.model", r.Model()).text("aiopslab.problem", r.Truth.ID).
		text("aiopslab.task", string(r.Truth.Task)).text("aiopslab.app", r.Truth.App).
		text("aiopslab.class", string(r.Class())).integer("aiopslab.seed", int64(r.Record.Seed)).
		integer("aiopslab.steps", int64(len(r.Steps)))
	if len(r.Exchanges) > 0 {
		span.Attributes = attributes(span.Attributes).
			integer("gen_ai.usage.input_tokens", int64(u.In)).integer("gen_ai.usage.output_tokens", int64(u.Out)).
			number("aiopslab.cost_usd", cost)
	}
	if r.Briefing.Instructions != "" {
		span.Attributes = attributes(span.Attributes).
			text("gen_ai.system_instructions", asJSON([]part{{Type: "text", Content: r.Briefing.Instructions}})).
			text("gen_ai.input.messages", asJSON([]message{said("user", r.Briefing.Description)}))
	}
	if !r.Submission.Submitted {
		failed(span, cmp.Or(string(r.Submission.Class), string(r.Class())), cmp.Or(r.Submission.Reason, r.Why()))
	}
	for i := range r.Steps {
		if st := &r.Steps[i]; st.Action == "" {
			span.Events = append(span.Events, event(st.Time, "aiopslab.invalid_response", attributes{}.
				integer("aiopslab.step", int64(st.Number)).text("aiopslab.response", st.Response).
				text("aiopslab.observation", st.Observation)))
		}
	}
	if v := r.Verdict; v != nil {
		var score *float64 // A run that says nothing about the agent has none.
		switch v.Class {
		case session.Solved:
			score = new(1.0)
		case session.AgentFailed:
			score = new(0.0)
		}
		span.Events = append(span.Events, event(r.Ended, "gen_ai.evaluation.result", attributes{}.
			text("gen_ai.evaluation.name", "verdict").text("gen_ai.evaluation.score.label", string(v.Class)).
			number("gen_ai.evaluation.score.value", score).text("gen_ai.evaluation.explanation", v.Why)))
	}
}

func (s *spans) chat(x *Exchange) {
	span := s.add("chat "+x.Model, tracepb.Span_SPAN_KIND_CLIENT, x.Time.Add(-seconds(x.Seconds)), x.Time)
	messages, left := s.prompts.of(x)
	u := x.Reply.Usage
	span.Attributes = attributes{}.
		text("gen_ai.operation.name", "chat").text("gen_ai.provider.name", provider(x.Model)).
		text("gen_ai.request.model", x.Model).text("gen_ai.conversation.id", s.run.Record.ID).
		integer("aiopslab.step", int64(x.Step)).
		text("gen_ai.input.messages", messages).number("aiopslab.cost_usd", x.Cost)
	if left > 0 {
		span.Attributes = attributes(span.Attributes).integer("aiopslab.input.messages_left_out", int64(left))
	}
	if x.Error != "" {
		failed(span, "model", x.Error)
		return
	}
	span.Attributes = attributes(span.Attributes).
		texts("gen_ai.response.finish_reasons", finish(x.Reply.Stop)).
		integer("gen_ai.usage.input_tokens", int64(u.In)).integer("gen_ai.usage.output_tokens", int64(u.Out)).
		integer("gen_ai.usage.cache_read.input_tokens", int64(u.Cached)).
		integer("gen_ai.usage.cache_creation.input_tokens", int64(u.Written)).
		text("gen_ai.output.messages", asJSON([]message{replied(x.Reply)}))
}

func (s *spans) tool(st *Step) {
	span := s.add("execute_tool "+st.Action, tracepb.Span_SPAN_KIND_INTERNAL, st.Began(), st.Time)
	span.Attributes = attributes{}.
		text("gen_ai.operation.name", "execute_tool").text("gen_ai.tool.name", st.Action).
		text("gen_ai.tool.type", "function").text("gen_ai.tool.call.id", st.Call()).
		text("gen_ai.conversation.id", s.run.Record.ID).integer("aiopslab.step", int64(st.Number)).
		text("gen_ai.tool.call.arguments", string(s.run.Arguments(st))).
		text("gen_ai.tool.call.result", asJSON(st.Observation))
	if st.Failed {
		failed(span, "tool", "the action failed")
	}
}

// failed marks a span as one of something that failed.
func failed(s *tracepb.Span, kind, why string) {
	s.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: why}
	s.Attributes = attributes(s.Attributes).text("error.type", kind)
}

func event(at time.Time, name string, a attributes) *tracepb.Span_Event {
	return &tracepb.Span_Event{TimeUnixNano: nano(at), Name: name, Attributes: a}
}

// provider is the vendor of a model, as far as its name tells. A model that is asked by OpenAI's protocol is OpenAI's,
// by the conventions.
func provider(model string) string {
	switch {
	case model == "":
		return "aiopslab"
	case strings.Contains(model, "claude"):
		return "anthropic"
	}
	return "openai"
}

// attributes are what is known of a span. What is empty is left out.
type attributes []*commonpb.KeyValue

func (a attributes) text(key, v string) attributes {
	if v == "" {
		return a
	}
	return append(a, &commonpb.KeyValue{Key: key, Value: textValue(v)})
}

func (a attributes) texts(key string, list ...string) attributes {
	array := &commonpb.ArrayValue{}
	for _, v := range list {
		array.Values = append(array.Values, textValue(v))
	}
	return append(a, &commonpb.KeyValue{
		Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: array}},
	})
}

func (a attributes) integer(key string, v int64) attributes {
	return append(a, &commonpb.KeyValue{
		Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: v}},
	})
}

func (a attributes) number(key string, v *float64) attributes {
	if v == nil {
		return a
	}
	return append(a, &commonpb.KeyValue{
		Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: *v}},
	})
}

func textValue(v string) *commonpb.AnyValue {
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: strings.ToValidUTF8(v, "\uFFFD")}}
}

// digest draws an id of some bytes from words.
func digest(bytes int, words ...string) []byte {
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	sum[0] |= 1 // An id of zeros is none.
	return sum[:bytes]
}

func nano(t time.Time) uint64 { return uint64(max(t.UnixNano(), 0)) }

func asJSON(v any) string {
	b, _ := json.Marshal(v) // Our own types and strings always can be.
	return string(b)
}
