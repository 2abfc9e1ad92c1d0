package social

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/app/social/socialpb"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/page"
)

//go:embed page.html
var html string

const (
	nginxCost    = 250 * time.Microsecond
	maxBody      = 1 << 20
	cookieName   = "login_token"
	timelineStop = 10 // of a timeline, if the request does not say
)

// nginxMain is nginx-thrift: the HTTP API. Under /wrk2-api a request says who it is from; under
// /api a token does.
func nginxMain(ctx context.Context, env *kit.Env) error {
	s, err := service.New(ctx, env, service.Config{Name: "nginx-web-server"})
	if err != nil {
		return err
	}
	defer s.Close()
	c, err := dialAll(s, "compose-post-service", "home-timeline-service", "user-timeline-service", "user-service",
		"social-graph-service")
	if err != nil {
		return s.Fatal(ctx, "Failed to start nginx", err)
	}
	n := &nginx{
		s: s, secret: []byte(env.Getenv(secretVar)),
		compose: socialpb.NewComposePostServiceClient(c[0]),
		home:    socialpb.NewHomeTimelineServiceClient(c[1]), wrote: socialpb.NewUserTimelineServiceClient(c[2]),
		users: socialpb.NewUserServiceClient(c[3]), graph: socialpb.NewSocialGraphServiceClient(c[4]),
	}
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", page.New(html))
	for path, h := range map[string]http.HandlerFunc{
		"/post/compose":       n.composePost,
		"/home-timeline/read": n.homeTimeline,
		"/user-timeline/read": n.userTimeline,
		"/user/register":      n.register,
		"/user/follow":        n.follow(n.graph.Follow),
		"/user/unfollow":      n.follow(n.graph.Unfollow),
	} {
		for _, prefix := range []string{"/wrk2-api", "/api"} {
			s.HandleFunc(mux, prefix+path, prefix+path, nginxCost, h)
		}
	}
	s.HandleFunc(mux, "/api/user/login", "/api/user/login", nginxCost, n.login)
	s.HandleFunc(mux, "/api/user/get_follower", "/api/user/get_follower", nginxCost,
		n.relatives("follower_id", n.graph.GetFollowers))
	s.HandleFunc(mux, "/api/user/get_followee", "/api/user/get_followee", nginxCost,
		n.relatives("followee_id", n.graph.GetFollowees))
	s.Log.Info("Starting the nginx-thrift server...", slog.Int("port", 8080))
	return s.ServeHTTP(ctx, http.MaxBytesHandler(mux, maxBody), ":8080")
}

type nginx struct {
	s       *service.Service
	secret  []byte
	compose socialpb.ComposePostServiceClient
	home    socialpb.HomeTimelineServiceClient
	wrote   socialpb.UserTimelineServiceClient
	users   socialpb.UserServiceClient
	graph   socialpb.SocialGraphServiceClient
}

// visitor is who a request is from: by its token, or under /wrk2-api by what it says itself.
func (n *nginx) visitor(r *http.Request) (*socialpb.Creator, error) {
	if strings.HasPrefix(r.URL.Path, "/api/") {
		cookie, err := r.Cookie(cookieName)
		if err != nil {
			return nil, status.Error(codes.Unauthenticated, "Not logged in")
		}
		var c claims
		_, err = jwt.ParseWithClaims(cookie.Value, &c, func(*jwt.Token) (any, error) {
			return n.secret, nil
		}, jwt.WithValidMethods([]string{"HS256"}))
		if err != nil {
			return nil, status.Error(codes.Unauthenticated, err.Error())
		}
		return &socialpb.Creator{UserId: c.UserID, Username: c.Username}, nil
	}
	id, err := strconv.ParseInt(r.FormValue("user_id"), 10, 64)
	if err != nil && r.FormValue("user_id") != "" {
		return nil, status.Error(codes.InvalidArgument, "user_id is not a number")
	}
	name := r.FormValue("username")
	if err != nil && name == "" {
		return nil, status.Error(codes.InvalidArgument, "Incomplete arguments: user_id or username is missing")
	}
	return &socialpb.Creator{UserId: id, Username: name}, nil
}

