package social

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/app/social/socialpb"
)

var composePostService = part{
	"compose-post-service", 200 * time.Microsecond,
	func(_ context.Context, s *service.Service, srv *grpc.Server) error {
		c, err := dialAll(s, "unique-id-service", "text-service", "user-service", "media-service",
			"post-storage-service", "user-timeline-service", "home-timeline-service")
		if err != nil {
			return err
		}
		socialpb.RegisterComposePostServiceServer(srv, &composePost{
			ids: socialpb.NewUniqueIdServiceClient(c[0]), texts: socialpb.NewTextServiceClient(c[1]),
			users: socialpb.NewUserServiceClient(c[2]), media: socialpb.NewMediaServiceClient(c[3]),
			posts: socialpb.NewPostStorageServiceClient(c[4]),
			wrote: socialpb.NewUserTimelineServiceClient(c[5]), home: socialpb.NewHomeTimelineServiceClient(c[6]),
		})
		return nil
	},
}

type composePost struct {
	socialpb.UnimplementedComposePostServiceServer
	ids   socialpb.UniqueIdServiceClient
	texts socialpb.TextServiceClient
	users socialpb.UserServiceClient
	media socialpb.MediaServiceClient
	posts socialpb.PostStorageServiceClient
	wrote socialpb.UserTimelineServiceClient
	home  socialpb.HomeTimelineServiceClient
}

// ComposePost asks for the parts of a post at the same time, then stores and publishes it.
func (c *composePost) ComposePost(ctx context.Context, req *socialpb.ComposeRequest) (*socialpb.UniqueId, error) {
	var (
		text    *socialpb.Text
		creator *socialpb.Creator
		media   *socialpb.MediaList
		id      *socialpb.UniqueId
	)
	g, parts := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		text, err = c.texts.ComposeText(parts, &socialpb.TextRequest{Text: req.Text})
		return wrap("compose text", err)
	})
	g.Go(func() (err error) {
		creator, err = c.users.ComposeCreator(parts, &socialpb.Creator{UserId: req.UserId, Username: req.Username})
		return wrap("compose creator", err)
	})
	g.Go(func() (err error) {
		media, err = c.media.ComposeMedia(parts,
			&socialpb.MediaRequest{MediaIds: req.MediaIds, MediaTypes: req.MediaTypes})
		return wrap("compose media", err)
	})
	g.Go(func() (err error) {
		id, err = c.ids.ComposeUniqueId(parts, &socialpb.UniqueIdRequest{})
		return wrap("compose unique id", err)
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	post := &socialpb.Post{
		PostId: id.Id, Creator: creator, Text: text.Text, UserMentions: text.UserMentions, Urls: text.Urls,
		Media: media.Media, Timestamp: time.Now().UnixMilli(), PostType: req.PostType,
	}
	if _, err := c.posts.StorePost(ctx, post); err != nil {
		return nil, wrap("store post", err)
	}
	entry := &socialpb.TimelineEntry{PostId: post.PostId, UserId: creator.UserId, Timestamp: post.Timestamp}
	for _, m := range post.UserMentions {
		entry.UserMentionsId = append(entry.UserMentionsId, m.UserId)
	}
	g, publish := errgroup.WithContext(ctx)
	g.Go(func() error {
		_, err := c.wrote.WriteUserTimeline(publish, entry)
		return wrap("write user timeline", err)
	})
	g.Go(func() error {
		_, err := c.home.WriteHomeTimeline(publish, entry)
		return wrap("write home timeline", err)
	})
	return id, g.Wait()
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
