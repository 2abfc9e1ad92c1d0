package astronomy

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aiopslab/aiopslab/app/astronomy/demopb"
	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	adCost     = 150 * time.Microsecond
	randomAds  = 2  // for whoever looks at nothing that is advertised
	failedAds  = 10 // with adFailure, one call of so many fails
	burners    = 4  // threads that adHighCpu starts
	burnSlice  = 20 * time.Millisecond
	gcRounds   = 11 // collections for one call, with adManualGc
	gcCost     = 10 * time.Millisecond
	gcGarbage  = 96 << 20 // what the heap is filled with first
	gcBuckets  = 8
	gcFirst    = 0.005
	gcCountFor = "end of major GC"
)

// adMain is the program ad: advertisements.
func adMain(ctx context.Context, env *kit.Env) error {
	a := &adServer{}
	defer a.cool()
	return part{
		name: "ad", port: "AD_PORT", costs: service.Costs{"": adCost},
		start: func(_ context.Context, s *service.Service, f *flags) (func(*grpc.Server), error) {
			a.open(ctx, s, f)
			return func(srv *grpc.Server) { demopb.RegisterAdServiceServer(srv, a) }, nil
		},
	}.main(ctx, env)
}

// open prepares a server whose threads end with the context.
func (a *adServer) open(ctx context.Context, s *service.Service, f *flags) {
	a.ctx, a.s, a.flags = ctx, s, f
	a.requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "app_ads_ad_requests_total", Help: "Calls for advertisements, by whether they were for a category.",
	}, []string{"app_ads_ad_request_type"})
	a.collections = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "jvm_gc_duration_seconds", Help: "How long garbage collections took.",
		Buckets: prometheus.ExponentialBuckets(gcFirst, 2, gcBuckets),
	}, []string{"jvm_gc_action"})
	s.Registerer().MustRegister(a.requests, a.collections)
}

type adServer struct {
	demopb.UnimplementedAdServiceServer
	ctx         context.Context
	s           *service.Service
	flags       *flags
	requests    *prometheus.CounterVec
	collections *prometheus.HistogramVec

	heap sync.Mutex // one collection at a time: the world stops

	mu      sync.Mutex
	cooled  context.CancelFunc // of the busy threads, if there are any
	burning sync.WaitGroup
}

// GetAds picks advertisements.
func (a *adServer) GetAds(ctx context.Context, req *demopb.AdRequest) (*demopb.AdResponse, error) {
	if a.flags.on(ctx, adHighCPU) {
		a.heat(ctx)
	} else {
		a.cool()
	}
	if a.flags.on(ctx, adFailure) && rand.IntN(failedAds) == 0 {
		a.s.Log.WarnContext(ctx, "GetAds Failed with status UNAVAILABLE")
		return nil, status.Error(codes.Unavailable, "UNAVAILABLE")
	}
	if a.flags.on(ctx, adManualGC) {
		if err := a.collect(ctx); err != nil {
			return nil, err
		}
	}
	res := &demopb.AdResponse{}
	for _, key := range req.ContextKeys {
		res.Ads = append(res.Ads, ads[key]...)
	}
	kind := "TARGETED"
	if len(res.Ads) == 0 {
		kind = "NOT_TARGETED"
		for range randomAds {
			res.Ads = append(res.Ads, allAds[rand.IntN(len(allAds))])
		}
	}
	a.requests.WithLabelValues(kind).Inc()
	a.s.Log.InfoContext(ctx, "received ad request", slog.Any("context_words", req.ContextKeys))
	return res, nil
}

// allAds are all advertisements.
var allAds = func() (list []*demopb.Ad) {
	for _, some := range ads {
		list = append(list, some...)
	}
	return list
}()

// heat starts threads that do nothing but use up the processor, unless they run.
func (a *adServer) heat(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cooled != nil {
		return
	}
	a.s.Log.InfoContext(ctx, "High CPU-Load started", slog.Int("threads", burners))
	var hot context.Context
	hot, a.cooled = context.WithCancel(a.ctx)
	for range burners {
		a.burning.Go(func() {
			for a.s.Env.CPU.Use(hot, burnSlice) == nil {
			}
		})
	}
}

// cool ends them.
func (a *adServer) cool() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cooled == nil {
		return
	}
	a.s.Log.Info("High CPU-Load stopped")
	a.cooled()
	a.burning.Wait()
	a.cooled = nil
}

// collect fills the heap and has its garbage collected again and again.
func (a *adServer) collect(ctx context.Context) error {
	a.heap.Lock()
	defer a.heap.Unlock()
	if err := a.s.Env.Memory.Add(gcGarbage); err != nil {
		return err
	}
	defer func() { _ = a.s.Env.Memory.Add(-gcGarbage) }()
	a.s.Log.WarnContext(ctx, "Triggering a manual garbage collection, next one in 10 seconds")
	for range gcRounds {
		begin := time.Now()
		if err := a.s.Env.CPU.Use(ctx, gcCost); err != nil {
			return status.FromContextError(err).Err()
		}
		since(a.collections.WithLabelValues(gcCountFor), begin)
	}
	return nil
}
