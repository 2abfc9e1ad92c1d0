package social_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/app/apptest"
	"github.com/aiopslab/aiopslab/app/social"
	"github.com/aiopslab/aiopslab/image/jaeger"
	"github.com/aiopslab/aiopslab/image/memcached"
	"github.com/aiopslab/aiopslab/image/mongo"
	"github.com/aiopslab/aiopslab/image/redis"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/past"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long the application may take to do something.
const patience = 2 * time.Minute

type front struct {
	t *testing.T
	d *apptest.Deployment
	c *http.Client
}

func deploy(t *testing.T) *front {
	images := kit.NewRegistry(social.Image(nil), memcached.Image(nil), mongo.Image(nil), redis.Image(nil), jaeger.Image())
	d := apptest.Deploy(t, social.App(), images)
	f := &front{t, d, d.User().Client()}
	f.eventually("/wrk2-api/post/compose", url.Values{"username": {"username_5"}, "user_id": {"5"}, "text": {"first @username_6 http://a.b"}})
	return f
}

// post sends a form and returns the answer.
func (f *front) post(path string, form url.Values) (int, string) {
	f.t.Helper()
	resp, err := f.c.PostForm("http://nginx-thrift:8080"+path, form)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(b)
}

func (f *front) mustPost(path string, form url.Values, want string) {
	f.t.Helper()
	if code, body := f.post(path, form); code != http.StatusOK || !strings.Contains(body, want) {
		f.t.Fatalf("%s %v: %d %s", path, form, code, body)
	}
}

// eventually posts until it works.
func (f *front) eventually(path string, form url.Values) string {
	f.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		code, body := f.post(path, form)
		if code == http.StatusOK {
			return body
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("%s: %d %s", path, code, body)
		}
	}
}

type post struct {
	Text    string
	Creator struct {
		Username string
	}
	Mentions []struct {
		Username string
	} `json:"user_mentions"`
	URLs []struct {
		Short    string `json:"shortened_url"`
		Expanded string `json:"expanded_url"`
	}
	Media []struct {
		ID string `json:"media_id"`
	}
}

// timeline reads a timeline, newest post first.
func (f *front) timeline(kind, user string) []post {
	f.t.Helper()
	var posts []post
	body := f.eventually("/wrk2-api/"+kind+"-timeline/read", url.Values{"user_id": {user}, "start": {"0"}, "stop": {"10"}})
	if err := json.Unmarshal([]byte(body), &posts); err != nil {
		f.t.Fatalf("%s: %v", body, err)
	}
	return posts
}

