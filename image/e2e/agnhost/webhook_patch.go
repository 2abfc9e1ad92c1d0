package agnhost

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
)

// add returns the JSON patch that gives an object something. It replaces what is there.
func add(path string, value any) (string, error) {
	data, err := json.Marshal([]any{map[string]any{"op": "add", "path": path, "value": value}})
	return string(data), err
}

// addLabel makes sure that an object has the label added-label=yes.
func addLabel(_ context.Context, r *admissionv1.AdmissionRequest) (string, error) {
	const name, value = "added-label", "yes"
	switch labels := read(r).Labels; {
	case labels[name] == value:
		return "", nil
	case len(labels) == 0:
		return add("/metadata/labels", map[string]string{name: value})
	}
	return add("/metadata/labels/"+name, value)
}

// advanceData takes an object that asks for it one stage further, so that two webhooks can build on
// each other.
func advanceData(_ context.Context, r *admissionv1.AdmissionRequest) (string, error) {
	data := read(r).Data
	switch {
	case data["mutation-stage-1"] == "yes":
		return add("/data/mutation-stage-2", "yes")
	case data["mutation-start"] == "yes":
		return add("/data/mutation-stage-1", "yes")
	}
	return "", nil
}

// addInitContainer gives the pod of one name an init container.
func addInitContainer(_ context.Context, r *admissionv1.AdmissionRequest) (string, error) {
	pod := read(r)
	c := corev1.Container{Name: "webhook-added-init-container", Image: "webhook-added-image"}
	if pod.Name != "webhook-to-be-mutated" || hasContainer(pod.Spec.InitContainers, c.Name) {
		return "", nil
	}
	return add("/spec/initContainers", []corev1.Container{c})
}

// addSidecar gives every pod one more container.
func addSidecar(image string) admitter {
	return func(_ context.Context, r *admissionv1.AdmissionRequest) (string, error) {
		c := corev1.Container{Name: "webhook-added-sidecar", Image: image}
		switch {
		case image == "":
			return "", errors.New("the webhook was started without --sidecar-image")
		case hasContainer(read(r).Spec.Containers, c.Name):
			return "", nil
		}
		return add("/spec/containers/-", c)
	}
}

func hasContainer(list []corev1.Container, name string) bool {
	return slices.ContainsFunc(list, func(c corev1.Container) bool { return c.Name == name })
}
