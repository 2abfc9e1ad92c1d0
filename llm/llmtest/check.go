package llmtest

import (
	"reflect"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/llm"
)

// CheckChat asks a model a question twice. The endpoint gives the answer once in parts and once as a whole, and the
// model must reply with what is in it. It returns what the endpoint was asked, for what only one protocol has.
func CheckChat(t *testing.T, open func(Play) llm.Model, question llm.Request, answer Answer) (asked []Request) {
	t.Helper()
	for _, whole := range []bool{false, true} {
		a := answer
		a.Whole = whole
		var got Request
		m := open(func(_ int, r Request) Answer {
			got = r
			return a
		})
		q := question
		q.MaxTokens, q.Temperature = 50, new(float64)
		var parts []string
		q.Delta = func(text string) { parts = append(parts, text) }
		reply, err := m.Chat(t.Context(), q)
		want := llm.Reply{Text: a.Text, Calls: a.Calls, Usage: a.Usage, Stop: llm.Calling}
		if err != nil || !reflect.DeepEqual(reply, want) {
			t.Errorf("got %+v, %v\nwant %+v", reply, err, want)
		}
		if strings.Join(parts, "") != a.Text || (len(parts) > 1) == whole {
			t.Errorf("the parts are %q", parts)
		}
		if !reflect.DeepEqual(got.Messages, question.Messages) || !reflect.DeepEqual(got.Tools, question.Tools) ||
			got.MaxTokens != 50 || got.Temperature == nil {
			t.Errorf("asked %+v", got)
		}
		asked = append(asked, got)
	}
	return asked
}