func TestFrontDoor(t *testing.T) {
	f := deploy(t)
	for _, u := range []struct{ id, name string }{{"9001", "alice"}, {"9002", "bob"}, {"9003", "carol"}} {
		f.mustPost("/wrk2-api/user/register", url.Values{"user_id": {u.id}, "username": {u.name}, "password": {"pw-" + u.name}, "first_name": {"a"}, "last_name": {"b"}}, "Success!")
	}
	if code, body := f.post("/wrk2-api/user/register", url.Values{"user_id": {"9009"}, "username": {"alice"}, "password": {"x"}}); code != http.StatusBadRequest || !strings.Contains(body, "User alice already existed.") {
		t.Errorf("a second alice: %d %s", code, body)
	}
	if resp, err := f.c.Get("http://nginx-thrift:8080/"); err != nil {
		t.Error(err)
	} else {
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(b), `<form id="compose">`) {
			t.Errorf("the page: %v %s", err, b)
		}
	}
	f.mustPost("/wrk2-api/user/follow", url.Values{"user_name": {"bob"}, "followee_name": {"alice"}}, "Success!")

	// What a user says gets into logs.
	for i, path := range social.App().Heard {
		words := fmt.Sprintf("read this %d", i)
		if resp, err := f.c.Get("http://nginx-thrift:8080" + strings.ReplaceAll(path, "{words}", url.QueryEscape(words))); err != nil {
			t.Error(err)
		} else {
			resp.Body.Close()
		}
		for _, service := range []string{"user-service", "social-graph-service"} {
			f.d.Pod(service).Await(words)
		}
	}

	// A post reaches the author's timeline, a follower's and that of somebody mentioned.
	f.mustPost("/wrk2-api/post/compose", url.Values{
		"username": {"alice"}, "user_id": {"9001"}, "text": {"hello @carol and @nobody, see http://example.com/a"},
		"media_ids": {`["123456789012345678"]`}, "media_types": {`["png"]`}, "post_type": {"0"},
	}, "Successfully upload post")
	for kind, user := range map[string]string{"user": "9001", "home": "9002"} {
		posts := f.timeline(kind, user)
		if len(posts) != 1 {
			t.Fatalf("%s timeline of %s: %+v", kind, user, posts)
		}
		p := posts[0]
		if p.Creator.Username != "alice" || len(p.Mentions) != 1 || p.Mentions[0].Username != "carol" || len(p.Media) != 1 || p.Media[0].ID != "123456789012345678" {
			t.Errorf("%+v", p)
		}
		if len(p.URLs) != 1 || p.URLs[0].Expanded != "http://example.com/a" || !strings.HasPrefix(p.URLs[0].Short, "http://short-url/") || !strings.Contains(p.Text, p.URLs[0].Short) {
			t.Errorf("links: %+v", p)
		}
	}
	if posts := f.timeline("home", "9003"); len(posts) != 1 {
		t.Errorf("carol, who was mentioned, reads %+v", posts)
	}
	if posts := f.timeline("home", "9001"); len(posts) != 0 {
		t.Errorf("alice, who follows nobody, reads %+v", posts)
	}

	// Who no longer follows reads nothing new.
	f.mustPost("/wrk2-api/user/unfollow", url.Values{"user_name": {"bob"}, "followee_name": {"alice"}}, "Success!")
	f.mustPost("/wrk2-api/post/compose", url.Values{"username": {"alice"}, "user_id": {"9001"}, "text": {"again"}}, "Success")
	if posts := f.timeline("home", "9002"); len(posts) != 1 {
		t.Errorf("bob unfollowed and reads %+v", posts)
	}
	if posts := f.timeline("user", "9001"); len(posts) != 2 || posts[0].Text != "again" {
		t.Errorf("alice wrote %+v", posts)
	}

	// Posts outlive the caches, which are filled again.
	f.d.Restart("user-timeline-redis")
	f.d.Restart("post-storage-memcached")
	if posts := f.timeline("user", "9001"); len(posts) != 2 {
		t.Errorf("after the caches restarted alice wrote %+v", posts)
	}
}