func (n *nginx) composePost(w http.ResponseWriter, r *http.Request) {
	from, err := n.visitor(r)
	req := &socialpb.ComposeRequest{Text: r.FormValue("text")}
	if err == nil {
		req.Username, req.UserId = from.Username, from.UserId
		var err1, err2 error
		req.MediaIds, err1 = numbers(r, "media_ids")
		req.MediaTypes, err2 = texts(r, "media_types")
		err = cmp.Or(err1, err2)
	}
	if kind, perr := strconv.ParseInt(r.FormValue("post_type"), 10, 32); perr == nil {
		req.PostType = int32(kind)
	}
	if err == nil && req.Text == "" {
		err = status.Error(codes.InvalidArgument, "Incomplete arguments: text is missing")
	}
	if err == nil {
		_, err = n.compose.ComposePost(r.Context(), req)
	}
	if err != nil {
		n.fail(w, r, err)
		return
	}
	fmt.Fprintln(w, "Successfully upload post")
}

// texts reads a form value that is a JSON array of strings.
func texts(r *http.Request, name string) (list []string, err error) {
	if v := r.FormValue(name); v != "" && json.Unmarshal([]byte(v), &list) != nil {
		err = status.Errorf(codes.InvalidArgument, "%s is not a JSON array", name)
	}
	return list, err
}

// numbers reads a form value that is a JSON array of numbers, which may be quoted, and then begin with
// zeros.
func numbers(r *http.Request, name string) (list []int64, err error) {
	if json.Unmarshal([]byte(r.FormValue(name)), &list) == nil {
		return list, nil
	}
	quoted, err := texts(r, name)
	if err != nil {
		return nil, err
	}
	list = make([]int64, len(quoted))
	for i, t := range quoted {
		if list[i], err = strconv.ParseInt(t, 10, 64); err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "%s: %q is not a number", name, t)
		}
	}
	return list, nil
}

func (n *nginx) homeTimeline(w http.ResponseWriter, r *http.Request) {
	n.timeline(w, r, func(ctx context.Context, req *socialpb.TimelineRequest) (*socialpb.Posts, error) {
		return n.home.ReadHomeTimeline(ctx, req)
	})
}

func (n *nginx) userTimeline(w http.ResponseWriter, r *http.Request) {
	n.timeline(w, r, func(ctx context.Context, req *socialpb.TimelineRequest) (*socialpb.Posts, error) {
		return n.wrote.ReadUserTimeline(ctx, req)
	})
}

