package apps

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/aiopslab/aiopslab/app/social"
	"github.com/aiopslab/aiopslab/test/labtest"
)

// call sends a form and fails the test if it is refused.
func (x *application) call(t *testing.T, path string, form url.Values) string {
	t.Helper()
	body, err := x.get(path + "?" + form.Encode())
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// reads waits until a user's timeline has a post.
func (x *application) reads(t *testing.T, kind, user, text string) {
	t.Helper()
	q := url.Values{"user_id": {user}, "start": {"0"}, "stop": {"10"}}
	labtest.Await(t, func() (none struct{}, err error) {
		body, err := x.get("/wrk2-api/" + kind + "-timeline/read?" + q.Encode())
		if err != nil {
			return none, err
		}
		var posts []struct{ Text string }
		if err := json.Unmarshal([]byte(body), &posts); err != nil {
			return none, err
		}
		if !slices.ContainsFunc(posts, func(p struct{ Text string }) bool { return p.Text == text }) {
			err = fmt.Errorf("%q is not on the %s timeline of %s: %s", text, kind, user, body)
		}
		return none, err
	})
}

// upload stores a picture.
func (x *application) upload(t *testing.T) {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	part, err := w.CreateFormFile("media", "cat.png")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(part, "a picture")
	w.Close()
	resp, err := x.http.Post("http://media-frontend."+x.Namespace+":8081/upload-media", w.FormDataContentType(), &body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("upload: %s", resp.Status)
	}
}

func TestSocialNetwork(t *testing.T) {
	t.Parallel()
	x := deploy(t, social.App(), "/wrk2-api/user-timeline/read?user_id=1&start=0&stop=10")
	x.countsMatch(t)

	for id, name := range map[string]string{"9001": "alice", "9002": "bob"} {
		x.call(t, "/wrk2-api/user/register", url.Values{"user_id": {id}, "username": {name}, "password": {"secret"}, "first_name": {"a"}, "last_name": {"b"}})
	}
	x.call(t, "/wrk2-api/user/follow", url.Values{"user_name": {"bob"}, "followee_name": {"alice"}})
	compose := func(text string) {
		t.Helper()
		x.call(t, "/wrk2-api/post/compose", url.Values{"username": {"alice"}, "user_id": {"9001"}, "text": {text}, "media_ids": {`["1"]`}, "media_types": {`["png"]`}, "post_type": {"0"}})
	}
	compose("hello")
	x.reads(t, "home", "9002", "hello")
	x.upload(t)
	// As in the original, nobody asks for the long form of a short URL.
	x.tracesConnect(t, edge{"url-shorten-service", "memcached"})

	l := x.load(t, 10)
	l.survive(t, "the database of posts and its cache are killed", func() {
		x.kill(t, "post-storage-mongodb")
		x.kill(t, "post-storage-memcached")
	})
	x.reads(t, "home", "9002", "hello")
	l.survive(t, "compose-post-service is killed", func() { x.kill(t, "compose-post-service") })
	l.survive(t, "every deployment is restarted", func() { x.restart(t) })
	x.reads(t, "user", "9001", "hello")
	compose("again")
	x.reads(t, "home", "9002", "again")
	l.end()

	x.logsAnswer(t, "post-storage-service", "info", "Starting the post-storage-service server")
	x.exports(t)
}
