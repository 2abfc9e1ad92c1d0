package social

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit/past"
)

const (
	// newcomerRate is how many users register in a second, about: one in an hour. The load has nobody register, and
	// nobody misses one in the time of a run.
	newcomerRate = 1. / 3600
	// introduced is how long after it has registered a newcomer uploads its picture, at most.
	introduced = 10 * time.Minute
	// pictureSize is how wide and high a picture is, in pixels.
	pictureSize = 16
)

var (
	firstNames = []string{"Ada", "Ben", "Carla", "Deniz", "Elif", "Femi", "Grace", "Hugo", "Ines", "Jonas", "Kofi"}
	lastNames  = []string{"Adler", "Brandt", "Costa", "Diaz", "Eriksen", "Farkas", "Gupta", "Horak", "Ito", "Jensen"}
)

// newcomer is a user who registered in the past, with the place that it has in the graph and a picture of it. Each
// document has the ID that its time gives it.
type newcomer struct {
	Account datedAccount
	Vertex  datedVertex
	Picture datedFile
}

type datedAccount struct {
	ID      bson.ObjectID `bson:"_id"`
	Account account       `bson:",inline"`
}

type datedVertex struct {
	ID     bson.ObjectID `bson:"_id"`
	Vertex vertex        `bson:",inline"`
}

type datedFile struct {
	ID   bson.ObjectID `bson:"_id"`
	File mediaFile     `bson:",inline"`
}

// newcomersBefore draws who has registered in the past, the first one first. All services draw the same. Nobody follows
// them, and they have written nothing.
func newcomersBefore(p *past.Past, r *rand.Rand) (list []newcomer) {
	times := p.Fade(r, p.Began.Add(-introduced), newcomerRate, service.Grown)
	slices.Reverse(times)
	accounts, vertices, files := service.NewIDs(r), service.NewIDs(r), service.NewIDs(r)
	named := map[string]bool{}
	for _, t := range times {
		a := account{
			FirstName: firstNames[r.IntN(len(firstNames))], LastName: lastNames[r.IntN(len(lastNames))],
			Salt: drawText(r, base32, 26),
		}
		a.Username = fmt.Sprintf("%s_%s%d", strings.ToLower(a.FirstName), strings.ToLower(a.LastName), r.IntN(100))
		a.Password = passwordSum(drawText(r, letters, 12), a.Salt)
		file := mediaFile{Name: fmt.Sprintf("%d.png", r.Int64()), Type: "png", Data: picture(r)}
		uploaded := t.Add(time.Duration(r.Int64N(int64(introduced))))
		if named[a.Username] {
			continue
		}
		named[a.Username], a.UserID = true, userID(a.Username)
		list = append(list, newcomer{
			datedAccount{accounts.At(t), a},
			datedVertex{vertices.At(t), vertex{a.UserID, []int64{}, []int64{}}},
			datedFile{files.At(uploaded), file},
		})
	}
	return list
}

// picture draws a picture of one colour.
func picture(r *rand.Rand) []byte {
	c := color.NRGBA{uint8(r.Uint32()), uint8(r.Uint32()), uint8(r.Uint32()), 0xff}
	m := image.NewPaletted(image.Rect(0, 0, pictureSize, pictureSize), color.Palette{c})
	var b bytes.Buffer
	_ = png.Encode(&b, m) // A buffer takes everything.
	return b.Bytes()
}

// recall writes the accounts of those who registered in the past, and says what was logged of them.
func (u *user) recall(ctx context.Context, of *past.Past, r *rand.Rand) error {
	list := newcomersBefore(of, r)
	var docs []any
	for _, n := range list {
		docs = append(docs, n.Account)
	}
	if err := service.InsertAll(ctx, u.users, docs); err != nil {
		return err
	}
	for _, n := range slices.Backward(list) {
		at := n.Account.ID.Timestamp().Add(time.Duration(r.Int64N(int64(time.Second))))
		line := service.Logged(func(log *slog.Logger) { logRegistered(log, at, n.Account.Account) })
		if of.Log == nil || !of.Log(at, line) {
			break
		}
	}
	return nil
}

// recall writes the places in the graph of those who registered in the past.
func (g *socialGraph) recall(ctx context.Context, of *past.Past, r *rand.Rand) error {
	var docs []any
	for _, n := range newcomersBefore(of, r) {
		docs = append(docs, n.Vertex)
	}
	return service.InsertAll(ctx, g.users, docs)
}

// recall writes the pictures of those who registered in the past.
func (m *mediaFrontend) recall(ctx context.Context, of *past.Past, r *rand.Rand) error {
	var docs []any
	for _, n := range newcomersBefore(of, r) {
		docs = append(docs, n.Picture)
	}
	return service.InsertAll(ctx, m.files, docs)
}
