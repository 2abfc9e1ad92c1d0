package flagd

import (
	"context"
	"errors"
	"time"

	evaluation "buf.build/gen/go/open-feature/flagd/protocolbuffers/go/flagd/evaluation/v1"
	"github.com/open-feature/flagd/core/pkg/evaluator"
	"github.com/open-feature/flagd/core/pkg/model"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	// maxRequest is the size of a request: a key and a context.
	maxRequest = 16 << 10
	// evalCost is what an evaluation costs.
	evalCost = 60 * time.Microsecond
	// aliveEvery is how often a stream is told that it is not forgotten.
	aliveEvery = 20 * time.Second
)

// service answers evaluations. It is flagd.evaluation.v1.Service, and schema.v1.Service, which has the same messages.
type service struct{ *daemon }

// found makes an error of a result that is none: the daemon knows nothing of a default that only the client has.
func found(reason string, err error) error {
	switch {
	case err != nil:
		return err
	case reason == model.DisabledReason:
		return errors.New(model.FlagDisabledErrorCode)
	case reason == model.FallbackReason:
		return errors.New(model.FlagNotFoundErrorCode)
	}
	return nil
}

// codeOf says what an error of the evaluation is to a client.
var codeOf = map[string]codes.Code{
	model.FlagNotFoundErrorCode: codes.NotFound,
	model.FlagDisabledErrorCode: codes.NotFound,
	model.TypeMismatchErrorCode: codes.InvalidArgument,
	model.ParseErrorCode:        codes.DataLoss,
	model.GeneralErrorCode:      codes.Unknown,
}

// told is an error as clients get it.
func told(err error) error {
	code, ok := codeOf[err.Error()]
	if !ok {
		return status.Error(codes.Internal, "the flag cannot be evaluated")
	}
	return status.Error(code, model.GetErrorMessage(err.Error()))
}

// guarded runs an evaluation. A rule that the evaluator cannot take must not end the process.
func guarded(eval func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New(model.GeneralErrorCode)
		}
	}()
	return eval()
}

// result is what an evaluation gives besides the value.
type result struct {
	variant, reason string
	metadata        *structpb.Struct
}

// resolve evaluates a flag by one of the methods of the evaluator.
func resolve[T any](
	ctx context.Context, s service, key string, c *structpb.Struct,
	eval func(context.Context, string, string, map[string]any) (T, string, string, model.Metadata, error),
) (value T, r result, err error) {
	if err := s.meter.Spend(ctx, evalCost); err != nil {
		return value, r, status.FromContextError(err).Err()
	}
	var variant, reason string
	var metadata model.Metadata
	err = guarded(func() (err error) {
		value, variant, reason, metadata, err = eval(ctx, "", key, c.AsMap())
		return found(reason, err)
	})
	s.count(key, variant, reason, err)
	if err != nil {
		var zero T
		return zero, r, told(err)
	}
	m, err := structpb.NewStruct(metadata)
	if err != nil {
		return value, r, status.Error(codes.Internal, "the metadata of the flag cannot be told")
	}
	return value, result{variant, reason, m}, nil
}

// ResolveBoolean evaluates a flag that is true or false.
func (s service) ResolveBoolean(ctx context.Context, q *evaluation.ResolveBooleanRequest) (
	*evaluation.ResolveBooleanResponse, error,
) {
	v, r, err := resolve(ctx, s, q.GetFlagKey(), q.GetContext(), s.flags.eval.ResolveBooleanValue)
	if err != nil {
		return nil, err
	}
	return &evaluation.ResolveBooleanResponse{Value: v, Reason: r.reason, Variant: r.variant, Metadata: r.metadata}, nil
}

// ResolveString evaluates a flag that is a text.
func (s service) ResolveString(ctx context.Context, q *evaluation.ResolveStringRequest) (
	*evaluation.ResolveStringResponse, error,
) {
	v, r, err := resolve(ctx, s, q.GetFlagKey(), q.GetContext(), s.flags.eval.ResolveStringValue)
	if err != nil {
		return nil, err
	}
	return &evaluation.ResolveStringResponse{Value: v, Reason: r.reason, Variant: r.variant, Metadata: r.metadata}, nil
}

// ResolveFloat evaluates a flag that is a number.
func (s service) ResolveFloat(ctx context.Context, q *evaluation.ResolveFloatRequest) (
	*evaluation.ResolveFloatResponse, error,
) {
	v, r, err := resolve(ctx, s, q.GetFlagKey(), q.GetContext(), s.flags.eval.ResolveFloatValue)
	if err != nil {
		return nil, err
	}
	return &evaluation.ResolveFloatResponse{Value: v, Reason: r.reason, Variant: r.variant, Metadata: r.metadata}, nil
}

