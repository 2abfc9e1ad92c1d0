package agnhost

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
)

// newInClusterClient returns the sub-command that asks the API server for its health again and
// again, and shows by hashes which tokens it used.
func (p *program) newInClusterClient() *cobra.Command {
	var interval int
	c := command("inclusterclient", `Periodically poll the Kubernetes "/healthz" endpoint`, func(ctx context.Context) error {
		p.klog.infof("started")
		config, err := inClusterConfig(p.env)
		if err != nil {
			return p.fatalf("err: %v", err)
		}
		authenticate := config.WrapTransport
		config.WrapTransport = func(rt http.RoundTripper) http.RoundTripper {
			return authenticate(&tokenLogger{p, rt})
		}
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			return p.fatalf("err: %v", err)
		}
		defer closeIdle(client)
		tick := time.NewTicker(time.Duration(max(interval, 1)) * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return ctx.Err()
			}
			p.klog.infof("calling /healthz")
			if body, err := fetch(ctx, client, config.Host+"/healthz"); err != nil && ctx.Err() == nil {
				p.klog.errorf("status=failed")
				p.klog.errorf("error checking /healthz: %v\n%s\n", err, body)
			}
		}
	})
	c.Flags().IntVar(&interval, "poll-interval", 30, "poll interval of call to /healthz in seconds")
	return c
}

// fetch gets a page. A status other than 200 is an error.
func fetch(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the server answered %s", resp.Status)
	}
	return body, err
}

// tokenLogger logs a hash of the credentials each request carries.
type tokenLogger struct {
	*program
	rt http.RoundTripper
}

func (t *tokenLogger) RoundTrip(r *http.Request) (*http.Response, error) {
	if header := r.Header.Get("Authorization"); header != "" {
		hash := sha256.Sum256([]byte("salt|" + header))
		t.klog.infof("authz_header=%s", base64.RawURLEncoding.EncodeToString(hash[:]))
	} else {
		t.klog.errorf("authz_header=<empty>")
	}
	return t.rt.RoundTrip(r)
}

// WrappedRoundTripper shows what is inside to those who close idle connections.
func (t *tokenLogger) WrappedRoundTripper() http.RoundTripper { return t.rt }
