package astronomy

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/aiopslab/aiopslab/app/astronomy/demopb"
	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	recommendationCost = 200 * time.Microsecond
	maxRecommendations = 5
	// cachedBytes is what an entry of the cache takes.
	cachedBytes = 64
)

// recommendationPart is the service recommendation: what else somebody may like.
var recommendationPart = part{
	name: "recommendation", port: "RECOMMENDATION_PORT", costs: service.Costs{"": recommendationCost},
	start: func(_ context.Context, s *service.Service, f *flags) (func(*grpc.Server), error) {
		conn, err := dial(s, "PRODUCT_CATALOG_ADDR")
		if err != nil {
			return nil, err
		}
		r := &recommendation{
			s: s, flags: f, catalog: demopb.NewProductCatalogServiceClient(conn),
			cache: &leakyCache{memory: s.Env.Memory},
			given: prometheus.NewCounter(prometheus.CounterOpts{
				Name: "app_recommendations_counter_total", Help: "Products that were recommended.",
			}),
		}
		s.Registerer().MustRegister(r.given)
		return func(srv *grpc.Server) { demopb.RegisterRecommendationServiceServer(srv, r) }, nil
	},
}

type recommendation struct {
	demopb.UnimplementedRecommendationServiceServer
	s       *service.Service
	flags   *flags
	catalog demopb.ProductCatalogServiceClient
	cache   *leakyCache
	given   prometheus.Counter
}

// ListRecommendations draws from the products that somebody does not look at.
func (r *recommendation) ListRecommendations(ctx context.Context,
	req *demopb.ListRecommendationsRequest,
) (*demopb.ListRecommendationsResponse, error) {
	ids, err := r.products(ctx)
	if err != nil {
		return nil, fmt.Errorf("list products: %w", err)
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(req.ProductIds, id) })
	rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	ids = ids[:min(len(ids), maxRecommendations)]
	r.given.Add(float64(len(ids)))
	r.s.Log.InfoContext(ctx, "Receive ListRecommendations", slog.Any("product_ids", ids))
	return &demopb.ListRecommendationsResponse{ProductIds: ids}, nil
}

// products are the ids of all products. With recommendationCacheFailure they come from a cache that is filled anew
// half of the time, and never emptied.
func (r *recommendation) products(ctx context.Context) ([]string, error) {
	span := trace.SpanFromContext(ctx)
	leaking := r.flags.on(ctx, recommendationCacheFailure)
	span.SetAttributes(attribute.Bool("app.recommendation.cache_enabled", leaking))
	hit := leaking && r.cache.filled() && rand.IntN(2) == 0
	if leaking {
		span.SetAttributes(attribute.Bool("app.cache_hit", hit))
	}
	if hit {
		ids, n := r.cache.get()
		span.SetAttributes(attribute.Int64("app.products.count", n))
		return ids, nil
	}
	list, err := r.catalog.ListProducts(ctx, &demopb.Empty{})
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(list.Products))
	for i, p := range list.Products {
		ids[i] = p.Id
	}
	n := int64(len(ids))
	if leaking {
		r.s.Log.InfoContext(ctx, "get_product_list: cache miss")
		if n, err = r.cache.put(ids); err != nil {
			return nil, err
		}
	}
	span.SetAttributes(attribute.Int64("app.products.count", n))
	return ids, nil
}

// leakyCache holds every list that it was ever given, and grows by a quarter with each. What it holds is stated to the
// ledger of memory; it need not be kept to be held.
type leakyCache struct {
	memory kit.Memory

	mu  sync.Mutex
	ids []string
	n   int64 // entries
}

func (c *leakyCache) filled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n > 0
}

// get returns what products there are, and how many entries say so.
func (c *leakyCache) get() ([]string, int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.ids), c.n
}

// put appends a list.
func (c *leakyCache) put(ids []string) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	more := int64(len(ids))
	more += (c.n + more) / 4
	if err := c.memory.Add(more * cachedBytes); err != nil {
		return c.n, err
	}
	c.ids, c.n = slices.Clone(ids), c.n+more
	return c.n, nil
}
