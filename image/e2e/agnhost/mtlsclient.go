package agnhost

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"
)

const mtlsInterval = 10 * time.Second // between two requests of the client

// newMTLSClient returns the sub-command that asks a server, again and again, whom it takes its
// client for. Files are read each time, so that renewed certificates are used.
func (p *program) newMTLSClient() *cobra.Command {
	var target, trustFile, credentialsFile string
	c := command("mtlsclient", "Client is configured to build mTLS with server", func(ctx context.Context) error {
		if target == "" || trustFile == "" || credentialsFile == "" {
			return errors.New("missing required flags")
		}
		if _, err := url.ParseRequestURI(target); err != nil {
			return fmt.Errorf("invalid --fetch-url: %w", err)
		}
		for {
			if err := sleep(ctx, mtlsInterval); err != nil {
				return err
			}
			body, err := p.fetchMutual(ctx, target, trustFile, credentialsFile)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				p.klog.errorf("while sending requests to the server: %v", err)
			default:
				p.log.Printf("Got response body: %s", body)
			}
		}
	})
	c.Flags().StringVar(&target, "fetch-url", "", "server URL to poll")
	c.Flags().StringVar(&trustFile, "server-trust-bundle", "", "File with trust anchors to verify the server certificate")
	c.Flags().StringVar(&credentialsFile, "client-cred-bundle", "", "File with client key and certificate chain")
	return c
}

func (p *program) fetchMutual(ctx context.Context, target, trustFile, credentialsFile string) (string, error) {
	roots, err := p.trustBundle(trustFile)
	if err != nil {
		return "", fmt.Errorf("read the service trust bundle: %w", err)
	}
	own, err := p.credentialBundle(credentialsFile)
	if err != nil {
		return "", fmt.Errorf("read the client credential bundle: %w", err)
	}
	transport := p.env.HTTPTransport()
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, "GET", target, nil)
	if err != nil {
		return "", err
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return "", fmt.Errorf("while getting URL: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode >= 300 {
		return "", fmt.Errorf("non-2xx status %d %q", resp.StatusCode, resp.Status)
	}
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func (p *program) trustBundle(file string) (*x509.CertPool, error) {
	data, err := p.env.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s holds no certificate", file)
	}
	return pool, nil
}

// credentialBundle reads a key and its certificates from one file, as the kubelet writes it.
func (p *program) credentialBundle(file string) (tls.Certificate, error) {
	var cert tls.Certificate
	rest, err := p.env.ReadFile(file)
	if err != nil {
		return cert, err
	}
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		switch block.Type {
		case "PRIVATE KEY":
			if cert.PrivateKey, err = x509.ParsePKCS8PrivateKey(block.Bytes); err != nil {
				return cert, err
			}
		case "CERTIFICATE":
			cert.Certificate = append(cert.Certificate, block.Bytes)
		}
	}
	if cert.PrivateKey == nil || len(cert.Certificate) == 0 {
		return cert, fmt.Errorf("%s needs a private key and a certificate", file)
	}
	return cert, nil
}
