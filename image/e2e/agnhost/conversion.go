package agnhost

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// newConversionWebhook returns the sub-command that converts custom resources of the group
// stable.example.com between v1, which has hostPort, and v2, which has host and port.
func (p *program) newConversionWebhook() *cobra.Command {
	var certFile, keyFile string
	var port int
	c := command("crd-conversion-webhook", "Starts HTTP server on port 443 for testing CustomResourceConversionWebhook", func(ctx context.Context) error {
		mux := http.NewServeMux()
		mux.HandleFunc("/crdconvert", p.handleConvert)
		mux.HandleFunc("/readyz", ok)
		return p.serveWebhook(ctx, mux, port, certFile, keyFile)
	})
	c.Flags().StringVar(&certFile, "tls-cert-file", "", "File containing the default x509 Certificate for HTTPS.")
	c.Flags().StringVar(&keyFile, "tls-private-key-file", "", "File containing the default x509 private key matching --tls-cert-file.")
	c.Flags().IntVar(&port, "port", 443, "Secure port that the webhook listens on")
	return c
}

// conversionReview is apiextensions.k8s.io's ConversionReview, which is the same in v1 and v1beta1.
// Objects are read without their types, so nothing in them is lost.
type conversionReview struct {
	metav1.TypeMeta `json:",inline"`
	Request         *conversionRequest  `json:"request,omitempty"`
	Response        *conversionResponse `json:"response,omitempty"`
}

type conversionRequest struct {
	UID               types.UID        `json:"uid"`
	DesiredAPIVersion string           `json:"desiredAPIVersion"`
	Objects           []map[string]any `json:"objects"`
}

type conversionResponse struct {
	UID              types.UID        `json:"uid"`
	ConvertedObjects []map[string]any `json:"convertedObjects"`
	Result           metav1.Status    `json:"result"`
}

var conversionVersions = []string{"apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"}

func (p *program) handleConvert(w http.ResponseWriter, r *http.Request) {
	fail := func(format string, args ...any) {
		msg := fmt.Sprintf(format, args...)
		p.klog.errorf("%s", msg)
		http.Error(w, msg, http.StatusBadRequest)
	}
	contentType := r.Header.Get("Content-Type")
	accept := r.Header.Get("Accept")
	answerType := acceptable(accept)
	body, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
		fail("failed to read body: %v", err)
		return
	case !slices.Contains(conversionTypes, contentType):
		fail("invalid Content-Type header `%s`", contentType)
		return
	case answerType == "":
		fail("invalid accept header `%s`", accept)
		return
	}
	p.klog.debugf(2, "handling request: %s", body)
	var review conversionReview
	if err := decodeConversion(body, contentType, &review); err != nil || review.Request == nil {
		fail("failed to deserialize body (%s) with error %v", body, err)
		return
	}
	if review.Kind != "ConversionReview" || !slices.Contains(conversionVersions, review.APIVersion) {
		fail("Unsupported group version kind: %v", review.GroupVersionKind())
		return
	}
	review.Response = p.convertAll(review.Request)
	review.Request = nil
	data, err := json.Marshal(review)
	if err == nil && answerType == "application/yaml" {
		data, err = yaml.JSONToYAML(data)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	p.klog.debugf(2, "sending response: %s", data)
	w.Header().Set("Content-Type", answerType)
	w.Write(data)
}

// conversionTypes are the encodings of a review, the preferred one first.
var conversionTypes = []string{"application/json", "application/yaml"}

// acceptable picks an encoding the client takes.
func acceptable(accept string) string {
	if accept == "" {
		return conversionTypes[0]
	}
	for clause := range strings.SplitSeq(accept, ",") {
		kind, _, err := mime.ParseMediaType(clause)
		if err != nil {
			continue
		}
		for _, t := range conversionTypes {
			if kind == t || kind == "application/*" || kind == "*/*" {
				return t
			}
		}
	}
	return ""
}

// decodeConversion reads JSON or YAML. Numbers keep all their digits.
func decodeConversion(body []byte, contentType string, review *conversionReview) error {
	if contentType == "application/yaml" {
		var err error
		if body, err = yaml.YAMLToJSON(body); err != nil {
			return err
		}
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	return d.Decode(review)
}

func (p *program) convertAll(r *conversionRequest) *conversionResponse {
	answer := &conversionResponse{UID: r.UID, ConvertedObjects: []map[string]any{}}
	for _, object := range r.Objects {
		if err := convert(object, r.DesiredAPIVersion); err != nil {
			p.klog.errorf("%v", err)
			answer.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
			answer.ConvertedObjects = nil
			return answer
		}
		answer.ConvertedObjects = append(answer.ConvertedObjects, object)
	}
	answer.Result.Status = metav1.StatusSuccess
	return answer
}

// convert changes an object to another version, in place.
func convert(object map[string]any, to string) error {
	const v1, v2 = "stable.example.com/v1", "stable.example.com/v2"
	from, _ := object["apiVersion"].(string)
	switch {
	case from == to:
		return fmt.Errorf("conversion from a version to itself should not call the webhook: %s", to)
	case from != v1 && from != v2:
		return fmt.Errorf("unexpected conversion version %q", from)
	case to != v1 && to != v2:
		return fmt.Errorf("unexpected conversion version %q", to)
	}
	text := func(name string) string {
		s, _ := object[name].(string)
		return s
	}
	_, hasHost := object["host"]
	_, hasPort := object["port"]
	_, hasHostPort := object["hostPort"]
	switch {
	case to == v2 && hasHostPort:
		parts := strings.Split(text("hostPort"), ":")
		if len(parts) != 2 {
			return fmt.Errorf("invalid hostPort value `%v`", object["hostPort"])
		}
		object["host"], object["port"] = parts[0], parts[1]
		delete(object, "hostPort")
	case to == v1 && (hasHost || hasPort):
		object["hostPort"] = text("host") + ":" + text("port")
		delete(object, "host")
		delete(object, "port")
	}
	object["apiVersion"] = to
	return nil
}
