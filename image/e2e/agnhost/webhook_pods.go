package agnhost

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var pods = metav1.GroupVersionResource{Version: "v1", Resource: "pods"}

// testLabel is the label, or the key, by which tests say what they want to happen.
const testLabel = "webhook-e2e-test"

// admitPods refuses pods with an unwanted label or container name. One label makes it never answer.
func (h *webhook) admitPods(ctx context.Context, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	h.klog.debugf(2, "admitting pods")
	var pod corev1.Pod
	if err := h.expect(r, pods, &pod); err != nil {
		return h.refused(err)
	}
	var problems []string
	switch pod.Labels[testLabel] {
	case "webhook-disallow":
		problems = append(problems, "the pod contains unwanted label;")
	case "wait-forever":
		<-ctx.Done()
		return nil
	}
	for _, c := range pod.Spec.Containers {
		if strings.Contains(c.Name, "webhook-disallow") {
			problems = append(problems, "the pod contains unwanted container name;")
		}
	}
	if len(problems) > 0 {
		return denied(strings.Join(problems, " "))
	}
	return allowed()
}

// admitAttach refuses to attach a terminal to one container of one pod.
func (h *webhook) admitAttach(_ context.Context, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	h.klog.debugf(2, "handling attaching pods")
	if r.Name != "to-be-attached-pod" {
		return allowed()
	}
	if r.SubResource != "attach" {
		return h.refused(fmt.Errorf("expect subresource to be attach, got %s", r.SubResource))
	}
	var options corev1.PodAttachOptions
	if err := h.expect(r, pods, &options); err != nil {
		return h.refused(err)
	}
	h.klog.debugf(2, "podAttachOptions=%#v", options)
	if !options.Stdin || options.Container != "container1" {
		return allowed()
	}
	return denied("attaching to pod 'to-be-attached-pod' is not allowed")
}

// mutatePods gives a pod of a certain name an init container.
func (h *webhook) mutatePods(_ context.Context, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	h.klog.debugf(2, "mutating pods")
	var pod corev1.Pod
	if err := h.expect(r, pods, &pod); err != nil {
		return h.refused(err)
	}
	const name = "webhook-added-init-container"
	if pod.Name != "webhook-to-be-mutated" || hasContainer(pod.Spec.InitContainers, name) {
		return allowed()
	}
	return patched(`[{"op":"add","path":"/spec/initContainers","value":[{"image":"webhook-added-image","name":"` + name + `","resources":{}}]}]`)
}

// addSidecar gives every pod a container more.
func (h *webhook) addSidecar(_ context.Context, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	h.klog.debugf(2, "mutating pods")
	if h.sidecarImage == "" {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{
			Status: metav1.StatusFailure, Message: "No image specified by the sidecar-image parameter", Code: 500,
		}}
	}
	var pod corev1.Pod
	if err := h.expect(r, pods, &pod); err != nil {
		return h.refused(err)
	}
	const name = "webhook-added-sidecar"
	if hasContainer(pod.Spec.Containers, name) {
		return allowed()
	}
	image, err := json.Marshal(h.sidecarImage)
	if err != nil {
		return h.refused(err)
	}
	return patched(fmt.Sprintf(`[{"op":"add","path":"/spec/containers/-","value":{"image":%s,"name":"%s","resources":{}}}]`, image, name))
}

func hasContainer(list []corev1.Container, name string) bool {
	return slices.ContainsFunc(list, func(c corev1.Container) bool { return c.Name == name })
}
