package incluster

import (
	"time"

	"golang.org/x/oauth2"

	"github.com/aiopslab/aiopslab/app/kit"
)

// tokenSource reads the token from its file. A token is kept for a minute, as client-go does.
type tokenSource struct{ env *kit.Env }

func (s tokenSource) Token() (*oauth2.Token, error) {
	t, err := token(s.env)
	if err != nil {
		return nil, err
	}
	return &oauth2.Token{AccessToken: t, Expiry: time.Now().Add(time.Minute)}, nil
}
