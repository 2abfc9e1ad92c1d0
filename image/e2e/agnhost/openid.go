package agnhost

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/coreos/go-oidc"
	"github.com/spf13/cobra"
)

// newIssuerDiscovery returns the sub-command that verifies a service account's token as a stranger
// would, by the keys that the issuer named in it publishes. The exit code tells.
func (p *program) newIssuerDiscovery() *cobra.Command {
	var file, audience string
	const use, short = "test-service-account-issuer-discovery", "Verify a token by what its issuer publishes"
	c := command(use, short, func(ctx context.Context) error {
		token, err := p.env.ReadFile(file)
		if err != nil {
			return err
		}
		inside, err := inClusterClient(p.env)
		if err != nil {
			return err
		}
		defer closeIdle(inside)
		// An issuer outside the cluster is asked without the cluster's credentials.
		transport := p.env.HTTPTransport()
		defer transport.CloseIdleConnections()
		var failures []error
		for _, client := range []*http.Client{inside, {Transport: transport}} {
			err := verifyToken(oidc.ClientContext(ctx, client), strings.TrimSpace(string(token)), audience)
			if err == nil {
				p.log.Print("the token is good")
				return nil
			}
			failures = append(failures, err)
		}
		return fmt.Errorf("in the cluster: %w; outside: %w", failures[0], failures[1])
	})
	c.Flags().StringVar(&file, "token-path", "", "file with the token")
	c.Flags().StringVar(&audience, "audience", "", "for whom the token must be")
	return c
}

func verifyToken(ctx context.Context, token, audience string) error {
	issuer, err := claimedIssuer(token)
	if err != nil {
		return err
	}
	provider, err := oidc.NewProvider(ctx, issuer)
	if err != nil {
		return err
	}
	// API servers sign with any of these.
	algorithms := []string{oidc.RS256, oidc.ES256, oidc.ES384, oidc.ES512}
	_, err = provider.Verifier(&oidc.Config{ClientID: audience, SupportedSigningAlgs: algorithms}).Verify(ctx, token)
	return err
}

// claimedIssuer reads the issuer that a token names. The issuer is asked for the keys.
func claimedIssuer(token string) (string, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", errors.New("the token is not a JWT")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	var claims struct{ Iss string }
	if err := json.Unmarshal(payload, &claims); err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	return claims.Iss, nil
}
