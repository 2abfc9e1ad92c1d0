package social

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"google.golang.org/grpc"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/app/social/socialpb"
)

var userTimelineService = part{
	"user-timeline-service", 150 * time.Microsecond,
	func(ctx context.Context, s *service.Service, srv *grpc.Server) error {
		db, err := s.OpenDatabase(ctx, mongoURI("user-timeline-mongodb"), "user-timeline", nil)
		if err != nil {
			return err
		}
		users := db.Collection("user-timeline")
		if err := createIndex(ctx, s, users, "user_id"); err != nil {
			return err
		}
		conn, err := dial(s, "post-storage-service")
		if err != nil {
			return err
		}
		u := &userTimeline{
			timeline: timeline{s, s.Redis("user-timeline-redis:6379"), socialpb.NewPostStorageServiceClient(conn)},
			users:    users,
		}
		s.Recall(u.recall)
		socialpb.RegisterUserTimelineServiceServer(srv, u)
		return nil
	},
}

// written is a user's timeline in the database, newest post first.
type written struct {
	UserID int64 `bson:"user_id"`
	Posts  []struct {
		PostID    int64 `bson:"post_id"`
		Timestamp int64 `bson:"timestamp"`
	} `bson:"posts"`
}

type userTimeline struct {
	socialpb.UnimplementedUserTimelineServiceServer
	timeline
	users *mongo.Collection
}

// WriteUserTimeline adds a post to what its author wrote.
func (u *userTimeline) WriteUserTimeline(ctx context.Context,
	req *socialpb.TimelineEntry,
) (*socialpb.StoreResult, error) {
	err := u.s.Store(ctx, "mongodb", "update user-timeline", func(ctx context.Context) error {
		_, err := u.users.UpdateOne(ctx, bson.M{"user_id": req.UserId}, bson.M{"$push": bson.M{"posts": bson.M{
			"$each": bson.A{bson.M{"post_id": req.PostId, "timestamp": req.Timestamp}}, "$position": 0,
			"$slice": timelineLength,
		}}}, options.UpdateOne().SetUpsert(true))
		return err
	})
	if err != nil {
		return nil, err
	}
	return &socialpb.StoreResult{}, u.add(ctx, req.PostId, req.Timestamp, req.UserId)
}

// ReadUserTimeline returns what a user wrote. A cache that was lost is filled from the database.
func (u *userTimeline) ReadUserTimeline(ctx context.Context, req *socialpb.TimelineRequest) (*socialpb.Posts, error) {
	ids, err := u.read(ctx, req)
	if err != nil {
		u.s.Log.WarnContext(ctx, "Failed to read user timeline from redis", "user_id", req.UserId, "error", err)
	}
	if len(ids) == 0 {
		if ids, err = u.load(ctx, req); err != nil {
			return nil, err
		}
	}
	return u.posts.ReadPosts(ctx, &socialpb.PostIds{PostIds: ids})
}

func (u *userTimeline) load(ctx context.Context, req *socialpb.TimelineRequest) ([]int64, error) {
	var w written
	err := u.s.Store(ctx, "mongodb", "findOne user-timeline", func(ctx context.Context) error {
		return u.users.FindOne(ctx, bson.M{"user_id": req.UserId}).Decode(&w)
	})
	if errors.Is(err, mongo.ErrNoDocuments) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	add := service.Command{"ZADD", timelineKey(req.UserId)}
	var ids []int64
	for i, p := range w.Posts {
		add = append(add, p.Timestamp, p.PostID)
		if i >= int(req.Start) && i < int(req.Stop) {
			ids = append(ids, p.PostID)
		}
	}
	if len(w.Posts) > 0 {
		err := u.s.Store(ctx, "redis", "zadd", func(ctx context.Context) error {
			_, err := u.redis.Do(ctx, add)
			return err
		})
		if err != nil {
			u.s.Log.WarnContext(ctx, "Failed to write user timeline to redis", "user_id", req.UserId, "error", err)
		}
	}
	return ids, nil
}
