package social

import (
	"context"
	"strconv"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/app/social/socialpb"
)

// timelineLength is how many posts of a timeline are kept.
const timelineLength = 1000

// timeline keeps lists of posts in Redis: sorted sets of post IDs by time, one for each user.
type timeline struct {
	s     *service.Service
	redis *service.Redis
	posts socialpb.PostStorageServiceClient
}

// add puts a post on the timelines of users.
func (t timeline) add(ctx context.Context, post, timestamp int64, users ...int64) error {
	if len(users) == 0 {
		return nil
	}
	var commands []service.Command
	for _, u := range users {
		key := timelineKey(u)
		commands = append(commands, service.Command{"ZADD", key, timestamp, post},
			service.Command{"ZREMRANGEBYRANK", key, 0, -timelineLength - 1})
	}
	return t.s.Store(ctx, "redis", "zadd", func(ctx context.Context) error {
		_, err := t.redis.Do(ctx, commands...)
		return err
	})
}

// read returns the posts of a part of a timeline, newest first.
func (t timeline) read(ctx context.Context, req *socialpb.TimelineRequest) ([]int64, error) {
	if req.Stop <= req.Start || req.Start < 0 {
		return nil, nil
	}
	var members []string
	err := t.s.Store(ctx, "redis", "zrange", func(ctx context.Context) (err error) {
		members, err = t.redis.Strings(ctx, "ZRANGE", timelineKey(req.UserId), req.Start, req.Stop-1, "REV")
		return err
	})
	if err != nil {
		return nil, err
	}
	ids := make([]int64, 0, len(members))
	for _, m := range members {
		id, err := strconv.ParseInt(m, 10, 64)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func timelineKey(user int64) string { return strconv.FormatInt(user, 10) }
