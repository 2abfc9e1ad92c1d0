package adopt

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

type runtimeObject = runtime.Object

// wide are the kinds of objects that are in no namespace.
var wide = []string{
	"APIService", "CSIDriver", "CSINode", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding",
	"ClusterTrustBundle", "CustomResourceDefinition", "DeviceClass", "FlowSchema", "IngressClass",
	"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration", "Node",
	"PersistentVolume", "PriorityClass", "PriorityLevelConfiguration", "RuntimeClass", "StorageClass",
	"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
	"VolumeAttachment", "VolumeAttributesClass",
}

// namespace is the application's, if it was given or nothing else is known.
func (o Options) namespace() string {
	if o.Namespace != "" {
		return o.Namespace
	}
	return "test-" + o.Name
}

// choose leaves out what cannot be part of an application, and says why.
func (s *source) choose() error {
	kept := map[string]string{}
	var list []object
	for _, u := range s.objects {
		if why := unfit(u); why != "" {
			s.note("left out: %s %s (%s): %s", u.GetKind(), u.GetName(), u.where, why)
			continue
		}
		if u.GetKind() == "Namespace" {
			continue // The application's is made for it.
		}
		key := u.GetKind() + " " + u.GetName()
		if other, ok := kept[key+" "+u.GetNamespace()]; ok {
			return fmt.Errorf("%s: %s is in %s already", u.where, key, other)
		}
		kept[key+" "+u.GetNamespace()] = u.where
		list = append(list, u)
	}
	s.objects = list
	return nil
}

// unfit says why an object cannot be part of an application, or "".
func unfit(u object) string {
	kind := u.GetKind()
	if u.GetAnnotations()[hook] != "" {
		return "it is a hook of Helm, which nothing but Helm runs"
	}
	switch {
	case strings.HasSuffix(kind, "WebhookConfiguration"):
		return "it would answer for the whole cluster; an application has one namespace"
	case kind == "CustomResourceDefinition":
		return "it is of the whole cluster; objects of its kinds are left out, too"
	case slices.Contains(wide, kind):
		return "it is of the whole cluster, and an application has one namespace; what needs it may not work"
	case !scheme.Scheme.Recognizes(u.GroupVersionKind()):
		return "Kubernetes itself has no " + u.GetAPIVersion() + " " + kind + ", and no operator for it is there"
	}
	return ""
}

// oneNamespace takes the namespace off all objects, and returns it. There may be one.
func (s *source) oneNamespace() (string, error) {
	in := map[string]string{}
	for _, u := range s.objects {
		if ns := u.GetNamespace(); ns != "" {
			in[ns] = fmt.Sprintf("%s %s (%s)", u.GetKind(), u.GetName(), u.where)
			u.SetNamespace("")
		}
	}
	names := slices.Sorted(maps.Keys(in))
	switch len(names) {
	case 0:
		return "", nil
	case 1:
		return names[0], nil
	}
	return "", fmt.Errorf("the objects are in several namespaces, and an application has one: %s is in %s, %s in %s; "+
		"adopt the manifests of one of them", in[names[0]], names[0], in[names[1]], names[1])
}
