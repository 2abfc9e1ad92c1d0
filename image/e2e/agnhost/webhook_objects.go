package agnhost

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var configMaps = metav1.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// labelled and dataObject are what is looked at in an object, whatever its kind.
type (
	labelled struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	dataObject struct {
		Data map[string]string `json:"data"`
	}
)

func (h *webhook) allowLate(ctx context.Context, _ *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	h.klog.debugf(2, "always-allow-with-delay sleeping for 5 seconds")
	if sleep(ctx, 5*time.Second) != nil {
		return nil
	}
	h.klog.debugf(2, "calling always-allow")
	r := allowed()
	r.Result = &metav1.Status{Message: "this webhook allows all requests"}
	return r
}

func (h *webhook) deny(context.Context, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	h.klog.debugf(2, "calling always-deny")
	return denied("this webhook denies all requests")
}

// addLabel makes sure that an object has the label added-label=yes.
func (h *webhook) addLabel(_ context.Context, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	h.klog.debugf(2, "calling add-label")
	var object labelled
	if err := json.Unmarshal(r.Object.Raw, &object); err != nil {
		return h.refused(err)
	}
	value, has := object.Metadata.Labels["added-label"]
	switch {
	case len(object.Metadata.Labels) == 0:
		return patched(`[{"op":"add","path":"/metadata/labels","value":{"added-label":"yes"}}]`)
	case !has:
		return patched(`[{"op":"add","path":"/metadata/labels/added-label","value":"yes"}]`)
	case value != "yes":
		return patched(`[{"op":"replace","path":"/metadata/labels/added-label","value":"yes"}]`)
	}
	return allowed()
}

func (h *webhook) admitConfigMaps(_ context.Context, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	h.klog.debugf(2, "admitting configmaps")
	var object dataObject
	if err := h.expect(r, configMaps, &object); err != nil {
		return h.refused(err)
	}
	return judge(r, object,
		"the configmap contains unwanted key and value",
		"the configmap cannot be deleted because it contains unwanted key and value")
}

func (h *webhook) admitCustomResource(_ context.Context, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	h.klog.debugf(2, "admitting custom resource")
	var object dataObject
	if err := json.Unmarshal(subject(r), &object); err != nil {
		return h.refused(err)
	}
	return judge(r, object,
		"the custom resource contains unwanted data",
		"the custom resource cannot be deleted because it contains unwanted key and value")
}

// judge refuses what the object itself asks to be refused.
func judge(r *admissionv1.AdmissionRequest, object dataObject, unwanted, undeletable metav1.StatusReason) *admissionv1.AdmissionResponse {
	writes := r.Operation == admissionv1.Create || r.Operation == admissionv1.Update
	switch wish := object.Data[testLabel]; {
	case wish == "webhook-disallow" && writes:
		return deniedBecause(unwanted)
	case wish == "webhook-nondeletable" && r.Operation == admissionv1.Delete:
		return deniedBecause(undeletable)
	}
	return allowed()
}

func (h *webhook) mutateConfigMaps(ctx context.Context, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	if err := h.expect(r, configMaps, new(dataObject)); err != nil {
		return h.refused(err)
	}
	return h.mutateData(ctx, r)
}

// mutateData adds to an object's data in two stages, so that two webhooks can build on each other.
func (h *webhook) mutateData(_ context.Context, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	h.klog.debugf(2, "mutating %s", r.Resource.Resource)
	var object dataObject
	if err := json.Unmarshal(r.Object.Raw, &object); err != nil {
		return h.refused(err)
	}
	const stage = `[{"op":"add","path":"/data/mutation-stage-%d","value":"yes"}]`
	switch {
	case object.Data["mutation-stage-1"] == "yes":
		return patched(fmt.Sprintf(stage, 2))
	case object.Data["mutation-start"] == "yes":
		return patched(fmt.Sprintf(stage, 1))
	}
	return allowed()
}

// admitCRD refuses a definition with an unwanted label.
func (h *webhook) admitCRD(_ context.Context, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	h.klog.debugf(2, "admitting crd")
	if r.Resource.Group != "apiextensions.k8s.io" || r.Resource.Resource != "customresourcedefinitions" {
		return h.refused(fmt.Errorf("expect resource to be customresourcedefinitions.apiextensions.k8s.io but got %v", r.Resource))
	}
	var object labelled
	if err := json.Unmarshal(r.Object.Raw, &object); err != nil {
		return h.refused(err)
	}
	if object.Metadata.Labels[testLabel] == "webhook-disallow" {
		return denied("the crd contains unwanted label")
	}
	return allowed()
}
