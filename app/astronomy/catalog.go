package astronomy

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"github.com/aiopslab/aiopslab/app/astronomy/demopb"
	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

const catalogCost = 150 * time.Microsecond

// catalogMain is the program product-catalog: what there is to buy, from PostgreSQL.
func catalogMain(ctx context.Context, env *kit.Env) error {
	var db *database
	defer func() {
		if db != nil {
			db.close()
		}
	}()
	return part{
		name: "product-catalog", port: "PRODUCT_CATALOG_PORT", costs: service.Costs{"": catalogCost},
		start: func(ctx context.Context, s *service.Service, f *flags) (func(*grpc.Server), error) {
			var err error
			if db, err = openDatabase(ctx, s); err != nil {
				return nil, err
			}
			return func(srv *grpc.Server) {
				demopb.RegisterProductCatalogServiceServer(srv, &catalog{s: s, flags: f, db: db})
				reflection.Register(srv)
			}, nil
		},
	}.main(ctx, env)
}

type catalog struct {
	demopb.UnimplementedProductCatalogServiceServer
	s     *service.Service
	flags *flags
	db    *database
}

// productColumns is what is read of a product.
const productColumns = "SELECT id, name, description, picture, price_currency_code, price_units, price_nanos, " +
	"categories FROM catalog.products"

// ListProducts returns all products.
func (c *catalog) ListProducts(ctx context.Context, _ *demopb.Empty) (*demopb.ListProductsResponse, error) {
	list, err := c.find(ctx, "SELECT catalog.products", productColumns+" ORDER BY id")
	if err != nil {
		return nil, status.Errorf(codes.Internal, "failed to list products: %v", err)
	}
	c.s.Log.DebugContext(ctx, "Listed products", slog.Int("count", len(list)))
	return &demopb.ListProductsResponse{Products: list}, nil
}

// GetProduct returns a product. With productCatalogFailure, one of them cannot be had.
func (c *catalog) GetProduct(ctx context.Context, req *demopb.GetProductRequest) (*demopb.Product, error) {
	if req.Id == troubled && c.flags.on(ctx, productCatalogFailure) {
		return nil, status.Error(codes.Internal, "Error: Product Catalog Fail Feature Flag Enabled")
	}
	list, err := c.find(ctx, "SELECT catalog.products", productColumns+" WHERE id = $1", req.Id)
	if err != nil {
		return nil, status.Errorf(codes.NotFound, "Product Not Found: %s: %v", req.Id, err)
	}
	if len(list) == 0 {
		return nil, status.Errorf(codes.NotFound, "Product Not Found: %s", req.Id)
	}
	return list[0], nil
}

// SearchProducts returns the products in whose name or description a text is.
func (c *catalog) SearchProducts(ctx context.Context,
	req *demopb.SearchProductsRequest,
) (*demopb.SearchProductsResponse, error) {
	list, err := c.find(ctx, "SELECT catalog.products", productColumns+
		" WHERE LOWER(name) LIKE $1 OR LOWER(description) LIKE $1 ORDER BY id", "%"+strings.ToLower(req.Query)+"%")
	if err != nil {
		return nil, status.Errorf(codes.Internal, "failed to search products: %v", err)
	}
	return &demopb.SearchProductsResponse{Results: list}, nil
}

// find reads products.
func (c *catalog) find(ctx context.Context, operation, sql string, args ...any) (list []*demopb.Product, err error) {
	err = c.db.query(ctx, operation, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, scanProduct)
		return err
	})
	if err != nil {
		c.s.Log.ErrorContext(ctx, "database query failed", slog.Any("error", err))
	}
	return list, err
}

// scanProduct reads a row.
func scanProduct(row pgx.CollectableRow) (*demopb.Product, error) {
	p := &demopb.Product{PriceUsd: &demopb.Money{}}
	var categories string
	err := row.Scan(&p.Id, &p.Name, &p.Description, &p.Picture, &p.PriceUsd.CurrencyCode, &p.PriceUsd.Units,
		&p.PriceUsd.Nanos, &categories)
	if err != nil {
		return nil, fmt.Errorf("read a product: %w", err)
	}
	if categories != "" {
		p.Categories = strings.Split(categories, ",")
	}
	return p, nil
}
