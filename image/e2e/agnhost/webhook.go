package agnhost

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/spf13/cobra"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// webhook is an admission webhook with a path for each thing the tests want refused or changed.
type webhook struct {
	*program
	certFile, keyFile string
	port              int
	sidecarImage      string
}

// admitter decides about a request. No decision means that the connection is to break.
type admitter func(ctx context.Context, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse

func (p *program) newWebhook() *cobra.Command {
	h := &webhook{program: p}
	c := command("webhook", "Starts a HTTP server, useful for testing MutatingAdmissionWebhook and ValidatingAdmissionWebhook", h.run)
	c.Flags().StringVar(&h.certFile, "tls-cert-file", "", "File containing the default x509 Certificate for HTTPS.")
	c.Flags().StringVar(&h.keyFile, "tls-private-key-file", "", "File containing the default x509 private key matching --tls-cert-file.")
	c.Flags().IntVar(&h.port, "port", 443, "Secure port that the webhook listens on")
	c.Flags().StringVar(&h.sidecarImage, "sidecar-image", "", "Image to be used as the injected sidecar")
	return c
}

func (h *webhook) run(ctx context.Context) error {
	mux := http.NewServeMux()
	for path, admit := range map[string]admitter{
		"/always-allow-delay-5s":    h.allowLate,
		"/always-deny":              h.deny,
		"/add-label":                h.addLabel,
		"/pods":                     h.admitPods,
		"/pods/attach":              h.admitAttach,
		"/mutating-pods":            h.mutatePods,
		"/mutating-pods-sidecar":    h.addSidecar,
		"/configmaps":               h.admitConfigMaps,
		"/mutating-configmaps":      h.mutateConfigMaps,
		"/custom-resource":          h.admitCustomResource,
		"/mutating-custom-resource": h.mutateData,
		"/crd":                      h.admitCRD,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { h.review(w, r, admit) })
	}
	mux.HandleFunc("/readyz", ok)
	return h.serveWebhook(ctx, mux, h.port, h.certFile, h.keyFile)
}

// serveWebhook serves what an API server calls, which is always encrypted.
func (p *program) serveWebhook(ctx context.Context, mux http.Handler, port int, certFile, keyFile string) error {
	config, err := p.keyPair(certFile, keyFile)
	if err != nil {
		return p.klog.fatalf("%v", err)
	}
	return together(ctx, p.serve(fmt.Sprintf(":%d", port), &http.Server{Handler: mux, TLSConfig: config}))
}

func ok(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }

// reviewVersions are the versions of AdmissionReview in use. Their fields are the same.
var reviewVersions = []string{"admission.k8s.io/v1", "admission.k8s.io/v1beta1"}

// review reads a request, lets admit decide, and answers in the version it was asked in.
func (h *webhook) review(w http.ResponseWriter, r *http.Request, admit admitter) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if ct := r.Header.Get("Content-Type"); ct != "application/json" {
		h.klog.errorf("contentType=%s, expect application/json", ct)
		http.Error(w, "expect application/json", http.StatusUnsupportedMediaType)
		return
	}
	h.klog.debugf(2, "handling request: %s", body)
	var in admissionv1.AdmissionReview
	err = json.Unmarshal(body, &in)
	if err == nil && in.Request == nil {
		err = fmt.Errorf("there is no request in it")
	}
	if err != nil {
		msg := fmt.Sprintf("Request could not be decoded: %v", err)
		h.klog.errorf("%s", msg)
		http.Error(w, msg, http.StatusBadRequest)
		return
	}
	if in.Kind != "AdmissionReview" || !slices.Contains(reviewVersions, in.APIVersion) {
		msg := fmt.Sprintf("Unsupported group version kind: %v", in.GroupVersionKind())
		h.klog.errorf("%s", msg)
		http.Error(w, msg, http.StatusBadRequest)
		return
	}
	response := admit(r.Context(), in.Request)
	if response == nil {
		panic(http.ErrAbortHandler)
	}
	response.UID = in.Request.UID
	data, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: in.TypeMeta, Response: response})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h.klog.debugf(2, "sending response: %s", data)
	w.Header().Set("Content-Type", "application/json")
	w.Write(data)
}

func allowed() *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Allowed: true}
}

func denied(message string) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: message}}
}

// deniedBecause gives a reason instead of a message, which the API server words differently.
func deniedBecause(reason metav1.StatusReason) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{Reason: reason}}
}

func patched(patch string) *admissionv1.AdmissionResponse {
	kind := admissionv1.PatchTypeJSONPatch
	return &admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(patch), PatchType: &kind}
}

// refused is the answer to what makes no sense.
func (h *webhook) refused(err error) *admissionv1.AdmissionResponse {
	h.klog.errorf("%v", err)
	return denied(err.Error())
}

// expect checks that a request is about the given resource and reads its object.
func (h *webhook) expect(r *admissionv1.AdmissionRequest, resource metav1.GroupVersionResource, object any) error {
	if r.Resource != resource {
		return fmt.Errorf("expect resource to be %s, got %s", resource, r.Resource)
	}
	return json.Unmarshal(subject(r), object)
}

// subject is the object a request is about: the old one if it is about to go.
func subject(r *admissionv1.AdmissionRequest) []byte {
	if r.Operation == admissionv1.Delete {
		return r.OldObject.Raw
	}
	return r.Object.Raw
}