func (n *nginx) timeline(w http.ResponseWriter, r *http.Request,
	read func(context.Context, *socialpb.TimelineRequest) (*socialpb.Posts, error),
) {
	from, err := n.visitor(r)
	if err != nil {
		n.fail(w, r, err)
		return
	}
	number := func(name string, otherwise int32) int32 {
		if v, err := strconv.ParseInt(r.FormValue(name), 10, 32); err == nil {
			return int32(v)
		}
		return otherwise
	}
	posts, err := read(r.Context(), &socialpb.TimelineRequest{
		UserId: from.UserId, Start: number("start", 0),
		Stop: number("stop", timelineStop),
	})
	if err != nil {
		n.fail(w, r, err)
		return
	}
	docs := make([]map[string]any, 0, len(posts.Posts))
	for _, p := range posts.Posts {
		docs = append(docs, postJSON(p))
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(docs)
}

// postJSON is a post as the API shows it. IDs are texts: JavaScript's numbers are too short.
func postJSON(p *socialpb.Post) map[string]any {
	mentions, media, urls := []any{}, []any{}, []any{}
	for _, m := range p.UserMentions {
		mentions = append(mentions, map[string]any{"user_id": strconv.FormatInt(m.UserId, 10), "username": m.Username})
	}
	for _, m := range p.Media {
		media = append(media, map[string]any{"media_id": strconv.FormatInt(m.MediaId, 10), "media_type": m.MediaType})
	}
	for _, u := range p.Urls {
		urls = append(urls, map[string]any{"shortened_url": u.ShortenedUrl, "expanded_url": u.ExpandedUrl})
	}
	return map[string]any{
		"post_id": strconv.FormatInt(p.PostId, 10), "text": p.Text, "timestamp": strconv.FormatInt(p.Timestamp, 10),
		"post_type": p.PostType,
		"creator": map[string]any{
			"user_id":  strconv.FormatInt(p.Creator.GetUserId(), 10),
			"username": p.Creator.GetUsername(),
		},
		"user_mentions": mentions, "media": media, "urls": urls,
	}
}

func (n *nginx) register(w http.ResponseWriter, r *http.Request) {
	req := &socialpb.RegisterRequest{
		FirstName: r.FormValue("first_name"), LastName: r.FormValue("last_name"),
		Username: r.FormValue("username"), Password: r.FormValue("password"),
	}
	if id, err := strconv.ParseInt(r.FormValue("user_id"), 10, 64); err == nil {
		req.UserId, req.WithId = id, true
	}
	if _, err := n.users.RegisterUser(r.Context(), req); err != nil {
		n.fail(w, r, err)
		return
	}
	fmt.Fprintln(w, "Success!")
}

func (n *nginx) follow(change func(context.Context, *socialpb.FollowRequest,
	...grpc.CallOption) (*socialpb.FollowResult, error),
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		req := &socialpb.FollowRequest{Username: r.FormValue("user_name"), FolloweeName: r.FormValue("followee_name")}
		if req.Username == "" {
			from, err := n.visitor(r)
			if err != nil {
				n.fail(w, r, err)
				return
			}
			req.UserId = from.UserId
		}
		if req.FolloweeName == "" {
			id, err := strconv.ParseInt(r.FormValue("followee_id"), 10, 64)
			if err != nil {
				n.fail(w, r, status.Error(codes.InvalidArgument,
					"Incomplete arguments: followee_name or followee_id is missing"))
				return
			}
			req.FolloweeId = id
		}
		if _, err := change(r.Context(), req); err != nil {
			n.fail(w, r, err)
			return
		}
		fmt.Fprintln(w, "Success!")
	}
}

// relatives lists those who follow the visitor, or whom the visitor follows.
func (n *nginx) relatives(key string, get func(context.Context, *socialpb.UserId,
	...grpc.CallOption) (*socialpb.UserIds, error),
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		from, err := n.visitor(r)
		var ids *socialpb.UserIds
		if err == nil {
			ids, err = get(r.Context(), &socialpb.UserId{UserId: from.UserId})
		}
		if err != nil {
			n.fail(w, r, err)
			return
		}
		list := make([]map[string]string, 0, len(ids.UserIds))
		for _, id := range ids.UserIds {
			list = append(list, map[string]string{key: strconv.FormatInt(id, 10)})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	}
}

func (n *nginx) login(w http.ResponseWriter, r *http.Request) {
	token, err := n.users.Login(r.Context(),
		&socialpb.LoginRequest{Username: r.FormValue("username"), Password: r.FormValue("password")})
	if err != nil {
		n.fail(w, r, err)
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: token.Token, Path: "/", MaxAge: int(tokenLife.Seconds()),
		HttpOnly: true,
	})
	fmt.Fprintln(w, "Success!")
}

// fail answers with what went wrong, wherever it did.
func (n *nginx) fail(w http.ResponseWriter, r *http.Request, err error) {
	code := http.StatusInternalServerError
	switch status.Code(err) {
	case codes.InvalidArgument, codes.AlreadyExists:
		code = http.StatusBadRequest
	case codes.Unauthenticated:
		code = http.StatusUnauthorized
	case codes.NotFound:
		code = http.StatusNotFound
	}
	if code == http.StatusInternalServerError {
		n.s.Log.ErrorContext(r.Context(), "Request failed", slog.String("url", r.URL.Path), slog.Any("error", err))
	}
	http.Error(w, err.Error(), code)
}
