package astronomy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/status"

	"github.com/aiopslab/aiopslab/app/astronomy/demopb"
	"github.com/aiopslab/aiopslab/app/service"
)

const (
	// limitedCalls is the part of the calls of the model that are too many with llmRateLimitError.
	limitedCalls = 0.5
	// apology is what the assistant says when there is no answer.
	apology = "The assistant cannot answer at the moment. Please try again later."
)

// assistant answers questions about products, by what a language model makes of what the shop knows of them.
type assistant struct {
	s       *service.Service
	flags   *flags
	client  *http.Client
	model   model
	limited model // that is asked too much
	catalog demopb.ProductCatalogServiceClient
	reviews func(ctx context.Context, product string) ([]*demopb.ProductReview, error)
	asked   *prometheus.CounterVec
}

// model is where a language model is, and who it is told asks.
type model struct{ base, name, key string }

// newAssistant is the assistant that the environment tells of: LLM_BASE_URL, LLM_MODEL and OPENAI_API_KEY are the model
// to ask. LLM_HOST and LLM_PORT are the shop's own, which may be another one: it can say that it is asked too much.
func newAssistant(s *service.Service, f *flags,
	reviews func(context.Context, string) ([]*demopb.ProductReview, error),
) (*assistant, error) {
	base, host, key := s.Env.Getenv("LLM_BASE_URL"), s.Env.Getenv("LLM_HOST"), s.Env.Getenv("OPENAI_API_KEY")
	if base == "" || host == "" {
		return nil, errors.New("LLM_BASE_URL and LLM_HOST must be set, as http://llm:8000/v1 and llm")
	}
	catalog, err := dial(s, "PRODUCT_CATALOG_ADDR")
	if err != nil {
		return nil, err
	}
	a := &assistant{
		s: s, flags: f, client: s.HTTPClient(callTimeout), reviews: reviews,
		model: model{base, cmp.Or(s.Env.Getenv("LLM_MODEL"), modelName), key},
		limited: model{
			"http://" + net.JoinHostPort(host, cmp.Or(s.Env.Getenv("LLM_PORT"), "8000")) + "/v1", limitedModel, key,
		},
		catalog: demopb.NewProductCatalogServiceClient(catalog),
		asked: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "app_ai_assistant_counter_total", Help: "Questions to the assistant, by product.",
		}, []string{"product_id"}),
	}
	s.Registerer().MustRegister(a.asked)
	return a, nil
}

// answer is what the assistant says to a question about a product. Who asks is told so if there is no answer.
func (a *assistant) answer(ctx context.Context, product, question string) string {
	ctx, span := a.s.Span(ctx, "get_ai_assistant_response")
	text, err := a.assist(ctx, product, question)
	service.EndSpan(span, err)
	if err != nil {
		a.s.Log.ErrorContext(ctx, "The assistant failed", slog.String("product_id", product), slog.Any("error", err))
		return apology
	}
	return text
}

// assist asks the model, reads what it asks for, and gives it that.
func (a *assistant) assist(ctx context.Context, product, question string) (string, error) {
	m, c := a.model, chat{}
	for _, name := range []string{fetchReviews, fetchProduct} {
		c.Tools = append(c.Tools, tool{Type: "function", Function: function{Name: name}})
	}
	c.Messages = []message{
		{Role: "system", Content: "You answer questions about a product of a shop by what its buyers say."},
		{Role: "user", Content: "About the product with the id " + product + ": " + question},
	}
	if a.flags.on(ctx, llmRateLimitError) && rand.Float64() < limitedCalls {
		m = a.limited
	}
	first, err := a.complete(ctx, m, c)
	if err != nil || len(first.ToolCalls) == 0 {
		return first.Content, err
	}
	c.Messages = append(c.Messages, first)
	for _, t := range first.ToolCalls {
		found, err := a.use(ctx, t.Function.Name, product)
		if err != nil {
			return "", err
		}
		c.Messages = append(c.Messages, message{Role: "tool", ToolCallID: t.ID, Content: found})
	}
	a.asked.WithLabelValues(product).Inc()
	last, err := a.complete(ctx, m, c)
	return last.Content, err
}

// use is what a tool finds. That the catalog does not know a product, or does not answer, is told to the model; without
// reviews there is nothing to say.
func (a *assistant) use(ctx context.Context, name, product string) (string, error) {
	var found any
	switch name {
	case fetchReviews:
		list, err := a.reviews(ctx, product)
		if err != nil {
			return "", err
		}
		told := make([]reviewJSON, len(list))
		for i, r := range list {
			told[i] = reviewOf(r)
		}
		found = told
	case fetchProduct:
		p, err := a.catalog.GetProduct(ctx, &demopb.GetProductRequest{Id: product})
		if err != nil {
			a.s.Log.WarnContext(ctx, "no product info", slog.String("product_id", product), slog.Any("error", err))
			found = map[string]string{"error": status.Convert(err).Message()}
			break
		}
		found = productJSON{p.Id, p.Name, p.Description, p.Picture, moneyOf(p.PriceUsd), p.Categories}
	default:
		found = map[string]string{"error": "there is no tool " + name}
	}
	data, err := json.Marshal(found)
	return string(data), err
}

// complete asks a model what comes next.
func (a *assistant) complete(ctx context.Context, m model, c chat) (message, error) {
	c.Model = m.name
	var answer completion
	err := call(ctx, a.client, m.base+"/chat/completions", c, &answer, "Authorization", "Bearer "+m.key)
	if err != nil {
		return message{}, err
	}
	if len(answer.Choices) == 0 {
		return message{}, errors.New("the model answers nothing")
	}
	return answer.Choices[0].Message, nil
}
