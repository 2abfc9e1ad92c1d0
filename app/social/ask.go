package social

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/grpc"

	"github.com/aiopslab/aiopslab/app/ask"
	"github.com/aiopslab/aiopslab/app/social/socialpb"
)

// questions are what only the services can answer: with what the data they start with says, or what they
// make of a question.
var questions = map[string]ask.Question{
	"nginx-thrift": ask.All(
		ask.Page("/wrk2-api/user-timeline/read?user_id=0", func(status int, body []byte) error {
			var posts []struct{ Creator struct{ Username string } }
			if status != http.StatusOK || json.Unmarshal(body, &posts) != nil {
				return ask.Wrong("%d %s", status, body)
			}
			for _, p := range posts {
				if p.Creator.Username != "username_0" {
					return ask.Wrong("a post of %s as one of username_0", p.Creator.Username)
				}
			}
			return nil
		}),
		ask.Page("/api/user/get_follower", func(status int, body []byte) error {
			if status != http.StatusUnauthorized || !strings.Contains(string(body), "Not logged in") {
				return ask.Wrong("%d %s", status, body)
			}
			return nil
		}),
	),
	"media-frontend": ask.All(
		ask.Page("/get-media/?filename=none.png", func(status int, body []byte) error {
			if status != http.StatusNotFound {
				return ask.Wrong("%d %s", status, body)
			}
			return nil
		}),
		ask.Page("/upload-media", func(status int, body []byte) error { // It takes uploads alone.
			if status != http.StatusMethodNotAllowed {
				return ask.Wrong("%d %s", status, body)
			}
			return nil
		}),
	),
	"compose-post-service": serves("ComposePostService"), // All it does is to write posts.
	"text-service": ask.GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error {
		r, err := socialpb.NewTextServiceClient(c).ComposeText(ctx, &socialpb.TextRequest{Text: "@username_7"})
		return mentions(r.GetUserMentions(), err)
	}),
	"user-mention-service": ask.GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error {
		r, err := socialpb.NewUserMentionServiceClient(c).ComposeUserMentions(ctx,
			&socialpb.UserMentionsRequest{Usernames: []string{"username_7"}})
		return mentions(r.GetUserMentions(), err)
	}),
	"user-service": ask.GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error {
		r, err := socialpb.NewUserServiceClient(c).GetUserId(ctx, &socialpb.UsernameRequest{Username: "username_7"})
		if err == nil && r.UserId != 7 {
			err = ask.Wrong("that username_7 is user %d", r.UserId)
		}
		return err
	}),
	"social-graph-service": ask.GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error {
		// The second user had nobody but the first to befriend.
		r, err := socialpb.NewSocialGraphServiceClient(c).GetFollowers(ctx, &socialpb.UserId{UserId: 1})
		if err == nil && (!slices.Contains(r.UserIds, 0) || slices.Contains(r.UserIds, 1)) {
			err = ask.Wrong("that %v follow user 1", r.UserIds)
		}
		return err
	}),
	"url-shorten-service": ask.GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error {
		urls := socialpb.NewUrlShortenServiceClient(c)
		long := "http://" + rand.Text() + rand.Text()
		made, err := urls.ComposeUrls(ctx, &socialpb.UrlsRequest{Urls: []string{long}})
		if err != nil {
			return err
		}
		if len(made.Urls) != 1 || !strings.HasPrefix(made.Urls[0].ShortenedUrl, shortHost) {
			return ask.Wrong("%v", made)
		}
		r, err := urls.GetExtendedUrls(ctx, &socialpb.UrlsRequest{Urls: []string{made.Urls[0].ShortenedUrl}})
		if err == nil && (len(r.Urls) != 1 || r.Urls[0].ExpandedUrl != long) {
			err = ask.Wrong("%v", r)
		}
		return err
	}),
	"post-storage-service": ask.GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error {
		r, err := socialpb.NewPostStorageServiceClient(c).ReadPosts(ctx, &socialpb.PostIds{PostIds: []int64{1}})
		if err == nil && len(r.Posts) != 0 {
			err = ask.Wrong("a post that nobody wrote: %v", r)
		}
		return err
	}),
	"user-timeline-service": ask.GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error {
		r, err := socialpb.NewUserTimelineServiceClient(c).ReadUserTimeline(ctx,
			&socialpb.TimelineRequest{UserId: 0, Stop: timelineStop})
		for _, p := range r.GetPosts() {
			if p.GetCreator().GetUserId() != 0 {
				return ask.Wrong("a post of user %d as one of user 0", p.GetCreator().GetUserId())
			}
		}
		return err
	}),
	"home-timeline-service": ask.GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error {
		r, err := socialpb.NewHomeTimelineServiceClient(c).ReadHomeTimeline(ctx,
			&socialpb.TimelineRequest{UserId: 0, Stop: timelineStop})
		for _, p := range r.GetPosts() {
			if p.PostId == 0 || p.Text == "" {
				return ask.Wrong("a post without a text: %v", p)
			}
		}
		return err
	}),
	"media-service": ask.GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error {
		r, err := socialpb.NewMediaServiceClient(c).ComposeMedia(ctx,
			&socialpb.MediaRequest{MediaIds: []int64{7}, MediaTypes: []string{"png"}})
		if err == nil && (len(r.Media) != 1 || r.Media[0].MediaId != 7 || r.Media[0].MediaType != "png") {
			err = ask.Wrong("%v", r)
		}
		return err
	}),
	"unique-id-service": ask.GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error {
		ids := socialpb.NewUniqueIdServiceClient(c)
		first, err := ids.ComposeUniqueId(ctx, &socialpb.UniqueIdRequest{})
		if err != nil {
			return err
		}
		second, err := ids.ComposeUniqueId(ctx, &socialpb.UniqueIdRequest{})
		if err == nil && (first.Id <= 0 || second.Id <= 0 || first.Id == second.Id) {
			err = ask.Wrong("the IDs %d and %d", first.Id, second.Id)
		}
		return err
	}),
	"jaeger": ask.Jaeger("nginx-web-server"),
}

// serves asks whether a program has a service.
func serves(name string) ask.Question {
	return ask.GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error {
		return ask.Serves(ctx, c, "social."+name)
	})
}

// mentions is an error unless user 7 is mentioned.
func mentions(found []*socialpb.UserMention, err error) error {
	if err == nil && (len(found) != 1 || found[0].UserId != 7) {
		err = ask.Wrong("the mentions %v", found)
	}
	return err
}
