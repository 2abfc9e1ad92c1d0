package social

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"google.golang.org/grpc"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/app/social/socialpb"
)

const (
	shortHost  = "http://short-url/"
	shortLen   = 10
	indexRetry = time.Second
)

var urlShortenService = part{
	"url-shorten-service", 120 * time.Microsecond,
	func(ctx context.Context, s *service.Service, srv *grpc.Server) error {
		client, err := s.Mongo(mongoURI("url-shorten-mongodb"))
		if err != nil {
			return err
		}
		urls := client.Database("url-shorten").Collection("url-shorten")
		if err := createIndex(ctx, s, urls, "shortened_url"); err != nil {
			return err
		}
		u := &urlShorten{s: s, urls: urls, cache: s.Memcached("url-shorten-memcached:11211")}
		s.Recall(u.recall)
		socialpb.RegisterUrlShortenServiceServer(srv, u)
		return nil
	},
}

// createIndex makes a unique index, however long the database takes to allow it.
func createIndex(ctx context.Context, s *service.Service, c *mongo.Collection, key string) error {
	for {
		_, err := c.Indexes().CreateOne(ctx,
			mongo.IndexModel{Keys: bson.D{{Key: key, Value: 1}}, Options: options.Index().SetUnique(true)})
		if err == nil || ctx.Err() != nil {
			return err
		}
		s.Log.Error("Failed to create mongodb index, try again", slog.Any("error", err))
		select {
		case <-time.After(indexRetry):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

type link struct {
	Short    string `bson:"shortened_url"`
	Expanded string `bson:"expanded_url"`
}

type urlShorten struct {
	socialpb.UnimplementedUrlShortenServiceServer
	s     *service.Service
	urls  *mongo.Collection
	cache *memcache.Client
}

// ComposeUrls makes and stores a short form of each URL.
func (u *urlShorten) ComposeUrls(ctx context.Context, req *socialpb.UrlsRequest) (*socialpb.Urls, error) {
	res := &socialpb.Urls{}
	var docs []link
	for _, url := range req.Urls {
		l := link{Short: shortHost + rand.Text()[:shortLen], Expanded: url}
		docs = append(docs, l)
		res.Urls = append(res.Urls, &socialpb.Url{ShortenedUrl: l.Short, ExpandedUrl: l.Expanded})
	}
	if len(docs) == 0 {
		return res, nil
	}
	err := u.s.Store(ctx, "mongodb", "insert url-shorten", func(ctx context.Context) error {
		_, err := u.urls.InsertMany(ctx, docs)
		return err
	})
	return res, err
}

// GetExtendedUrls looks short URLs up; unknown ones are left out.
func (u *urlShorten) GetExtendedUrls(ctx context.Context, req *socialpb.UrlsRequest) (*socialpb.Urls, error) {
	found, err := service.Cached(ctx, u.s, u.cache, req.Urls,
		func(ctx context.Context, short []string) (map[string]string, error) {
			docs, err := service.FindAll[link](ctx, u.s, u.urls, bson.M{"shortened_url": bson.M{"$in": short}})
			if err != nil {
				return nil, err
			}
			m := make(map[string]string, len(docs))
			for _, d := range docs {
				m[d.Short] = d.Expanded
			}
			return m, nil
		})
	if err != nil {
		return nil, err
	}
	res := &socialpb.Urls{}
	for _, short := range req.Urls {
		if expanded, ok := found[short]; ok {
			res.Urls = append(res.Urls, &socialpb.Url{ShortenedUrl: short, ExpandedUrl: expanded})
		}
	}
	return res, nil
}
