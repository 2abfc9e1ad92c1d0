// Package llmtest plays chat models: an endpoint that speaks OpenAI's and Anthropic's protocols, in
// streams or not, and says what a function tells it to. It can fail in all the ways endpoints do.
//
//	url := llmtest.Start(t, llmtest.Script(llmtest.Answer{Text: "Hello"}))
//	m := openai.New(openai.Config{Model: "test", BaseURL: url + "/v1"})
package llmtest

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/llm"
)

// Request is what an endpoint was asked, in whichever protocol.
type Request struct {
	llm.Request
	Model  string
	Stream bool
	Header http.Header
}

// Answer is what an endpoint answers.
type Answer struct {
	Text  string
	Calls []llm.ToolCall
	Stop  llm.Stop  // empty for what fits
	Usage llm.Usage // zero for about what the texts have
	// Thoughts are in a field of their own: in OpenAI's protocol the one named, or "reasoning_content".
	Thoughts, ThoughtField string
	// NoUsage leaves out how many tokens it took.
	NoUsage bool
	// Parts has the text as a list of parts, and thoughts among them. Legacy has the first call in the
	// field that is from before there were tools. Both are OpenAI's.
	Parts, Legacy bool

	// Status is the status of an error in place of a reply, with the provider's code and a message.
	Status        int
	Code, Message string
	RetryAfter    string // header

	// Raw is sent as it is, as a whole answer or as the one event of a stream.
	Raw string
	// Whole answers at once though a stream was asked for.
	Whole bool
	// CutAfter breaks the connection off after so many events of a stream.
	CutAfter int
	// Delay passes before the answer, unless whoever asks goes away.
	Delay time.Duration
}

// Play answers the nth request, from 1. It may be called concurrently.
type Play func(n int, r Request) Answer

// Script gives answers one after another, and at its end an error that is not worth another attempt.
func Script(answers ...Answer) Play {
	return func(n int, _ Request) Answer {
		if n > len(answers) {
			return Answer{Status: http.StatusTeapot, Message: "the script is at its end"}
		}
		return answers[n-1]
	}
}

// Flaky answers some requests, by number, otherwise than a play would.
func Flaky(p Play, instead map[int]Answer) Play {
	var mu sync.Mutex
	extra := 0
	return func(n int, r Request) Answer {
		if a, ok := instead[n]; ok {
			mu.Lock()
			extra++
			mu.Unlock()
			return a
		}
		mu.Lock()
		defer mu.Unlock()
		return p(n-extra, r)
	}
}

// Handler is the endpoint: /v1/chat/completions and /v1/messages.
func Handler(p Play) http.Handler {
	var mu sync.Mutex
	n := 0
	play := func(r Request) Answer {
		mu.Lock()
		n++
		number := n
		mu.Unlock()
		return p(number, r)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		serveOpenAI(w, r, play)
	})
	mux.HandleFunc("POST /v1/messages", func(w http.ResponseWriter, r *http.Request) { serveAnthropic(w, r, play) })
	return mux
}

// Start starts an endpoint for the time of a test, and returns its address without /v1.
func Start(t testing.TB, p Play) string {
	t.Helper()
	s := httptest.NewServer(Handler(p))
	t.Cleanup(s.Close)
	return s.URL
}

// complete fills in what an answer leaves open.
func (a Answer) complete(r Request) Answer {
	if a.Stop == "" {
		a.Stop = llm.Done
		if len(a.Calls) > 0 {
			a.Stop = llm.Calling
		}
	}
	if a.Usage == (llm.Usage{}) {
		for _, m := range r.Messages {
			a.Usage.In += len(m.Text)/4 + 4
		}
		a.Usage.Out = len(a.Text)/4 + 1
	}
	return a
}

// pieces are a text as a stream has it.
func pieces(text string) []string {
	const size = 12
	var list []string
	r := []rune(text)
	for len(r) > size {
		list = append(list, string(r[:size]))
		r = r[size:]
	}
	return append(list, string(r))
}

// emitter writes the events of a stream, up to where it is to be cut.
type emitter struct {
	w    http.ResponseWriter
	most int // 0 for all
	n    int
}

func (e *emitter) send(event, data string) {
	if e.n++; e.most > 0 && e.n > e.most {
		panic(http.ErrAbortHandler) // The connection ends in the middle.
	}
	if event != "" {
		event = "event: " + event + "\n"
	}
	_, _ = e.w.Write([]byte(event + "data: " + data + "\n\n"))
	_ = http.NewResponseController(e.w).Flush()
}

// wait lets a delay pass, and reports whether somebody is still there to answer.
func (a Answer) wait(r *http.Request) bool {
	if a.Delay == 0 {
		return true
	}
	select {
	case <-time.After(a.Delay):
		return true
	case <-r.Context().Done():
		return false
	}
}
