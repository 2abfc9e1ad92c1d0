package social

import (
	"bytes"
	"image/png"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/kit/past"
)

// TestPostsOfThePast holds that posts were written over weeks, as many in the last minute as now, that their IDs tell
// their times, and that everybody draws the same from a seed.
func TestPostsOfThePast(t *testing.T) {
	join := time.Now()
	p := past.New(7, join.Add(-time.Second), join, past.Cast{})
	p.Began = join.Add(-5 * time.Second)
	posts, links := postsBefore(p, rand.New(rand.NewPCG(7, 1)))
	again, _ := postsBefore(p, rand.New(rand.NewPCG(7, 1)))
	if d := cmp.Diff(posts, again); d != "" {
		t.Error(d)
	}
	recent, old := 0, 0
	for _, d := range posts {
		at := time.UnixMilli(d.Post.Timestamp)
		if d.Post.PostID>>22 != d.Post.Timestamp || d.ID.Timestamp().Unix() != at.Unix() {
			t.Fatalf("a post of %v has the ID %d and the document %v", at, d.Post.PostID, d.ID)
		}
		if !at.Before(p.Began) || join.Sub(at) > 20*24*time.Hour {
			t.Fatalf("a post is of %v", at)
		}
		if join.Sub(at) < time.Minute {
			recent++
		}
		if join.Sub(at) > 24*time.Hour {
			old++
		}
	}
	if recent < 70 || recent > 150 || old < 20 || len(posts) > 1500 || len(links) < len(posts) {
		t.Errorf("%d posts, %d of the last minute and %d older than a day, with %d links", len(posts), recent, old, len(links))
	}
}

// TestNewcomersOfThePast holds that users have registered over weeks, each once, that documents tell their times, that
// pictures can be looked at, and that everybody draws the same from a seed.
func TestNewcomersOfThePast(t *testing.T) {
	join := time.Now()
	p := past.New(7, join.Add(-time.Second), join, past.Cast{})
	list := newcomersBefore(p, rand.New(rand.NewPCG(7, 1)))
	if d := cmp.Diff(list, newcomersBefore(p, rand.New(rand.NewPCG(7, 1)))); d != "" {
		t.Error(d)
	}
	names, ids, files, old := map[string]bool{}, map[int64]bool{}, map[string]bool{}, 0
	for i, n := range list {
		at, uploaded := n.Account.ID.Timestamp(), n.Picture.ID.Timestamp()
		if join.Sub(at) > 20*24*time.Hour+introduced || i > 0 && at.Before(list[i-1].Account.ID.Timestamp()) {
			t.Errorf("newcomer %d registered at %v", i, at)
		}
		if !n.Vertex.ID.Timestamp().Equal(at) || uploaded.Before(at) || !uploaded.Before(p.Began) {
			t.Errorf("who registered at %v is known since %v, and in the picture since %v", at, n.Vertex.ID.Timestamp(), uploaded)
		}
		if join.Sub(at) > 24*time.Hour {
			old++
		}
		a := n.Account.Account
		if a.UserID < userCount || a.UserID != n.Vertex.Vertex.UserID {
			t.Errorf("%s has the IDs %d and %d", a.Username, a.UserID, n.Vertex.Vertex.UserID)
		}
		if _, err := png.Decode(bytes.NewReader(n.Picture.File.Data)); err != nil {
			t.Errorf("the picture of %s: %v", a.Username, err)
		}
		names[a.Username], ids[a.UserID], files[n.Picture.File.Name] = true, true, true
	}
	if old < 50 || len(list) < 80 || len(list) > 400 {
		t.Errorf("%d have registered, %d longer than a day ago", len(list), old)
	}
	if len(names) != len(list) || len(ids) != len(list) || len(files) != len(list) {
		t.Errorf("%d have %d names, %d IDs, %d pictures", len(list), len(names), len(ids), len(files))
	}
}
