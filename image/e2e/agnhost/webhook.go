package agnhost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// admitter decides about a request. It returns an error to refuse it, and a JSON patch to change it.
type admitter func(ctx context.Context, r *admissionv1.AdmissionRequest) (patch string, err error)

// errSilent makes the webhook break the connection instead of answering.
var errSilent = errors.New("no answer")

// newWebhook returns the sub-command that is an admission webhook, with a path for each thing that the
// specs want refused or changed. The specs search for the reasons given here.
func (p *program) newWebhook() *cobra.Command {
	var sidecar string
	c := p.webhookCommand("webhook", "Admit, refuse or change objects for an API server", func(mux *http.ServeMux) {
		for path, admit := range map[string]admitter{
			"/always-allow-delay-5s": allowLate,
			"/always-deny":           refuse("this webhook denies all requests"),
			"/add-label":             addLabel,
			"/pods":                  admitPod,
			"/pods/attach":           admitAttach,
			"/mutating-pods":         addInitContainer,
			"/mutating-pods-sidecar": addSidecar(sidecar),
			"/configmaps": admitData("the configmap contains unwanted key and value",
				"the configmap cannot be deleted because it contains unwanted key and value"),
			"/mutating-configmaps": advanceData,
			"/custom-resource": admitData("the custom resource contains unwanted data",
				"the custom resource cannot be deleted because it contains unwanted key and value"),
			"/mutating-custom-resource": advanceData,
			"/crd":                      admitLabel("the crd contains unwanted label"),
		} {
			mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { review(w, r, admit) })
		}
	})
	c.Flags().StringVar(&sidecar, "sidecar-image", "", "image of the container that /mutating-pods-sidecar adds")
	return c
}

// review answers in the version it was asked in: v1 and v1beta1 have the same fields.
func review(w http.ResponseWriter, r *http.Request, admit admitter) {
	var in admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Request == nil {
		http.Error(w, fmt.Sprintf("this is no AdmissionReview: %v", err), http.StatusBadRequest)
		return
	}
	patch, err := admit(r.Context(), in.Request)
	if errors.Is(err, errSilent) {
		panic(http.ErrAbortHandler)
	}
	out := &admissionv1.AdmissionResponse{UID: in.Request.UID, Allowed: err == nil}
	if err != nil {
		out.Result = &metav1.Status{Message: err.Error()}
	}
	if patch != "" {
		kind := admissionv1.PatchTypeJSONPatch
		out.Patch, out.PatchType = []byte(patch), &kind
	}
	reply(w, admissionv1.AdmissionReview{TypeMeta: in.TypeMeta, Response: out})
}

func refuse(reason string) admitter {
	return func(context.Context, *admissionv1.AdmissionRequest) (string, error) { return "", errors.New(reason) }
}

func allowLate(ctx context.Context, _ *admissionv1.AdmissionRequest) (string, error) {
	if sleep(ctx, 5*time.Second) != nil {
		return "", errSilent
	}
	return "", nil
}

// object is what is looked at in an object, whatever its kind. Specs write what is to become of it into
// a label or an entry of this name.
type object struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              corev1.PodSpec    `json:"spec"`
	Data              map[string]string `json:"data"`
}

const wish = "webhook-e2e-test"

// read returns the object a request is about: the old one if it is to be deleted. What has other fields
// of these names, such as a custom resource's spec, is read as far as it goes.
func read(r *admissionv1.AdmissionRequest) object {
	raw := r.Object.Raw
	if r.Operation == admissionv1.Delete {
		raw = r.OldObject.Raw
	}
	var o object
	_ = json.Unmarshal(raw, &o)
	return o
}

func admitLabel(reason string) admitter {
	return func(_ context.Context, r *admissionv1.AdmissionRequest) (string, error) {
		if read(r).Labels[wish] == "webhook-disallow" {
			return "", errors.New(reason)
		}
		return "", nil
	}
}

// admitPod refuses a pod by its label or by its containers' names, with both reasons if both apply. One
// label makes it never answer.
func admitPod(ctx context.Context, r *admissionv1.AdmissionRequest) (string, error) {
	pod := read(r)
	if pod.Labels[wish] == "wait-forever" {
		<-ctx.Done()
		return "", errSilent
	}
	_, err := admitLabel("the pod contains unwanted label")(ctx, r)
	for _, c := range pod.Spec.Containers {
		if strings.Contains(c.Name, "webhook-disallow") {
			err = errors.Join(err, errors.New("the pod contains unwanted container name"))
		}
	}
	return "", err
}

// admitAttach refuses a terminal to one container of one pod.
func admitAttach(_ context.Context, r *admissionv1.AdmissionRequest) (string, error) {
	var options corev1.PodAttachOptions
	if err := json.Unmarshal(r.Object.Raw, &options); err != nil {
		return "", err
	}
	if r.Name == "to-be-attached-pod" && options.Stdin && options.Container == "container1" {
		return "", errors.New("attaching to pod 'to-be-attached-pod' is not allowed")
	}
	return "", nil
}

func admitData(unwanted, undeletable string) admitter {
	return func(_ context.Context, r *admissionv1.AdmissionRequest) (string, error) {
		deletes := r.Operation == admissionv1.Delete
		switch read(r).Data[wish] {
		case "webhook-disallow":
			if !deletes {
				return "", errors.New(unwanted)
			}
		case "webhook-nondeletable":
			if deletes {
				return "", errors.New(undeletable)
			}
		}
		return "", nil
	}
}
