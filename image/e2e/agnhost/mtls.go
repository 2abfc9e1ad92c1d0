package agnhost

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

// pollInterval is the time between two requests of the client. Specs wait half a minute for one to succeed.
const pollInterval = 10 * time.Second

// newMTLSServer returns the sub-command that tells clients which identity their certificate gives them.
func (p *program) newMTLSServer() *cobra.Command {
	var listen, own, trusted string
	c := command("mtlsserver", "Tell clients the SPIFFE identity in their certificate",
		func(ctx context.Context) error {
			config, err := p.keyPair(own, own)
			if err != nil {
				return err
			}
			config.ClientAuth = tls.RequireAndVerifyClientCert
			// The kubelet renews the file, so each connection reads it.
			config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
				pool, err := p.certificates(trusted)
				fresh := config.Clone()
				fresh.ClientCAs = pool
				return fresh, err
			}
			mux := http.NewServeMux()
			mux.HandleFunc("GET /spiffe-echo", func(w http.ResponseWriter, r *http.Request) {
				uris := r.TLS.PeerCertificates[0].URIs
				if len(uris) != 1 {
					http.Error(w, fmt.Sprintf("the certificate has %d URIs, not one", len(uris)),
						http.StatusUnauthorized)
					return
				}
				fmt.Fprintf(w, "Client Identity: %s", uris[0]) // Specs search for this.
			})
			return together(ctx, p.serve(listen, &http.Server{Handler: mux, TLSConfig: config}))
		})
	c.Flags().StringVar(&listen, "listen", "", "ADDRESS:PORT to listen at")
	c.Flags().StringVar(&own, "server-creds", "", "file with the server's key and certificates")
	c.Flags().StringVar(&trusted, "spiffe-trust-bundle", "", "file with the authorities of clients")
	return c
}

// newMTLSClient returns the sub-command that asks such a server again and again.
func (p *program) newMTLSClient() *cobra.Command {
	var url, trusted, own string
	c := command("mtlsclient", "Fetch a page again and again, with a certificate", func(ctx context.Context) error {
		for {
			body, err := p.fetchWith(ctx, url, trusted, own)
			if err != nil {
				p.log.Printf("fetch %s: %v", url, err)
			} else {
				p.log.Printf("Got response body: %s", body) // Specs search for this.
			}
			if err := sleep(ctx, pollInterval); err != nil {
				return err
			}
		}
	})
	c.Flags().StringVar(&url, "fetch-url", "", "page to fetch")
	c.Flags().StringVar(&trusted, "server-trust-bundle", "", "file with the authorities of the server")
	c.Flags().StringVar(&own, "client-cred-bundle", "", "file with the client's key and certificates")
	return c
}

// fetchWith fetches a page with the credentials that are in the files now.
func (p *program) fetchWith(ctx context.Context, url, trusted, own string) (string, error) {
	config, err := p.keyPair(own, own)
	if err != nil {
		return "", err
	}
	if config.RootCAs, err = p.certificates(trusted); err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	transport := p.env.HTTPTransport()
	transport.TLSClientConfig = config
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return string(body), err
}

func (p *program) certificates(file string) (*x509.CertPool, error) {
	data, err := p.env.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s has no certificate", file)
	}
	return pool, nil
}
