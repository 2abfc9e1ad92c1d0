package incluster

import (
	"golang.org/x/oauth2"

	"github.com/aiopslab/aiopslab/kit"
)

// tokenSource reads the token from its file, each time.
type tokenSource struct{ env *kit.Env }

func (s tokenSource) Token() (*oauth2.Token, error) {
	t, err := token(s.env)
	if err != nil {
		return nil, err
	}
	return &oauth2.Token{AccessToken: t}, nil
}
