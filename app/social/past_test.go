package social

import (
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
