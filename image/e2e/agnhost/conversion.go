package agnhost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The versions of the suite's custom resource: the first has hostPort, the second host and port.
const joinedVersion, splitVersion = "stable.example.com/v1", "stable.example.com/v2"

// conversionReview is apiextensions.k8s.io's ConversionReview. Of objects, only what changes is read, so
// nothing else in them is lost.
type conversionReview struct {
	metav1.TypeMeta `json:",inline"`
	Request         *conversionRequest  `json:"request,omitempty"`
	Response        *conversionResponse `json:"response,omitempty"`
}

type conversionRequest struct {
	UID               types.UID `json:"uid"`
	DesiredAPIVersion string    `json:"desiredAPIVersion"`
	Objects           []fields  `json:"objects"`
}

type conversionResponse struct {
	UID              types.UID     `json:"uid"`
	ConvertedObjects []fields      `json:"convertedObjects"`
	Result           metav1.Status `json:"result"`
}

// fields are those of an object, as they were written.
type fields map[string]json.RawMessage

// newConversionWebhook returns the sub-command that converts the suite's custom resource.
func (p *program) newConversionWebhook() *cobra.Command {
	const short = "Convert custom resources for an API server"
	return p.webhookCommand("crd-conversion-webhook", short, func(mux *http.ServeMux) {
		mux.HandleFunc("/crdconvert", func(w http.ResponseWriter, r *http.Request) {
			var review conversionReview
			if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
				http.Error(w, fmt.Sprintf("this is no ConversionReview: %v", err), http.StatusBadRequest)
				return
			}
			review.Request, review.Response = nil, convertAll(review.Request)
			reply(w, review)
		})
	})
}

func convertAll(r *conversionRequest) *conversionResponse {
	response := &conversionResponse{
		UID: r.UID, ConvertedObjects: r.Objects, Result: metav1.Status{Status: metav1.StatusSuccess},
	}
	for _, object := range r.Objects {
		if err := object.convert(r.DesiredAPIVersion); err != nil {
			response.ConvertedObjects = nil
			response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
			break
		}
	}
	return response
}

// convert changes an object to the other version, in place.
func (f fields) convert(to string) error {
	from := f.take("apiVersion")
	switch {
	case from == joinedVersion && to == splitVersion:
		if f["hostPort"] != nil {
			host, port, ok := strings.Cut(f.take("hostPort"), ":")
			if !ok {
				return errors.New("hostPort is not HOST:PORT")
			}
			f.put("host", host)
			f.put("port", port)
		}
	case from == splitVersion && to == joinedVersion:
		if f["host"] != nil || f["port"] != nil {
			f.put("hostPort", f.take("host")+":"+f.take("port"))
		}
	default:
		return fmt.Errorf("there is no conversion from %q to %q", from, to)
	}
	f.put("apiVersion", to)
	return nil
}

// take removes a text from an object and returns it.
func (f fields) take(name string) string {
	var text string
	_ = json.Unmarshal(f[name], &text) // What is not a text counts as empty.
	delete(f, name)
	return text
}

func (f fields) put(name, text string) {
	f[name], _ = json.Marshal(text) // A text can always be written.
}

// webhookCommand returns a sub-command that serves what an API server calls, over TLS as it insists.
func (p *program) webhookCommand(use, short string, routes func(*http.ServeMux)) *cobra.Command {
	var certFile, keyFile string
	var port int
	c := command(use, short, func(ctx context.Context) error {
		config, err := p.keyPair(certFile, keyFile)
		if err != nil {
			return err
		}
		mux := http.NewServeMux()
		mux.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
		routes(mux)
		return together(ctx, p.serve(fmt.Sprintf(":%d", port), &http.Server{Handler: mux, TLSConfig: config}))
	})
	c.Flags().StringVar(&certFile, "tls-cert-file", "", "file with the certificate")
	c.Flags().StringVar(&keyFile, "tls-private-key-file", "", "file with its key")
	c.Flags().IntVar(&port, "port", 443, "port to serve at")
	return c
}

// reply sends a document to an API server.
func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // The connection is gone: nobody to tell.
}
