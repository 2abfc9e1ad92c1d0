package astronomy

import (
	"cmp"
	"context"
	"sync"
	"time"

	"buf.build/gen/go/open-feature/flagd/grpc/go/flagd/evaluation/v1/evaluationv1grpc"
	evaluationv1 "buf.build/gen/go/open-feature/flagd/protocolbuffers/go/flagd/evaluation/v1"
	"github.com/open-feature/go-sdk/openfeature"
	"github.com/open-feature/go-sdk/openfeature/isolated"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aiopslab/aiopslab/app/service"
)

// The feature flags. Each is off unless somebody switches it on in flagd, and makes a service misbehave.
const (
	adFailure                  = "adFailure"
	adHighCPU                  = "adHighCpu"
	adManualGC                 = "adManualGc"
	cartFailure                = "cartFailure"
	emailMemoryLeak            = "emailMemoryLeak"
	failedReadinessProbe       = "failedReadinessProbe"
	imageSlowLoad              = "imageSlowLoad" // asked for by browsers
	kafkaQueueProblems         = "kafkaQueueProblems"
	llmInaccurateResponse      = "llmInaccurateResponse"
	llmRateLimitError          = "llmRateLimitError"
	loadGeneratorFloodHomepage = "loadGeneratorFloodHomepage"
	paymentFailure             = "paymentFailure"
	paymentUnreachable         = "paymentUnreachable"
	productCatalogFailure      = "productCatalogFailure"
	recommendationCacheFailure = "recommendationCacheFailure"
)

const (
	flagTimeout = 500 * time.Millisecond // of one question
	flagRetry   = time.Second            // until the stream of changes is asked for again
)

// flags are the feature flags as a service sees them.
type flags struct {
	api    *openfeature.EvaluationAPI
	client *openfeature.Client
	stop   func()
}

// openFlags connects to flagd, at FLAGD_HOST and FLAGD_PORT. It does not wait for it: while flagd is away all flags are
// off. Without FLAGD_HOST they always are.
func openFlags(ctx context.Context, s *service.Service) (*flags, error) {
	f := &flags{api: isolated.NewAPI(), stop: func() {}}
	var provider openfeature.FeatureProvider = openfeature.NoopProvider{}
	if host := s.Env.Getenv("FLAGD_HOST"); host != "" {
		conn, err := s.DialPlain("passthrough:///" + host + ":" + cmp.Or(s.Env.Getenv("FLAGD_PORT"), "8013"))
		if err != nil {
			return nil, err
		}
		p := &flagd{client: evaluationv1grpc.NewServiceClient(conn)}
		watching, cancel := context.WithCancel(ctx)
		var done sync.WaitGroup
		done.Go(func() { p.watch(watching) })
		f.stop = func() {
			cancel()
			done.Wait()
		}
		provider = p
	}
	if err := f.api.SetProviderAndWait(ctx, provider); err != nil {
		f.stop()
		return nil, err
	}
	f.client = f.api.NewClient()
	return f, nil
}

// close ends the connection's stream.
func (f *flags) close() {
	f.stop()
	_ = f.api.Shutdown(context.Background()) // The provider has nothing to end.
}

// on reports whether a flag is on.
func (f *flags) on(ctx context.Context, name string) bool {
	return f.client.Boolean(ctx, name, false, openfeature.EvaluationContext{})
}

// number is the value of a flag that is a number; 0 is off.
func (f *flags) number(ctx context.Context, name string) float64 {
	return f.client.Float(ctx, name, 0, openfeature.EvaluationContext{})
}

// flagd asks flagd. What does not depend on who asks is remembered until flagd says that flags have changed, or the
// stream on which it would say so is lost.
type flagd struct {
	openfeature.NoopProvider // for kinds of flags that there are none of
	client                   evaluationv1grpc.ServiceClient

	mu    sync.Mutex
	known map[string]any // nil without a stream
}

// Metadata implements [openfeature.FeatureProvider].
func (*flagd) Metadata() openfeature.Metadata { return openfeature.Metadata{Name: "flagd"} }

// watch listens to changes until the context ends.
func (p *flagd) watch(ctx context.Context) {
	for ctx.Err() == nil {
		if stream, err := p.client.EventStream(ctx, &evaluationv1.EventStreamRequest{}); err == nil {
			for {
				event, err := stream.Recv()
				if err != nil {
					break
				}
				if t := event.GetType(); t == "provider_ready" || t == "configuration_change" {
					p.forget(map[string]any{})
				}
			}
		}
		p.forget(nil)
		select {
		case <-time.After(flagRetry):
		case <-ctx.Done():
		}
	}
}

func (p *flagd) forget(known map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = known
}

// BooleanEvaluation implements [openfeature.FeatureProvider].
func (p *flagd) BooleanEvaluation(ctx context.Context, flag string, otherwise bool,
	_ openfeature.FlattenedContext,
) openfeature.BoolResolutionDetail {
	v, detail := resolve(ctx, p, flag, otherwise, func(ctx context.Context) (answer[bool], error) {
		return p.client.ResolveBoolean(ctx, &evaluationv1.ResolveBooleanRequest{FlagKey: flag})
	})
	return openfeature.BoolResolutionDetail{Value: v, ProviderResolutionDetail: detail}
}

// FloatEvaluation implements [openfeature.FeatureProvider].
func (p *flagd) FloatEvaluation(ctx context.Context, flag string, otherwise float64,
	_ openfeature.FlattenedContext,
) openfeature.FloatResolutionDetail {
	v, detail := resolve(ctx, p, flag, otherwise, func(ctx context.Context) (answer[float64], error) {
		return p.client.ResolveFloat(ctx, &evaluationv1.ResolveFloatRequest{FlagKey: flag})
	})
	return openfeature.FloatResolutionDetail{Value: v, ProviderResolutionDetail: detail}
}

// answer is what flagd says of a flag.
type answer[T any] interface {
	GetValue() T
	GetReason() string
	GetVariant() string
}

// resolve asks for a flag, unless the answer is known.
func resolve[T any](ctx context.Context, p *flagd, flag string, otherwise T,
	ask func(context.Context) (answer[T], error),
) (T, openfeature.ProviderResolutionDetail) {
	p.mu.Lock()
	known := p.known
	v, ok := known[flag].(T)
	p.mu.Unlock()
	if ok {
		return v, openfeature.ProviderResolutionDetail{Reason: openfeature.CachedReason}
	}
	ctx, cancel := context.WithTimeout(ctx, flagTimeout)
	defer cancel()
	a, err := ask(ctx)
	if err != nil {
		return otherwise, openfeature.ProviderResolutionDetail{
			Reason: openfeature.ErrorReason, ResolutionError: flagError(err),
		}
	}
	if a.GetReason() == string(openfeature.StaticReason) {
		p.mu.Lock()
		if known != nil {
			known[flag] = a.GetValue() // If flags have changed meanwhile, this map is nobody's any more.
		}
		p.mu.Unlock()
	}
	return a.GetValue(), openfeature.ProviderResolutionDetail{
		Reason: openfeature.Reason(a.GetReason()), Variant: a.GetVariant(),
	}
}

// flagError is an error in OpenFeature's words.
func flagError(err error) openfeature.ResolutionError {
	switch status.Code(err) {
	case codes.NotFound:
		return openfeature.NewFlagNotFoundResolutionError(err.Error())
	case codes.InvalidArgument:
		return openfeature.NewTypeMismatchResolutionError(err.Error())
	}
	return openfeature.NewGeneralResolutionError(err.Error())
}