// ResolveInt evaluates a flag that is a number, and drops its fraction.
func (s service) ResolveInt(ctx context.Context, q *evaluation.ResolveIntRequest) (
	*evaluation.ResolveIntResponse, error,
) {
	v, r, err := resolve(ctx, s, q.GetFlagKey(), q.GetContext(), s.flags.eval.ResolveIntValue)
	if err != nil {
		return nil, err
	}
	return &evaluation.ResolveIntResponse{Value: v, Reason: r.reason, Variant: r.variant, Metadata: r.metadata}, nil
}

// ResolveObject evaluates a flag that is an object.
func (s service) ResolveObject(ctx context.Context, q *evaluation.ResolveObjectRequest) (
	*evaluation.ResolveObjectResponse, error,
) {
	v, r, err := resolve(ctx, s, q.GetFlagKey(), q.GetContext(), s.flags.eval.ResolveObjectValue)
	if err != nil {
		return nil, err
	}
	value, err := structpb.NewStruct(v)
	if err != nil {
		return nil, status.Error(codes.Internal, "the flag cannot be told")
	}
	return &evaluation.ResolveObjectResponse{
		Value: value, Reason: r.reason, Variant: r.variant, Metadata: r.metadata,
	}, nil
}

// all evaluates all flags.
func (s service) all(ctx context.Context, c map[string]any) (
	values []evaluator.AnyValue, metadata model.Metadata, err error,
) {
	err = guarded(func() (err error) {
		values, metadata, err = s.flags.eval.ResolveAllValues(ctx, "", c)
		return err
	})
	return values, metadata, err
}

// ResolveAll evaluates all flags, and leaves out those that cannot be.
func (s service) ResolveAll(ctx context.Context, q *evaluation.ResolveAllRequest) (
	*evaluation.ResolveAllResponse, error,
) {
	if err := s.meter.Spend(ctx, 10*evalCost); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	values, metadata, err := s.all(ctx, q.GetContext().AsMap())
	if err != nil {
		return nil, status.Error(codes.Internal, "the flags cannot be evaluated")
	}
	resp := &evaluation.ResolveAllResponse{Flags: map[string]*evaluation.AnyFlag{}}
	if resp.Metadata, err = structpb.NewStruct(metadata); err != nil {
		return nil, status.Error(codes.Internal, "the metadata of the flags cannot be told")
	}
	for _, v := range values {
		if found(v.Reason, v.Error) != nil {
			continue
		}
		one := &evaluation.AnyFlag{Reason: v.Reason, Variant: v.Variant}
		switch value := v.Value.(type) {
		case bool:
			one.Value = &evaluation.AnyFlag_BoolValue{BoolValue: value}
		case string:
			one.Value = &evaluation.AnyFlag_StringValue{StringValue: value}
		case float64:
			one.Value = &evaluation.AnyFlag_DoubleValue{DoubleValue: value}
		case map[string]any:
			object, err := structpb.NewStruct(value)
			if err != nil {
				continue
			}
			one.Value = &evaluation.AnyFlag_ObjectValue{ObjectValue: object}
		}
		resp.Flags[v.FlagKey] = one
	}
	return resp, nil
}

// EventStream tells a client of changes until it goes, or the daemon does.
func (s service) EventStream(
	_ *evaluation.EventStreamRequest, out grpc.ServerStreamingServer[evaluation.EventStreamResponse],
) error {
	return s.stream(out.Context(), out.Send)
}

// stream sends events to whoever listens.
func (s service) stream(ctx context.Context, send func(*evaluation.EventStreamResponse) error) error {
	events, stop, err := s.flags.listen()
	if err != nil {
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	defer stop()
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	for {
		var e event
		select {
		case <-ctx.Done():
			return nil
		case <-s.done:
			return send(&evaluation.EventStreamResponse{Type: "provider_shutdown"})
		case e = <-events:
		case <-alive.C:
			e = event{kind: "keep_alive"}
		}
		data, err := structpb.NewStruct(e.data)
		if err != nil {
			return status.Error(codes.Internal, "an event cannot be told")
		}
		if err := send(&evaluation.EventStreamResponse{Type: e.kind, Data: data}); err != nil {
			return err
		}
	}
}
