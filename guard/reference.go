package guard

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type groupResource struct{ group, resource string }

// references are the resources whose objects can give away something hidden by what they refer to,
// and how that is found out.
var references = map[groupResource]func(v *veil, raw []byte) bool{}

func init() {
	const rbac, admission = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
	references[groupResource{"", "events"}] = hidesEvent
	references[groupResource{"events.k8s.io", "events"}] = hidesEvent
	references[groupResource{rbac, "clusterrolebindings"}] = hidesSubjects
	references[groupResource{rbac, "rolebindings"}] = hidesSubjects
	references[groupResource{admission, "validatingwebhookconfigurations"}] = hidesWebhooks
	references[groupResource{admission, "mutatingwebhookconfigurations"}] = hidesWebhooks
	references[groupResource{"apiregistration.k8s.io", "apiservices"}] = hidesBackend
	references[groupResource{"", "persistentvolumes"}] = hidesClaim
	references[groupResource{"certificates.k8s.io", "certificatesigningrequests"}] = hidesRequester
}

// reference is what an event says it is about.
type reference struct {
	APIVersion, Kind, Namespace, Name, UID string
}

// hidesEvent: an event is hidden with its source, and with any object that it is about.
func hidesEvent(v *veil, raw []byte) bool {
	var e struct {
		InvolvedObject, Regarding, Related *reference
		Source, DeprecatedSource           struct{ Component string }
		ReportingComponent                 string
		ReportingController                string
	}
	if json.Unmarshal(raw, &e) != nil {
		return true
	}
	for _, s := range []string{
		e.Source.Component, e.DeprecatedSource.Component, e.ReportingComponent,
		e.ReportingController,
	} {
		if s != "" && slices.ContainsFunc(v.sources, func(pattern string) bool { return glob(pattern, s) }) {
			return true
		}
	}
	for _, r := range []*reference{e.InvolvedObject, e.Regarding, e.Related} {
		if r != nil && v.hidesReference(*r) {
			return true
		}
	}
	return false
}

func (v *veil) hidesReference(r reference) bool {
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	if err != nil {
		return true
	}
	plural, _ := meta.UnsafeGuessKindToResource(gv.WithKind(r.Kind))
	o := object{group: gv.Group, resource: plural.Resource, namespace: r.Namespace, name: r.Name}
	if v.hides(o) {
		return true
	}
	// Events do not carry the labels of what they are about.
	byLabels := slices.ContainsFunc(v.rules, func(c rule) bool {
		return c.selector != nil && c.covers(o.group, o.resource)
	})
	return byLabels && v.events.hidden(r.UID, o, gv.Version, v)
}

// hidesSubjects: a binding is hidden if all it binds are hidden users or live in hidden namespaces.
func hidesSubjects(v *veil, raw []byte) bool {
	var b struct {
		Subjects []struct{ Kind, Name, Namespace string }
	}
	if json.Unmarshal(raw, &b) != nil {
		return true
	}
	if len(b.Subjects) == 0 {
		return false
	}
	for _, s := range b.Subjects {
		user := s.Kind == "User" && v.hidesUser(s.Name)
		account := s.Kind == "ServiceAccount" && v.hidesNamespace(s.Namespace)
		if !user && !account {
			return false
		}
	}
	return true
}

// hidesUser: service accounts are users with their namespace in the name.
func (v *veil) hidesUser(name string) bool {
	if slices.Contains(v.users, name) {
		return true
	}
	account, ok := strings.CutPrefix(name, "system:serviceaccount:")
	ns, _, _ := strings.Cut(account, ":")
	return ok && v.hidesNamespace(ns)
}

// service is a service that others refer to.
type service struct{ Namespace string }

// hidesWebhooks: a configuration is hidden if all its webhooks are served from hidden namespaces.
func hidesWebhooks(v *veil, raw []byte) bool {
	var c struct {
		Webhooks []struct {
			ClientConfig struct{ Service *service }
		}
	}
	if json.Unmarshal(raw, &c) != nil {
		return true
	}
	for _, w := range c.Webhooks {
		if w.ClientConfig.Service == nil || !v.hidesNamespace(w.ClientConfig.Service.Namespace) {
			return false
		}
	}
	return len(c.Webhooks) > 0
}

// hidesBackend: an aggregated API is hidden if it is served from a hidden namespace.
func hidesBackend(v *veil, raw []byte) bool {
	var s struct {
		Spec struct{ Service *service }
	}
	return json.Unmarshal(raw, &s) != nil || s.Spec.Service != nil && v.hidesNamespace(s.Spec.Service.Namespace)
}

// hidesClaim: a volume is hidden if its claim is.
func hidesClaim(v *veil, raw []byte) bool {
	var p struct {
		Spec struct{ ClaimRef *reference }
	}
	if json.Unmarshal(raw, &p) != nil {
		return true
	}
	c := p.Spec.ClaimRef
	return c != nil && v.hides(object{resource: "persistentvolumeclaims", namespace: c.Namespace, name: c.Name})
}

// hidesRequester: a certificate request is hidden if its user is.
func hidesRequester(v *veil, raw []byte) bool {
	var r struct {
		Spec struct{ Username string }
	}
	return json.Unmarshal(raw, &r) != nil || v.hidesUser(r.Spec.Username)
}

// maxReferred bounds what is remembered of objects that events refer to.
const maxReferred = 10_000

// referred remembers, by their UIDs, which objects are hidden for their labels: an object may be gone
// when its events are read.
type referred struct {
	look func(object) []byte

	mu    sync.Mutex
	known map[string]bool
}

func newReferred(look func(object) []byte) *referred {
	return &referred{look: look, known: map[string]bool{}}
}

func (r *referred) set(uid string, hidden bool) {
	if uid == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) >= maxReferred {
		clear(r.known)
	}
	r.known[uid] = hidden
}

// remember notes that an object is hidden.
func (r *referred) remember(raw []byte) {
	var m struct {
		Metadata struct{ UID string }
	}
	if json.Unmarshal(raw, &m) == nil {
		r.set(m.Metadata.UID, true)
	}
}

// hidden finds out whether the object with the UID is hidden for its labels.
func (r *referred) hidden(uid string, o object, version string, v *veil) bool {
	r.mu.Lock()
	hidden, known := r.known[uid]
	r.mu.Unlock()
	if known {
		return hidden
	}
	o.version = version
	if o.raw = r.look(o); o.raw == nil {
		return false
	}
	hidden = v.matches(o)
	r.set(uid, hidden)
	return hidden
}
