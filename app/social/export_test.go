package social

import (
	"math/rand/v2"

	"github.com/aiopslab/aiopslab/kit/past"
)

// Newcomer is somebody who registered in the past: a name, the last name, and the name of a picture's file.
type Newcomer struct{ Username, LastName, Picture string }

// Newcomers are who has registered in a past, as services draw them.
func Newcomers(p *past.Past) (list []Newcomer) {
	for _, n := range newcomersBefore(p, rand.New(rand.NewPCG(p.Seed, 0xda7a))) {
		list = append(list, Newcomer{n.Account.Account.Username, n.Account.Account.LastName, n.Picture.File.Name})
	}
	return list
}
