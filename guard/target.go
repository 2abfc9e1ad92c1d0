package guard

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// target is what a request is about, read from its path as the API server reads it.
type target struct {
	Verb        string
	Group       string
	Version     string
	Resource    string
	Namespace   string // empty for a namespace itself
	Name        string // as in the path; see objectName
	Subresource string
	Rest        []string // the path behind the subresource
}

// namespaceSubresources are what follows a namespace's name without being a resource in it.
var namespaceSubresources = []string{"status", "finalize"}

// connections are the subresources that connect to something else than the API.
var connections = []string{"exec", "attach", "portforward", "proxy"}

// parseTarget reads a request for a resource. It reports false for any other path, such as that of a
// discovery document.
func parseTarget(method string, u *url.URL) (target, bool) {
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	var t target
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		t.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		t.Group, t.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return target{}, false
	}
	t.Verb = verbs[method]
	watchPath := parts[0] == "watch" && len(parts) > 1
	if watchPath {
		t.Verb, parts = "watch", parts[1:]
	}
	if parts[0] == "namespaces" && len(parts) > 2 && !slices.Contains(namespaceSubresources, parts[2]) {
		t.Namespace, parts = parts[1], parts[2:]
	}
	t.Resource = parts[0]
	if len(parts) > 1 {
		t.Name = parts[1]
	}
	if len(parts) > 2 {
		t.Subresource, t.Rest = parts[2], parts[3:]
	}
	if !watchPath {
		t.refine(u)
	}
	return t, true
}

// verbs are what methods mean for an object.
var verbs = map[string]string{
	http.MethodGet: "get", http.MethodHead: "get", http.MethodPost: "create", http.MethodPut: "update",
	http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// refine tells apart what methods mean for objects, for collections and for connections.
func (t *target) refine(u *url.URL) {
	switch {
	case slices.Contains(connections, t.Subresource):
		t.Verb = "connect"
	case t.Name != "":
	case t.Verb == "delete":
		t.Verb = "deletecollection"
	case t.Verb == "get":
		t.Verb = "list"
		// Any value but these, none included, is a yes.
		if v, ok := u.Query()["watch"]; ok && v[0] != "0" && !strings.EqualFold(v[0], "false") {
			t.Verb = "watch"
		}
	}
}

// ambiguous reports whether a path that was parsed as t could be read in another way. The path behind
// a connection is not ours to judge.
func (t target) ambiguous(u *url.URL) bool {
	parts := strings.Split(strings.TrimSuffix(strings.TrimPrefix(u.Path, "/"), "/"), "/")
	if t.Verb == "connect" {
		parts = parts[:max(0, len(parts)-len(t.Rest))]
	}
	odd := func(s string) bool { return s == "" || s == "." || s == ".." || strings.Contains(s, "%") }
	return t.Verb == "" || slices.ContainsFunc(parts, odd)
}

// objectName is the name of the object. For connections to servers the path may have a scheme and a
// port around it.
func (t target) objectName() string {
	if t.Subresource == "proxy" {
		if _, name, _, ok := utilnet.SplitSchemeNamePort(t.Name); ok {
			return name
		}
	}
	return t.Name
}

// object is the object a request names.
func (t target) object() object {
	return object{group: t.Group, resource: t.Resource, namespace: t.Namespace, name: t.objectName()}
}

func (t target) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: t.Group, Resource: t.Resource}
}

// path is that of the object itself, or of the collection if there is no name.
func (t target) path() string {
	p := "/api/" + t.Version
	if t.Group != "" {
		p = "/apis/" + t.Group + "/" + t.Version
	}
	if t.Namespace != "" {
		p += "/namespaces/" + url.PathEscape(t.Namespace)
	}
	p += "/" + t.Resource
	if t.Name != "" {
		p += "/" + url.PathEscape(t.objectName())
	}
	return p
}

// journalled reports whether a request writes. Reviews are questions in the form of a creation.
func (t target) journalled(method string) bool {
	switch t.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return t.Group != "authorization.k8s.io" && t.Group != "authentication.k8s.io"
	case "connect":
		return t.Subresource != "proxy" ||
			method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions
	}
	return false
}
