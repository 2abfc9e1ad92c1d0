package astronomy

import (
	"context"
	"net/http"

	"github.com/aiopslab/aiopslab/kit"
)

// Look opens the home page, with a picture on it, as browsers of the load generator do.
func Look(ctx context.Context, env *kit.Env) error {
	s, err := start(ctx, env, "browser")
	if err != nil {
		return err
	}
	defer s.Close()
	plain := &http.Client{Transport: env.HTTPTransport(), Timeout: flagTimeout}
	defer plain.CloseIdleConnections()
	g := &loadgen{
		s: s, host: "http://frontend-proxy:8080", client: s.HTTPClient(visitTimeout), plain: plain, stats: map[string]*visits{},
	}
	return (&shopper{g: g}).look(ctx, "/", products[0])
}
