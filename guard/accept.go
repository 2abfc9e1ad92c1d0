package guard

import (
	"mime"
	"net/http"
	"net/url"
	"strings"
)

const (
	jsonType     = "application/json"
	protobufType = "application/vnd.kubernetes.protobuf"
)

// form is how a client wants objects.
type form struct {
	as      string // "Table", "PartialObjectMetadata", "PartialObjectMetadataList"; empty for as they are
	include string // what a table's rows carry: "None", "Metadata" or "Object"
}

func (f form) partial() bool { return strings.HasPrefix(f.as, "PartialObjectMetadata") }

// ask rewrites the header and the query of a request for objects so that the answer can be read, and
// returns what the client asked for. If spec is set, the answer has whole objects.
func ask(h http.Header, query url.Values, spec bool) form {
	types := jsonTypes(h.Values("Accept"))
	_, params, _ := mime.ParseMediaType(types[0])
	f := form{as: params["as"]}
	switch {
	case f.as == "Table":
		f.include = query.Get("includeObject")
		if f.include == "" {
			f.include = "Metadata"
		}
		if spec {
			query.Set("includeObject", "Object")
		} else if f.include == "None" {
			query.Set("includeObject", "Metadata")
		}
	case f.partial() && spec:
		types = []string{jsonType}
	}
	h.Set("Accept", strings.Join(types, ", "))
	return f
}

// jsonTypes are the media types of Accept headers that are JSON, or that become so by changing the
// encoding alone. There is always one.
func jsonTypes(accept []string) []string {
	var out []string
	for clause := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		t, params, err := mime.ParseMediaType(clause)
		if err != nil {
			continue
		}
		delete(params, "q")
		switch t {
		case jsonType, protobufType, "application/yaml", "application/cbor":
			if params["as"] == "" {
				delete(params, "g")
				delete(params, "v")
			}
			out = append(out, mime.FormatMediaType(jsonType, params))
		case "*/*", "application/*":
			out = append(out, jsonType)
		}
	}
	if len(out) == 0 {
		return []string{jsonType}
	}
	return out
}
