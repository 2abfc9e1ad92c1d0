package social

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit/past"
)

// postRate is how many posts users write in a second, about.
const postRate = 2

const (
	letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	base32  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
)

// drawText draws a text of letters and digits, which has those of base 32 if it is a part of a short URL.
func drawText(r *rand.Rand, from string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = from[r.IntN(len(from))]
	}
	return string(b)
}

// datedPost is a post with the ID that its time gives it.
type datedPost struct {
	ID   bson.ObjectID `bson:"_id"`
	Post post          `bson:",inline"`
}

// datedLink is a short URL with the ID that its time gives it.
type datedLink struct {
	ID   bson.ObjectID `bson:"_id"`
	Link link          `bson:",inline"`
}

// postsBefore draws the posts of the past, the first one first, and the short URLs in them. All services draw the same.
func postsBefore(p *past.Past, r *rand.Rand) (posts []datedPost, links []datedLink) {
	times := p.Fade(r, p.Began, postRate, service.Grown)
	slices.Reverse(times)
	postIDs, linkIDs, machine := service.NewIDs(r), service.NewIDs(r), r.Int64N(1<<12)
	who := func() creator {
		n := r.Int64N(userCount)
		return creator{n, fmt.Sprintf("username_%d", n)}
	}
	for _, t := range times {
		d := post{
			PostID: (t.UnixMilli()&(1<<41-1))<<22 | machine<<10, Creator: who(), Timestamp: t.UnixMilli(),
			Text: drawText(r, letters, 256),
		}
		for range 1 + r.IntN(3) {
			m := who()
			d.Mentions = append(d.Mentions, m)
			d.Text += " @" + m.Username
		}
		for range 1 + r.IntN(5) {
			l := link{shortHost + drawText(r, base32, shortLen), "http://" + drawText(r, letters, 64)}
			d.URLs = append(d.URLs, l)
			d.Text += " " + l.Short
			links = append(links, datedLink{linkIDs.At(t), l})
		}
		for range 1 + r.IntN(4) {
			d.Media = append(d.Media, medium{1e17 + r.Int64N(9e17), "png"})
		}
		posts = append(posts, datedPost{postIDs.At(t), d})
	}
	return posts, links
}

// recall writes the posts of the past.
func (p *postStorage) recall(ctx context.Context, of *past.Past, r *rand.Rand) error {
	posts, _ := postsBefore(of, r)
	return service.InsertAll(ctx, p.posts, service.Documents(posts))
}

// recall writes the short URLs of the past.
func (u *urlShorten) recall(ctx context.Context, of *past.Past, r *rand.Rand) error {
	_, links := postsBefore(of, r)
	return service.InsertAll(ctx, u.urls, service.Documents(links))
}

// recall writes the timelines of the past behind what was written since.
func (u *userTimeline) recall(ctx context.Context, of *past.Past, r *rand.Rand) error {
	posts, _ := postsBefore(of, r)
	n, err := u.users.CountDocuments(ctx, bson.M{"posts.post_id": posts[0].Post.PostID})
	if err != nil || n > 0 { // Another replica has written them.
		return err
	}
	lines, first := map[int64]bson.A{}, map[int64]bson.ObjectID{}
	ids := service.NewIDs(r)
	for _, d := range posts {
		user := d.Post.Creator.UserID
		if first[user].IsZero() {
			first[user] = ids.At(d.ID.Timestamp())
		}
		entry := bson.M{"post_id": d.Post.PostID, "timestamp": d.Post.Timestamp}
		lines[user] = append(bson.A{entry}, lines[user]...)
	}
	var writes []mongo.WriteModel
	for user, list := range lines {
		writes = append(writes, mongo.NewUpdateOneModel().SetFilter(bson.M{"user_id": user}).SetUpsert(true).
			SetUpdate(bson.M{
				"$push":        bson.M{"posts": bson.M{"$each": list, "$slice": timelineLength}},
				"$setOnInsert": bson.M{"_id": first[user]},
			}))
	}
	return service.WriteAll(ctx, u.users, writes)
}

// readersOf are who finds a post on the home timeline: the followers of its author, and who is mentioned in it.
func readersOf(followers map[int64][]int64, p post) []int64 {
	readers := slices.Clone(followers[p.Creator.UserID])
	for _, m := range p.Mentions {
		readers = append(readers, m.UserID)
	}
	return unique(readers)
}

// recall writes the home timelines of the past. Who followed whom is as it was when the application was deployed.
func (h *homeTimeline) recall(ctx context.Context, of *past.Past, r *rand.Rand) error {
	posts, _ := postsBefore(of, r)
	followers := map[int64][]int64{}
	for _, v := range graph() {
		followers[v.UserID] = v.Followers
	}
	lines := map[int64]service.Command{}
	for _, d := range posts {
		for _, user := range readersOf(followers, d.Post) {
			if lines[user] == nil {
				lines[user] = service.Command{"ZADD", timelineKey(user)}
			}
			lines[user] = append(lines[user], d.Post.Timestamp, d.Post.PostID)
		}
	}
	commands := make([]service.Command, 0, len(lines))
	for _, user := range slices.Sorted(maps.Keys(lines)) {
		commands = append(commands, lines[user])
	}
	for some := range slices.Chunk(commands, linesAtOnce) {
		if _, err := h.redis.Do(ctx, some...); err != nil {
			return err
		}
	}
	return nil
}

// linesAtOnce is how many home timelines are written at once.
const linesAtOnce = 50
