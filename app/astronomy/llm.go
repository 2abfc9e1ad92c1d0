package astronomy

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	llmCost   = 2 * time.Millisecond
	modelName = "astronomy-llm"
	// limitedModel is one of which too much is asked already.
	limitedModel = "astronomy-llm-rate-limit"
	// fetchReviews and fetchProduct are the tools that the model uses.
	fetchReviews = "fetch_product_reviews"
	fetchProduct = "fetch_product_info"
	// misjudged is the product that the model sums up wrongly with llmInaccurateResponse.
	misjudged = "L9ECAV7KIM"
	bestScore = 5
)

// What follows are the parts of OpenAI's chat completions that the shop uses.
type (
	chat struct {
		Model    string    `json:"model"`
		Messages []message `json:"messages"`
		Tools    []tool    `json:"tools,omitempty"`
	}
	message struct {
		Role       string     `json:"role"`
		Content    string     `json:"content"`
		ToolCalls  []toolCall `json:"tool_calls,omitempty"`
		ToolCallID string     `json:"tool_call_id,omitempty"`
	}
	tool struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	toolCall struct {
		ID       string   `json:"id"`
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments,omitempty"`
	}
	completion struct {
		ID      string   `json:"id"`
		Object  string   `json:"object"`
		Created int64    `json:"created"`
		Model   string   `json:"model"`
		Choices []choice `json:"choices"`
	}
	choice struct {
		Index        int     `json:"index"`
		Message      message `json:"message"`
		FinishReason string  `json:"finish_reason"`
	}
)

// llmMain is the program llm: it answers in the place of a language model, and is none. It reads the reviews that it is
// given.
func llmMain(ctx context.Context, env *kit.Env) error {
	s, err := start(ctx, env, "llm")
	if err != nil {
		return err
	}
	defer s.Close()
	f, err := openFlags(ctx, s)
	if err != nil {
		return s.Fatal(ctx, "cannot reach the feature flags", err)
	}
	defer f.close()
	h := &llm{s: s, flags: f}
	mux := http.NewServeMux()
	s.HandleFunc(mux, "POST /v1/chat/completions", "/v1/chat/completions", llmCost, h.chat)
	s.HandleFunc(mux, "GET /v1/models", "/v1/models", llmCost, func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]any{"object": "list", "data": []any{
			map[string]any{"id": modelName, "object": "model", "owned_by": "astronomy-shop"},
		}})
	})
	address := listenAddress(env, "LLM_PORT")
	s.Log.Info("llm service listening", slog.String("address", address))
	return s.ServeHTTP(ctx, http.MaxBytesHandler(mux, maxBody), address)
}

type llm struct {
	s     *service.Service
	flags *flags
}

// chat answers with what comes next.
func (h *llm) chat(w http.ResponseWriter, r *http.Request) {
	var c chat
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil || len(c.Messages) == 0 {
		refuse(w, http.StatusBadRequest, "invalid_request_error", "want a model and messages")
		return
	}
	if c.Model == limitedModel {
		h.s.Log.WarnContext(r.Context(), "Rate limit reached", slog.String("model", c.Model))
		refuse(w, http.StatusTooManyRequests, "rate_limit_exceeded", "Rate limit reached. Try again later.")
		return
	}
	m := c.next(h.flags.on(r.Context(), llmInaccurateResponse))
	end := "stop"
	if len(m.ToolCalls) > 0 {
		end = "tool_calls"
	}
	h.s.Log.InfoContext(r.Context(), "Completed a chat", slog.Int("messages", len(c.Messages)),
		slog.String("finish_reason", end))
	reply(w, completion{
		ID: "chatcmpl-" + uuid.NewString(), Object: "chat.completion", Created: time.Now().Unix(),
		Model: cmp.Or(c.Model, modelName), Choices: []choice{{Message: m, FinishReason: end}},
	})
}

// refuse answers with an error as OpenAI does.
func refuse(w http.ResponseWriter, code int, kind, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"error": map[string]string{"message": text, "type": kind, "code": kind},
	})
}

var productID = regexp.MustCompile(`\b[0-9A-Z]{10}\b`)

// next is the message that comes next: a wish to read what is known of a product, or, if that is there, a summary.
func (c chat) next(inaccurate bool) message {
	m := message{Role: "assistant", Content: "I know nothing but products of this shop, by their ids."}
	product := ""
	for _, q := range c.Messages {
		if q.Role == "user" {
			product = cmp.Or(productID.FindString(q.Content), product)
		}
	}
	switch told := c.told(); {
	case told != nil:
		m.Content = summary(told[fetchProduct], told[fetchReviews], inaccurate && product == misjudged)
	case product != "" && slices.ContainsFunc(c.Tools, func(t tool) bool { return t.Function.Name == fetchReviews }):
		m.Content = ""
		for _, t := range c.Tools {
			if t.Function.Name == fetchReviews || t.Function.Name == fetchProduct {
				m.ToolCalls = append(m.ToolCalls, toolCall{
					ID: "call_" + uuid.NewString(), Type: "function",
					Function: function{Name: t.Function.Name, Arguments: fmt.Sprintf(`{"product_id": %q}`, product)},
				})
			}
		}
	}
	return m
}

// told is what the tools have said that were called last, by the tool, or nil if it is not their turn.
func (c chat) told() map[string]string {
	told := map[string]string{}
	i := len(c.Messages) - 1
	for ; i >= 0 && c.Messages[i].Role == "tool"; i-- {
		told[c.Messages[i].ToolCallID] = c.Messages[i].Content
	}
	if len(told) == 0 || i < 0 {
		return nil
	}
	by := map[string]string{}
	for _, t := range c.Messages[i].ToolCalls {
		by[t.Function.Name] = told[t.ID]
	}
	return by
}

// summary sums up the reviews of a product. An inaccurate one says the opposite.
func summary(product, reviews string, inaccurate bool) string {
	var list []reviewJSON
	if json.Unmarshal([]byte(reviews), &list) != nil || len(list) == 0 {
		return "There are no reviews of this product."
	}
	var known productJSON
	_ = json.Unmarshal([]byte(product), &known) // Reviews can be summed up without its name.
	score := func(r reviewJSON) float64 {
		v, _ := strconv.ParseFloat(r.Score, 64) // What is no number is the worst.
		return v
	}
	slices.SortStableFunc(list, func(a, b reviewJSON) int { return cmp.Compare(score(b), score(a)) })
	sum := 0.0
	for _, r := range list {
		sum += score(r)
	}
	mean, best, worst := sum/float64(len(list)), list[0], list[len(list)-1]
	if inaccurate {
		mean, best, worst = bestScore+1-mean, worst, best
	}
	return fmt.Sprintf("%d buyers give it %.1f of %d on average. The best that they say of %s: %q And the worst: %q",
		len(list), mean, bestScore, cmp.Or(known.Name, "it"), best.Description, worst.Description)
}
