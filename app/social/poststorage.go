package social

import (
	"context"
	"strconv"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"google.golang.org/grpc"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/app/social/socialpb"
)

var postStorageService = part{
	"post-storage-service", 150 * time.Microsecond,
	func(ctx context.Context, s *service.Service, srv *grpc.Server) error {
		db, err := s.OpenDatabase(ctx, mongoURI("post-storage-mongodb"), "post", nil)
		if err != nil {
			return err
		}
		posts := db.Collection("post")
		if err := createIndex(ctx, s, posts, "post_id"); err != nil {
			return err
		}
		p := &postStorage{s: s, posts: posts, cache: s.Memcached("post-storage-memcached:11211")}
		s.Recall(p.recall)
		socialpb.RegisterPostStorageServiceServer(srv, p)
		return nil
	},
}

// post is a post as the database and the cache keep it.
type post struct {
	PostID    int64     `bson:"post_id"`
	Creator   creator   `bson:"creator"`
	Text      string    `bson:"text"`
	Mentions  []creator `bson:"user_mentions"`
	Media     []medium  `bson:"media"`
	URLs      []link    `bson:"urls"`
	Timestamp int64     `bson:"timestamp"`
	Type      int32     `bson:"post_type"`
}

type creator struct {
	UserID   int64  `bson:"user_id"`
	Username string `bson:"username"`
}

type medium struct {
	ID   int64  `bson:"media_id"`
	Type string `bson:"media_type"`
}

func newPost(p *socialpb.Post) post {
	d := post{
		PostID: p.PostId, Creator: creator{p.Creator.GetUserId(), p.Creator.GetUsername()}, Text: p.Text,
		Timestamp: p.Timestamp, Type: p.PostType,
	}
	for _, m := range p.UserMentions {
		d.Mentions = append(d.Mentions, creator{m.UserId, m.Username})
	}
	for _, m := range p.Media {
		d.Media = append(d.Media, medium{m.MediaId, m.MediaType})
	}
	for _, u := range p.Urls {
		d.URLs = append(d.URLs, link{u.ShortenedUrl, u.ExpandedUrl})
	}
	return d
}

func (d post) message() *socialpb.Post {
	p := &socialpb.Post{
		PostId: d.PostID, Creator: &socialpb.Creator{UserId: d.Creator.UserID, Username: d.Creator.Username},
		Text: d.Text, Timestamp: d.Timestamp, PostType: d.Type,
	}
	for _, m := range d.Mentions {
		p.UserMentions = append(p.UserMentions, &socialpb.UserMention{UserId: m.UserID, Username: m.Username})
	}
	for _, m := range d.Media {
		p.Media = append(p.Media, &socialpb.Media{MediaId: m.ID, MediaType: m.Type})
	}
	for _, u := range d.URLs {
		p.Urls = append(p.Urls, &socialpb.Url{ShortenedUrl: u.Short, ExpandedUrl: u.Expanded})
	}
	return p
}

type postStorage struct {
	socialpb.UnimplementedPostStorageServiceServer
	s     *service.Service
	posts *mongo.Collection
	cache *memcache.Client
}

func (p *postStorage) StorePost(ctx context.Context, req *socialpb.Post) (*socialpb.StoreResult, error) {
	err := p.s.Store(ctx, "mongodb", "insert post", func(ctx context.Context) error {
		_, err := p.posts.InsertOne(ctx, newPost(req))
		return err
	})
	return &socialpb.StoreResult{}, err
}

// ReadPosts returns posts in the order they were asked for; unknown ones are left out.
func (p *postStorage) ReadPosts(ctx context.Context, req *socialpb.PostIds) (*socialpb.Posts, error) {
	res := &socialpb.Posts{}
	if len(req.PostIds) == 0 {
		return res, nil
	}
	keys := make([]string, len(req.PostIds))
	for i, id := range req.PostIds {
		keys[i] = strconv.FormatInt(id, 10)
	}
	found, err := service.Cached(ctx, p.s, p.cache, keys, p.load)
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		if d, ok := found[k]; ok {
			res.Posts = append(res.Posts, d.message())
		}
	}
	return res, nil
}

func (p *postStorage) load(ctx context.Context, keys []string) (map[string]post, error) {
	ids := make([]int64, len(keys))
	for i, k := range keys {
		var err error
		if ids[i], err = strconv.ParseInt(k, 10, 64); err != nil {
			return nil, err
		}
	}
	docs, err := service.FindAll[post](ctx, p.s, p.posts, bson.M{"post_id": bson.M{"$in": ids}})
	if err != nil {
		return nil, err
	}
	m := make(map[string]post, len(docs))
	for _, d := range docs {
		m[strconv.FormatInt(d.PostID, 10)] = d
	}
	return m, nil
}
