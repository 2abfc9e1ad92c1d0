package social

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/app/social/socialpb"
)

var homeTimelineService = part{
	"home-timeline-service", 150 * time.Microsecond,
	func(_ context.Context, s *service.Service, srv *grpc.Server) error {
		conns, err := dialAll(s, "post-storage-service", "social-graph-service")
		if err != nil {
			return err
		}
		h := &homeTimeline{
			timeline: timeline{s, s.Redis("home-timeline-redis:6379"), socialpb.NewPostStorageServiceClient(conns[0])},
			graph:    socialpb.NewSocialGraphServiceClient(conns[1]),
		}
		s.Recall(h.recall)
		socialpb.RegisterHomeTimelineServiceServer(srv, h)
		return nil
	},
}

type homeTimeline struct {
	socialpb.UnimplementedHomeTimelineServiceServer
	timeline
	graph socialpb.SocialGraphServiceClient
}

// WriteHomeTimeline puts a post where the author's followers and those it mentions will read it.
func (h *homeTimeline) WriteHomeTimeline(ctx context.Context,
	req *socialpb.TimelineEntry,
) (*socialpb.StoreResult, error) {
	followers, err := h.graph.GetFollowers(ctx, &socialpb.UserId{UserId: req.UserId})
	if err != nil {
		return nil, fmt.Errorf("get followers: %w", err)
	}
	readers := unique(append(followers.UserIds, req.UserMentionsId...))
	return &socialpb.StoreResult{}, h.add(ctx, req.PostId, req.Timestamp, readers...)
}

// ReadHomeTimeline returns what a user should read.
func (h *homeTimeline) ReadHomeTimeline(ctx context.Context, req *socialpb.TimelineRequest) (*socialpb.Posts, error) {
	ids, err := h.read(ctx, req)
	if err != nil {
		return nil, err
	}
	return h.posts.ReadPosts(ctx, &socialpb.PostIds{PostIds: ids})
}
