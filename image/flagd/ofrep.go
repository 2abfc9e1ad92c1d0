package flagd

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/open-feature/flagd/core/pkg/evaluator"
	"github.com/open-feature/flagd/core/pkg/model"
	"github.com/open-feature/flagd/core/pkg/service/ofrep"

	"github.com/aiopslab/aiopslab/internal/nesting"
)

// ofrep serves the OpenFeature Remote Evaluation Protocol.
func (s service) ofrep() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /ofrep/v1/evaluate/flags/{key}", s.evaluateOne)
	mux.HandleFunc("POST /ofrep/v1/evaluate/flags", s.evaluateAll)
	return mux
}

func reply(w http.ResponseWriter, code int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		code, data = http.StatusInternalServerError, []byte(`{"errorDetails":"the flag cannot be told"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(data)
}

// contextOf reads the context that a client evaluates in.
func contextOf(w http.ResponseWriter, r *http.Request) (map[string]any, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		return nil, err
	}
	if len(body) == 0 {
		return map[string]any{}, nil
	}
	if nesting.Depth(string(body)) > maxDepth {
		return nil, errors.New("the context is nested too deep")
	}
	var q struct {
		Context map[string]any `json:"context"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	return q.Context, nil
}

func (s service) evaluateOne(w http.ResponseWriter, r *http.Request) {
	key := r.PathValue("key")
	c, err := contextOf(w, r)
	if err != nil {
		reply(w, http.StatusBadRequest, ofrep.ContextErrorResponseFrom(key))
		return
	}
	if s.meter.Spend(r.Context(), evalCost) != nil {
		return
	}
	v := evaluator.AnyValue{FlagKey: key}
	err = guarded(func() error {
		v = s.flags.eval.ResolveAsAnyValue(r.Context(), "", key, c)
		return found(v.Reason, v.Error)
	})
	v.Error = err
	s.count(key, v.Variant, v.Reason, v.Error)
	code, body := answer(v)
	reply(w, code, body)
}

// answer is what a client is told of a flag.
func answer(v evaluator.AnyValue) (int, any) {
	switch {
	case v.Error == nil:
		return http.StatusOK, ofrep.SuccessResponseFrom(v)
	case v.Error.Error() == model.FlagDisabledErrorCode:
		return http.StatusNotFound, ofrep.EvaluationError{
			Key: v.FlagKey, ErrorCode: model.FlagDisabledErrorCode, Metadata: v.Metadata,
			ErrorDetails: "flag `" + v.FlagKey + "` is disabled",
		}
	}
	return ofrep.EvaluationErrorResponseFrom(v)
}

func (s service) evaluateAll(w http.ResponseWriter, r *http.Request) {
	c, err := contextOf(w, r)
	if err != nil {
		reply(w, http.StatusBadRequest, ofrep.BulkEvaluationContextError())
		return
	}
	if s.meter.Spend(r.Context(), 10*evalCost) != nil {
		return
	}
	values, metadata, err := s.all(r.Context(), c)
	if err != nil {
		reply(w, http.StatusInternalServerError, ofrep.InternalError{ErrorDetails: "the flags cannot be evaluated"})
		return
	}
	body := ofrep.BulkEvaluationResponse{Flags: []any{}, Metadata: metadata}
	for _, v := range values {
		v.Error = found(v.Reason, v.Error)
		_, one := answer(v)
		body.Flags = append(body.Flags, one)
	}
	reply(w, http.StatusOK, body)
}
