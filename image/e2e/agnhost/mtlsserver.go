package agnhost

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

// newMTLSServer returns the sub-command that tells a client which SPIFFE identity it has shown.
func (p *program) newMTLSServer() *cobra.Command {
	var listen, credentialsFile, trustFile string
	c := command("mtlsserver", "Server is configured to build mTLS with client and echo client's spiffe identity", func(ctx context.Context) error {
		if listen == "" || credentialsFile == "" || trustFile == "" {
			return errors.New("missing required flags")
		}
		if _, err := p.trustBundle(trustFile); err != nil {
			return fmt.Errorf("error while serving: while reading SPIFFE trust anchors: %w", err)
		}
		config, err := p.keyPair(credentialsFile, credentialsFile)
		if err != nil {
			return fmt.Errorf("error while serving: while loading server key pair: %w", err)
		}
		// Clients may be signed by different authorities, so it is the handler that verifies them.
		config.ClientAuth = tls.RequestClientCert
		mux := http.NewServeMux()
		mux.HandleFunc("GET /spiffe-echo", func(w http.ResponseWriter, r *http.Request) {
			p.handleSPIFFE(w, r, trustFile)
		})
		return together(ctx, p.serve(listen, &http.Server{
			Handler:        mux,
			TLSConfig:      config,
			ReadTimeout:    30 * time.Second,
			WriteTimeout:   30 * time.Second,
			MaxHeaderBytes: 1 << 20,
		}))
	})
	c.Flags().StringVar(&listen, "listen", "", "<address>:<port> to listen on")
	c.Flags().StringVar(&credentialsFile, "server-creds", "", "Credential bundle with the server key and certificate chain")
	c.Flags().StringVar(&trustFile, "spiffe-trust-bundle", "", "Trust bundle for verifying client certificates")
	return c
}

func (p *program) handleSPIFFE(w http.ResponseWriter, r *http.Request, trustFile string) {
	const required = "SPIFFE client certificate authentication required"
	if len(r.TLS.PeerCertificates) == 0 {
		http.Error(w, required, http.StatusUnauthorized)
		return
	}
	leaf, between := r.TLS.PeerCertificates[0], x509.NewCertPool()
	for _, c := range r.TLS.PeerCertificates[1:] {
		between.AddCert(c)
	}
	roots, err := p.trustBundle(trustFile) // It may have been renewed.
	if err != nil {
		p.log.Printf("Error while reading SPIFFE trust anchors: %v", err)
		http.Error(w, "Internal Error", http.StatusInternalServerError)
		return
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Intermediates: between, Roots: roots}); err != nil {
		p.log.Printf("Error while verifying SPIFFE client certificate: %v", err)
		http.Error(w, required, http.StatusUnauthorized)
		return
	}
	if len(leaf.URIs) != 1 {
		p.log.Printf("SPIFFE client certificate did not have 1 URI SAN, count: %d", len(leaf.URIs))
		http.Error(w, "Malformed SPIFFE certificate", http.StatusUnauthorized)
		return
	}
	fmt.Fprintf(w, "Client Identity: %s", leaf.URIs[0])
}
