package social

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"google.golang.org/grpc"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/app/social/socialpb"
)

var socialGraphService = part{
	"social-graph-service", 150 * time.Microsecond,
	func(ctx context.Context, s *service.Service, srv *grpc.Server) error {
		db, err := s.OpenDatabase(ctx, mongoURI("social-graph-mongodb"), "social-graph",
			map[string][]any{"social-graph": service.Documents(graph())})
		if err != nil {
			return err
		}
		users := db.Collection("social-graph")
		if err := createIndex(ctx, s, users, "user_id"); err != nil {
			return err
		}
		conn, err := dial(s, "user-service")
		if err != nil {
			return err
		}
		g := &socialGraph{
			s: s, users: users, cache: s.Redis("social-graph-redis:6379"), names: socialpb.NewUserServiceClient(conn),
		}
		s.Recall(g.recall)
		socialpb.RegisterSocialGraphServiceServer(srv, g)
		return nil
	},
}

type vertex struct {
	UserID    int64   `bson:"user_id"`
	Followers []int64 `bson:"followers"`
	Followees []int64 `bson:"followees"`
}

type socialGraph struct {
	socialpb.UnimplementedSocialGraphServiceServer
	s     *service.Service
	users *mongo.Collection
	cache *service.Redis
	names socialpb.UserServiceClient
}

// Sides of the graph: fields of a vertex and suffixes of cache keys.
const (
	followers = "followers"
	followees = "followees"
)

func (g *socialGraph) GetFollowers(ctx context.Context, req *socialpb.UserId) (*socialpb.UserIds, error) {
	return g.neighbours(ctx, req.UserId, followers)
}

func (g *socialGraph) GetFollowees(ctx context.Context, req *socialpb.UserId) (*socialpb.UserIds, error) {
	return g.neighbours(ctx, req.UserId, followees)
}

// neighbours reads one side of a user from the cache, or from the database into the cache.
func (g *socialGraph) neighbours(ctx context.Context, id int64, side string) (*socialpb.UserIds, error) {
	key := graphKey(id, side)
	var members []string
	err := g.s.Store(ctx, "redis", "zrange", func(ctx context.Context) (err error) {
		members, err = g.cache.Strings(ctx, "ZRANGE", key, 0, -1)
		return err
	})
	if err == nil && len(members) > 0 {
		res := &socialpb.UserIds{UserIds: make([]int64, len(members))}
		for i, m := range members {
			if res.UserIds[i], err = strconv.ParseInt(m, 10, 64); err != nil {
				return nil, fmt.Errorf("redis has %q in %s: %w", m, key, err)
			}
		}
		return res, nil
	}
	if err != nil {
		g.s.Log.WarnContext(ctx, "Failed to read from social graph redis", "key", key, "error", err)
	}
	var v vertex
	err = g.s.Store(ctx, "mongodb", "findOne social-graph", func(ctx context.Context) error {
		return g.users.FindOne(ctx, bson.M{"user_id": id}).Decode(&v)
	})
	if err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
		return nil, err
	}
	ids := v.Followers
	if side == followees {
		ids = v.Followees
	}
	if len(ids) > 0 {
		add := service.Command{"ZADD", key}
		for i, n := range ids {
			add = append(add, i, n)
		}
		if err := g.s.Store(ctx, "redis", "zadd", func(ctx context.Context) error {
			_, err := g.cache.Do(ctx, add)
			return err
		}); err != nil {
			g.s.Log.WarnContext(ctx, "Failed to write to social graph redis", "key", key, "error", err)
		}
	}
	return &socialpb.UserIds{UserIds: ids}, nil
}

func (g *socialGraph) Follow(ctx context.Context, req *socialpb.FollowRequest) (*socialpb.FollowResult, error) {
	return g.change(ctx, req, "$addToSet")
}

func (g *socialGraph) Unfollow(ctx context.Context, req *socialpb.FollowRequest) (*socialpb.FollowResult, error) {
	return g.change(ctx, req, "$pull")
}

// change updates both ends of an edge in the database and drops them from the cache.
func (g *socialGraph) change(ctx context.Context, req *socialpb.FollowRequest,
	operator string,
) (*socialpb.FollowResult, error) {
	for name, id := range map[string]*int64{req.Username: &req.UserId, req.FolloweeName: &req.FolloweeId} {
		if name == "" {
			continue
		}
		found, err := g.names.GetUserId(ctx, &socialpb.UsernameRequest{Username: name})
		if err != nil {
			return nil, err
		}
		*id = found.UserId
	}
	for _, end := range []struct {
		user, other int64
		side        string
	}{{req.UserId, req.FolloweeId, followees}, {req.FolloweeId, req.UserId, followers}} {
		err := g.s.Store(ctx, "mongodb", "update social-graph", func(ctx context.Context) error {
			_, err := g.users.UpdateOne(ctx, bson.M{"user_id": end.user}, bson.M{operator: bson.M{end.side: end.other}})
			return err
		})
		if err != nil {
			return nil, err
		}
		key := graphKey(end.user, end.side)
		if err := g.s.Store(ctx, "redis", "del", func(ctx context.Context) error {
			_, err := g.cache.Do(ctx, service.Command{"DEL", key})
			return err
		}); err != nil {
			return nil, err
		}
	}
	return &socialpb.FollowResult{}, nil
}

// InsertUser adds a user whom nobody follows yet.
func (g *socialGraph) InsertUser(ctx context.Context, req *socialpb.UserId) (*socialpb.FollowResult, error) {
	err := g.s.Store(ctx, "mongodb", "insert social-graph", func(ctx context.Context) error {
		_, err := g.users.InsertOne(ctx, vertex{req.UserId, []int64{}, []int64{}})
		return err
	})
	if mongo.IsDuplicateKeyError(err) {
		err = nil
	}
	return &socialpb.FollowResult{}, err
}

func graphKey(id int64, side string) string { return fmt.Sprintf("%d:%s", id, side) }