func TestLogin(t *testing.T) {
	f := deploy(t)
	if code, _ := f.post("/api/post/compose", url.Values{"text": {"x"}}); code != http.StatusUnauthorized {
		t.Errorf("compose without a login: %d", code)
	}
	if code, body := f.post("/api/user/login", url.Values{"username": {"username_3"}, "password": {"wrong"}}); code != http.StatusUnauthorized || !strings.Contains(body, "Incorrect username or password") {
		t.Errorf("%d %s", code, body)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	f.c.Jar = jar
	f.mustPost("/api/user/login", url.Values{"username": {"username_3"}, "password": {"password_3"}}, "Success!")
	f.mustPost("/api/post/compose", url.Values{"text": {"mine"}}, "Success")
	f.mustPost("/api/user/get_follower", nil, `{"follower_id":"`)
	f.mustPost("/api/user/get_followee", nil, `{"followee_id":"`)
	// Under /wrk2-api it counts what the request says.
	f.mustPost("/wrk2-api/post/compose", url.Values{"username": {"username_4"}, "user_id": {"4"}, "text": {"mine"}}, "Success")
	if posts := f.timeline("user", "4"); len(posts) != 1 || posts[0].Creator.Username != "username_4" {
		t.Errorf("%+v", posts)
	}
	f.c.Jar = nil
	if posts := f.timeline("user", "3"); !slices.ContainsFunc(posts, func(p post) bool { return p.Text == "mine" && p.Creator.Username == "username_3" }) {
		t.Errorf("%+v", posts)
	}
}

func TestMedia(t *testing.T) {
	f := deploy(t)
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	part, err := w.CreateFormFile("media", "cat.png")
	if err != nil {
		t.Fatal(err)
	}
	part.Write([]byte("a picture"))
	w.Close()
	resp, err := f.c.Post("http://media-frontend:8080/upload-media", w.FormDataContentType(), &body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var stored struct {
		ID   string `json:"media_id"`
		Type string `json:"media_type"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&stored); err != nil || stored.Type != "png" {
		t.Fatalf("%+v, %v", stored, err)
	}
	get, err := f.c.Get("http://media-frontend:8080/get-media/?filename=" + stored.ID + ".png")
	if err != nil {
		t.Fatal(err)
	}
	defer get.Body.Close()
	if b, _ := io.ReadAll(get.Body); string(b) != "a picture" {
		t.Errorf("%d %q", get.StatusCode, b)
	}
}

// Every service answers its own question, and none that of another. Servers of the same kind are the
// same program; who else is asked listens on the port that the question is for.
func TestQuestions(t *testing.T) {
	f := deploy(t)
	f.eventually("/wrk2-api/user-timeline/read", url.Values{"user_id": {"5"}})
	ports := map[string]int{"nginx-thrift": 8080, "media-frontend": 8080}
	for _, s := range social.App().Services {
		if s.Kind == "service" && ports[s.Name] == 0 {
			ports[s.Name] = 9090
		}
	}
	apptest.Questions(t, f.d, social.App(), ports)
}

// TestGrown holds that users find what they wrote in the past, behind what they have written since.
func TestGrown(t *testing.T) {
	f := deploy(t)
	join := time.Now()
	p := past.New(7, join.Add(-time.Second), join, past.Cast{})
	for _, name := range []string{"post-storage-service", "user-timeline-service", "url-shorten-service", "home-timeline-service"} {
		for range 2 { // Another replica does the same.
			if err := f.d.Pod(name).Recall(t.Context(), p); err != nil {
				t.Fatal(name, err)
			}
		}
	}
	if own := f.timeline("user", "5"); len(own) == 0 || !strings.HasPrefix(own[0].Text, "first ") {
		t.Errorf("what was written last is %v", own)
	}
	if home := f.timeline("home", "6"); len(home) != 10 || !strings.HasPrefix(home[0].Text, "first ") {
		t.Errorf("who was mentioned last reads %v", home)
	}
	authors, posts := 0, 0
	for user := 10; user < 60; user++ {
		list := f.timeline("user", fmt.Sprint(user))
		for _, x := range list {
			if x.Creator.Username != fmt.Sprint("username_", user) || len(x.URLs) == 0 || len(x.Mentions) == 0 {
				t.Fatalf("user %d wrote %v", user, x)
			}
		}
		if posts += len(list); len(list) > 0 {
			authors++
		}
	}
	if authors < 10 || posts > 100 {
		t.Errorf("%d of 50 users wrote %d posts", authors, posts)
	}
}

// TestNewcomers holds that who registered in the past is a user now, with a picture: the name is taken, posts mention it,
// and it can follow others. What others share with each other stays as it was.
func TestNewcomers(t *testing.T) {
	f := deploy(t)
	join := time.Now()
	p := past.New(7, join.Add(-time.Second), join, past.Cast{})
	for _, name := range []string{"user-service", "social-graph-service", "media-frontend"} {
		for range 2 { // Another replica does the same.
			if err := f.d.Pod(name).Recall(t.Context(), p); err != nil {
				t.Fatal(name, err)
			}
		}
	}
	list := social.Newcomers(p)
	first, last := list[0], list[len(list)-1]
	for _, n := range []social.Newcomer{first, last} {
		form := url.Values{"username": {n.Username}, "password": {"x"}, "first_name": {"a"}, "last_name": {n.LastName}}
		if code, body := f.post("/api/user/register", form); code == http.StatusOK || !strings.Contains(body, "already existed") {
			t.Errorf("another %s: %d %s", n.Username, code, body)
		}
		get, err := f.c.Get("http://media-frontend:8080/get-media/?filename=" + n.Picture)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(get.Body)
		if get.Body.Close(); err != nil || get.StatusCode != http.StatusOK || !bytes.HasPrefix(b, []byte("\x89PNG")) {
			t.Errorf("the picture of %s: %d %q, %v", n.Username, get.StatusCode, b, err)
		}
	}
	f.mustPost("/wrk2-api/user/follow", url.Values{"user_name": {last.Username}, "followee_name": {"username_5"}}, "Success!")
	f.mustPost("/wrk2-api/post/compose", url.Values{"username": {"username_5"}, "user_id": {"5"}, "text": {"second @" + first.Username}}, "Success")
	// What a slow deployment has tried until it worked may have been done many times, and a timeline is read in part.
	own := f.timeline("user", "5")
	second := func(p post) bool { return strings.HasPrefix(p.Text, "second ") }
	if !second(own[0]) || slices.ContainsFunc(own[1:], second) || len(own[0].Mentions) != 1 ||
		own[0].Mentions[0].Username != first.Username {
		t.Errorf("it was written: %v", own)
	}
}
