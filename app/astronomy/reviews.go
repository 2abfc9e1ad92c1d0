package astronomy

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aiopslab/aiopslab/app/astronomy/demopb"
	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	reviewsCost = 150 * time.Microsecond
	// maxQuestion is how long a question to the assistant may be.
	maxQuestion = 2000
)

// reviewsMain is the program product-reviews: what buyers say of products, from PostgreSQL, and an assistant that sums
// it up.
func reviewsMain(ctx context.Context, env *kit.Env) error {
	var db *database
	defer func() {
		if db != nil {
			db.close()
		}
	}()
	return part{
		name: "product-reviews", port: "PRODUCT_REVIEWS_PORT", costs: service.Costs{"": reviewsCost},
		start: func(ctx context.Context, s *service.Service, f *flags) (func(*grpc.Server), error) {
			r := &reviews{
				s: s, read: prometheus.NewCounterVec(prometheus.CounterOpts{
					Name: "app_product_review_counter_total", Help: "Reviews that were read, by product.",
				}, []string{"product_id"}),
			}
			s.Registerer().MustRegister(r.read)
			var err error
			if r.assistant, err = newAssistant(s, f, r.find); err != nil {
				return nil, err
			}
			if db, err = openDatabase(ctx, s); err != nil {
				return nil, err
			}
			r.db = db
			return func(srv *grpc.Server) { demopb.RegisterProductReviewServiceServer(srv, r) }, nil
		},
	}.main(ctx, env)
}

type reviews struct {
	demopb.UnimplementedProductReviewServiceServer
	s         *service.Service
	db        *database
	assistant *assistant
	read      *prometheus.CounterVec
}

// AskProductAIAssistant has a language model answer a question about a product.
func (v *reviews) AskProductAIAssistant(ctx context.Context,
	req *demopb.AskProductAIAssistantRequest,
) (*demopb.AskProductAIAssistantResponse, error) {
	if len(req.Question) > maxQuestion {
		return nil, status.Errorf(codes.InvalidArgument, "a question may have %d bytes", maxQuestion)
	}
	return &demopb.AskProductAIAssistantResponse{Response: v.assistant.answer(ctx, req.ProductId, req.Question)}, nil
}

// GetProductReviews returns what buyers say of a product.
func (v *reviews) GetProductReviews(ctx context.Context,
	req *demopb.GetProductReviewsRequest,
) (*demopb.GetProductReviewsResponse, error) {
	list, err := v.find(ctx, req.ProductId)
	if err != nil {
		return nil, err
	}
	return &demopb.GetProductReviewsResponse{ProductReviews: list}, nil
}

// GetAverageProductReviewScore returns what buyers give a product on average, of 5.
func (v *reviews) GetAverageProductReviewScore(ctx context.Context,
	req *demopb.GetAverageProductReviewScoreRequest,
) (*demopb.GetAverageProductReviewScoreResponse, error) {
	list, err := v.find(ctx, req.ProductId)
	if err != nil {
		return nil, err
	}
	return &demopb.GetAverageProductReviewScoreResponse{AverageScore: averageScore(list)}, nil
}

// find reads the reviews of a product. What has none is no product.
func (v *reviews) find(ctx context.Context, product string) (list []*demopb.ProductReview, err error) {
	err = v.db.query(ctx, "SELECT reviews.productreviews", func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, "SELECT username, description, score FROM reviews.productreviews "+
			"WHERE product_id = $1 ORDER BY id", product)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (*demopb.ProductReview, error) {
			var r demopb.ProductReview
			var score float64
			err := row.Scan(&r.Username, &r.Description, &score)
			r.Score = strconv.FormatFloat(score, 'f', 1, 64)
			return &r, err
		})
		return err
	})
	switch {
	case err != nil:
		v.s.Log.ErrorContext(ctx, "database query failed", slog.Any("error", err))
		return nil, status.Errorf(codes.Internal, "failed to read reviews: %v", err)
	case len(list) == 0:
		return nil, status.Errorf(codes.NotFound, "no reviews of product %.40q", product)
	}
	v.read.WithLabelValues(product).Add(float64(len(list)))
	return list, nil
}

// averageScore is the mean of the scores, with one digit after the point.
func averageScore(list []*demopb.ProductReview) string {
	sum := 0.0
	for _, r := range list {
		score, _ := strconv.ParseFloat(r.Score, 64) // It was formatted by us.
		sum += score
	}
	return fmt.Sprintf("%.1f", sum/float64(len(list)))
}

// reviewJSON is a review as pages and the model see it.
type reviewJSON struct {
	Username    string `json:"username"`
	Description string `json:"description"`
	Score       string `json:"score"`
}

func reviewOf(r *demopb.ProductReview) reviewJSON {
	return reviewJSON{r.Username, r.Description, r.Score}
}

func (f *frontend) productReviews(r *http.Request) (any, error) {
	found, err := f.reviews.GetProductReviews(r.Context(),
		&demopb.GetProductReviewsRequest{ProductId: r.PathValue("id")})
	if err != nil {
		return nil, err
	}
	list := make([]reviewJSON, len(found.ProductReviews))
	for i, one := range found.ProductReviews {
		list[i] = reviewOf(one)
	}
	return list, nil
}

func (f *frontend) averageScore(r *http.Request) (any, error) {
	found, err := f.reviews.GetAverageProductReviewScore(r.Context(),
		&demopb.GetAverageProductReviewScoreRequest{ProductId: r.PathValue("id")})
	return found.GetAverageScore(), err
}

func (f *frontend) askAssistant(r *http.Request) (any, error) {
	var q struct{ Question string }
	if json.NewDecoder(r.Body).Decode(&q) != nil || q.Question == "" || len(q.Question) > maxQuestion {
		return nil, badRequest(fmt.Sprintf("want JSON with a question of up to %d bytes", maxQuestion))
	}
	found, err := f.reviews.AskProductAIAssistant(r.Context(),
		&demopb.AskProductAIAssistantRequest{ProductId: r.PathValue("id"), Question: q.Question})
	return found.GetResponse(), err
}
