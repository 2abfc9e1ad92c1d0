package social

import (
	"context"
	"strings"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"google.golang.org/grpc"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/app/social/socialpb"
)

var userMentionService = part{
	"user-mention-service", 100 * time.Microsecond,
	func(ctx context.Context, s *service.Service, srv *grpc.Server) error {
		db, err := s.OpenDatabase(ctx, mongoURI("user-mongodb"), "user", nil)
		if err != nil {
			return err
		}
		socialpb.RegisterUserMentionServiceServer(srv,
			&userMention{userIDs: userIDs{
				s: s, users: db.Collection("user"),
				cache: s.Memcached("user-memcached:11211"),
			}})
		return nil
	},
}

type userMention struct {
	socialpb.UnimplementedUserMentionServiceServer
	userIDs
}

// ComposeUserMentions returns those of the names that are users.
func (u *userMention) ComposeUserMentions(ctx context.Context,
	req *socialpb.UserMentionsRequest,
) (*socialpb.UserMentions, error) {
	ids, err := u.lookup(ctx, req.Usernames...)
	if err != nil {
		return nil, err
	}
	res := &socialpb.UserMentions{}
	for _, name := range req.Usernames {
		if id, ok := ids[name]; ok {
			res.UserMentions = append(res.UserMentions, &socialpb.UserMention{UserId: id, Username: name})
		}
	}
	return res, nil
}

// userIDs finds users by name, in the cache or in the database.
type userIDs struct {
	s     *service.Service
	users *mongo.Collection
	cache *memcache.Client
}

const userIDSuffix = ":user_id"

// lookup returns the IDs of those of the names that are users.
func (u userIDs) lookup(ctx context.Context, names ...string) (map[string]int64, error) {
	keys := make([]string, len(names))
	for i, n := range names {
		keys[i] = n + userIDSuffix
	}
	byKey, err := service.Cached(ctx, u.s, u.cache, keys,
		func(ctx context.Context, missing []string) (map[string]int64, error) {
			wanted := make([]string, len(missing))
			for i, k := range missing {
				wanted[i] = strings.TrimSuffix(k, userIDSuffix)
			}
			docs, err := service.FindAll[account](ctx, u.s, u.users, bson.M{"username": bson.M{"$in": wanted}})
			if err != nil {
				return nil, err
			}
			m := make(map[string]int64, len(docs))
			for _, d := range docs {
				m[d.Username+userIDSuffix] = d.UserID
			}
			return m, nil
		})
	if err != nil {
		return nil, err
	}
	ids := make(map[string]int64, len(byKey))
	for k, id := range byKey {
		ids[strings.TrimSuffix(k, userIDSuffix)] = id
	}
	return ids, nil
}
