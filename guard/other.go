package guard

import (
	"bytes"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// filter makes of a document what the agent may see of it.
type filter func(contentType string, doc []byte) ([]byte, error)

// closedPaths are those that tell of the machine the API server runs on, its command line, its users
// and their clients. Its metrics count, for every resource, who did what how often.
var closedPaths = []string{"debug", "logs", "flagz", "statusz", "configz", "metrics"}

// openPaths are those with nothing to hide.
var openPaths = []string{"version", "healthz", "livez", "readyz", "openid", ".well-known"}

// serveOther answers requests that are not about resources: discovery, documents and health.
func (g *Guard) serveOther(w http.ResponseWriter, r *http.Request, from *caller) {
	p := strings.TrimSuffix(r.URL.Path, "/")
	if p != "" && path.Clean(p) != p {
		writeNoPage(w)
		return
	}
	parts := strings.Split(strings.TrimPrefix(p, "/"), "/")
	x := &exchange{guard: g, from: from}
	switch {
	case slices.Contains(closedPaths, parts[0]):
		writeStatus(w, forbidden(from.name(r.Context()), strings.ToLower(r.Method), "path \""+r.URL.Path+"\"",
			"it is for the cluster's own administrators"))
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		writeStatus(w, apierrors.NewMethodNotSupported(schema.GroupResource{}, strings.ToLower(r.Method)))
		return
	case slices.Contains(openPaths, parts[0]):
	case p == "":
		x.json, x.filter = true, g.veil.paths
	case parts[0] == "api" && len(parts) <= 2:
		x.json, x.filter = true, g.veil.discovery
	case parts[0] == "apis" && len(parts) <= 3 && (len(parts) < 2 || !g.veil.hidesGroup(parts[1])):
		x.json, x.filter = true, g.veil.discovery
	case p == "/openapi/v2":
		x.filter = g.veil.openAPI
	case p == "/openapi/v3":
		x.json, x.filter = true, g.veil.openAPI
	case strings.HasPrefix(p, "/openapi/v3/") && !(len(parts) > 3 && parts[2] == "apis" && g.veil.hidesGroup(parts[3])):
	default:
		writeNoPage(w)
		return
	}
	x.forward(w, r)
}

// mentions reports whether a document may name a hidden group.
func (v *veil) mentions(doc []byte) bool {
	return slices.ContainsFunc(v.groups, func(g string) bool {
		return bytes.Contains(doc, []byte(g)) || bytes.Contains(doc, []byte(reversed(g)))
	})
}

// reversed is how the names of definitions begin: org.chaos-mesh for chaos-mesh.org.
func reversed(group string) string {
	parts := strings.Split(group, ".")
	slices.Reverse(parts)
	return strings.Join(parts, ".")
}

// paths filters the list of the API server's paths.
func (v *veil) paths(_ string, doc []byte) ([]byte, error) {
	return edit(doc, func(name string, value []byte) ([]byte, error) {
		if name != "paths" {
			return value, nil
		}
		return sift(value, func(item []byte) bool {
			p := strings.Split(strings.Trim(string(item), `"/`), "/")
			return !slices.Contains(closedPaths, p[0]) && !(len(p) > 1 && p[0] == "apis" && v.hidesGroup(p[1]))
		})
	})
}

// discovery filters lists of groups, in both forms.
func (v *veil) discovery(_ string, doc []byte) ([]byte, error) {
	if !v.mentions(doc) {
		return doc, nil
	}
	return edit(doc, func(name string, value []byte) ([]byte, error) {
		switch name {
		case "groups":
			return sift(value, func(item []byte) bool {
				all, err := fields(item)
				return err == nil && !v.hidesGroup(text(all, "name"))
			})
		case "items":
			return sift(value, func(item []byte) bool {
				all, err := fields(item)
				if err != nil {
					return false
				}
				all, err = fields(valueOr(all, "metadata", "{}"))
				return err == nil && !v.hidesGroup(text(all, "name"))
			})
		}
		return value, nil
	})
}

func valueOr(all []field, name, missing string) []byte {
	if v := value(all, name); v != nil {
		return v
	}
	return []byte(missing)
}

// hidesPath reports whether a path of an OpenAPI document is one of a hidden group.
func (v *veil) hidesPath(p string) bool {
	parts := strings.Split(strings.Trim(p, "/"), "/")
	return len(parts) > 1 && parts[0] == "apis" && v.hidesGroup(parts[1])
}

// hidesDefinition reports whether a definition of an OpenAPI document is one of a hidden group.
func (v *veil) hidesDefinition(name string) bool {
	return slices.ContainsFunc(v.groups, func(g string) bool { return strings.HasPrefix(name, reversed(g)+".") })
}

// openAPI filters the second version's document, in both encodings, and the index of the third's.
func (v *veil) openAPI(contentType string, doc []byte) ([]byte, error) {
	switch {
	case !v.mentions(doc):
		return doc, nil
	case strings.Contains(contentType, "protobuf"):
		return v.openAPIProto(doc)
	}
	unless := func(hidden func(string) bool) func(string, []byte) ([]byte, error) {
		return func(name string, value []byte) ([]byte, error) {
			if hidden(name) {
				return nil, nil
			}
			return value, nil
		}
	}
	return edit(doc, func(name string, value []byte) ([]byte, error) {
		switch name {
		case "paths":
			return edit(value, unless(v.hidesPath))
		case "definitions":
			return edit(value, unless(v.hidesDefinition))
		}
		return value, nil
	})
}

func (v *veil) openAPIProto(b []byte) ([]byte, error) {
	doc := &openapi_v2.Document{}
	if err := proto.Unmarshal(b, doc); err != nil {
		return nil, err
	}
	if doc.Paths != nil {
		doc.Paths.Path = slices.DeleteFunc(doc.Paths.Path, func(p *openapi_v2.NamedPathItem) bool {
			return v.hidesPath(p.GetName())
		})
	}
	if d := doc.Definitions; d != nil {
		d.AdditionalProperties = slices.DeleteFunc(d.AdditionalProperties, func(s *openapi_v2.NamedSchema) bool {
			return v.hidesDefinition(s.GetName())
		})
	}
	return proto.Marshal(doc)
}

// replaceBody makes b the body of an answer.
func replaceBody(resp *http.Response, b []byte) {
	resp.Body = io.NopCloser(bytes.NewReader(b))
	resp.ContentLength = int64(len(b))
	resp.Header.Del("Content-Length")
	resp.TransferEncoding = nil
}
