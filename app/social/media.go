package social

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/app/social/socialpb"
)

var mediaService = part{
	"media-service", 80 * time.Microsecond,
	func(_ context.Context, _ *service.Service, srv *grpc.Server) error {
		socialpb.RegisterMediaServiceServer(srv, media{})
		return nil
	},
}

type media struct {
	socialpb.UnimplementedMediaServiceServer
}

// ComposeMedia pairs IDs with types.
func (media) ComposeMedia(_ context.Context, req *socialpb.MediaRequest) (*socialpb.MediaList, error) {
	if len(req.MediaIds) != len(req.MediaTypes) {
		return nil, status.Errorf(codes.InvalidArgument, "%d media ids and %d media types", len(req.MediaIds),
			len(req.MediaTypes))
	}
	res := &socialpb.MediaList{}
	for i, id := range req.MediaIds {
		res.Media = append(res.Media, &socialpb.Media{MediaId: id, MediaType: req.MediaTypes[i]})
	}
	return res, nil
}
