package social

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/app/social/socialpb"
)

var textService = part{
	"text-service", 150 * time.Microsecond,
	func(_ context.Context, s *service.Service, srv *grpc.Server) error {
		conns, err := dialAll(s, "url-shorten-service", "user-mention-service")
		if err != nil {
			return err
		}
		socialpb.RegisterTextServiceServer(srv, &text{
			urls:     socialpb.NewUrlShortenServiceClient(conns[0]),
			mentions: socialpb.NewUserMentionServiceClient(conns[1]),
		})
		return nil
	},
}

var (
	mentionPattern = regexp.MustCompile(`@[a-zA-Z0-9-_]+`)
	urlPattern     = regexp.MustCompile(`https?://[a-zA-Z0-9_!~*'().&=+$%/?#:-]+`)
)

type text struct {
	socialpb.UnimplementedTextServiceServer
	urls     socialpb.UrlShortenServiceClient
	mentions socialpb.UserMentionServiceClient
}

// ComposeText asks for mentions and links at the same time, and puts the short links into the text.
func (t *text) ComposeText(ctx context.Context, req *socialpb.TextRequest) (*socialpb.Text, error) {
	res := &socialpb.Text{Text: req.Text}
	g, ctx := errgroup.WithContext(ctx)
	if found := unique(urlPattern.FindAllString(req.Text, -1)); len(found) > 0 {
		g.Go(func() error {
			urls, err := t.urls.ComposeUrls(ctx, &socialpb.UrlsRequest{Urls: found})
			if err != nil {
				return fmt.Errorf("shorten urls: %w", err)
			}
			res.Urls = urls.Urls
			return nil
		})
	}
	if found := unique(mentionPattern.FindAllString(req.Text, -1)); len(found) > 0 {
		g.Go(func() error {
			names := make([]string, len(found))
			for i, m := range found {
				names[i] = m[1:]
			}
			mentions, err := t.mentions.ComposeUserMentions(ctx, &socialpb.UserMentionsRequest{Usernames: names})
			if err != nil {
				return fmt.Errorf("find mentioned users: %w", err)
			}
			res.UserMentions = mentions.UserMentions
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for _, u := range res.Urls {
		res.Text = strings.ReplaceAll(res.Text, u.ExpandedUrl, u.ShortenedUrl)
	}
	return res, nil
}

// unique drops repetitions and keeps the order.
func unique[T comparable](list []T) []T {
	seen := make(map[T]bool, len(list))
	var kept []T
	for _, v := range list {
		if !seen[v] {
			seen[v] = true
			kept = append(kept, v)
		}
	}
	return kept
}
