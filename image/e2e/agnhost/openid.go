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
// would: by what the issuer named in it publishes under OpenID Connect.
func (p *program) newIssuerDiscovery() *cobra.Command {
	var tokenPath, audience string
	c := command("test-service-account-issuer-discovery", "Tests the ServiceAccountIssuerDiscovery feature", func(ctx context.Context) error {
		raw, err := p.env.ReadFile(tokenPath)
		if err != nil {
			return p.fatal(err)
		}
		p.log.Print("OK: Got token")
		p.log.Print("validating with in-cluster discovery")
		client, _, err := inClusterClient(p.env)
		if err != nil {
			return p.fatal(err)
		}
		defer closeIdle(client)
		if err = p.validate(oidc.ClientContext(ctx, client), string(raw), audience); err == nil {
			return nil
		}
		p.log.Print("failed to validate with in-cluster discovery: ", err)
		// An issuer outside the cluster gets no credentials of it.
		p.log.Print("falling back to validating with external discovery")
		transport := p.env.HTTPTransport()
		defer transport.CloseIdleConnections()
		if err := p.validate(oidc.ClientContext(ctx, &http.Client{Transport: transport}), string(raw), audience); err != nil {
			return p.fatal(err)
		}
		return nil
	})
	c.Flags().StringVar(&tokenPath, "token-path", "", "Path to read service account token from.")
	c.Flags().StringVar(&audience, "audience", "", "Audience to check on received token.")
	return c
}

// tokenClaims are what a service account's token says.
type tokenClaims struct {
	Issuer     string `json:"iss"`
	Subject    string `json:"sub"`
	Audience   any    `json:"aud"`
	Expiry     int64  `json:"exp"`
	Kubernetes struct {
		Namespace      string `json:"namespace"`
		ServiceAccount struct {
			Name string `json:"name"`
			UID  string `json:"uid"`
		} `json:"serviceaccount"`
	} `json:"kubernetes.io"`
}

func (p *program) validate(ctx context.Context, raw, audience string) error {
	claims, err := unverifiedClaims(raw)
	if err != nil {
		return err
	}
	p.log.Printf("OK: got issuer %s", claims.Issuer)
	p.log.Printf("Full, not-validated claims: \n%#v", claims)
	provider, err := oidc.NewProvider(ctx, claims.Issuer)
	if err != nil {
		return err
	}
	p.log.Printf("OK: Constructed OIDC provider for issuer %v", claims.Issuer)
	token, err := provider.Verifier(&oidc.Config{
		ClientID: audience,
		// What the API server signs with.
		SupportedSigningAlgs: []string{oidc.RS256, oidc.ES256, oidc.ES384, oidc.ES512},
	}).Verify(ctx, raw)
	if err != nil {
		return err
	}
	p.log.Print("OK: Validated signature on JWT")
	var verified tokenClaims
	if err := token.Claims(&verified); err != nil {
		return err
	}
	p.log.Print("OK: Got valid claims from token!")
	p.log.Printf("Full, validated claims: \n%#v", verified)
	return nil
}

// unverifiedClaims reads a token that nobody has verified yet, to find out who could.
func unverifiedClaims(raw string) (tokenClaims, error) {
	var claims tokenClaims
	parts := strings.Split(strings.TrimSpace(raw), ".")
	if len(parts) != 3 {
		return claims, errors.New("the token is not a JWT")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(payload, &claims)
	}
	if err != nil {
		return claims, fmt.Errorf("read the token's claims: %w", err)
	}
	return claims, nil
}
