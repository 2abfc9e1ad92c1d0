package guard

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// answer filters what the API server says about one resource.
type answer struct {
	veil   *veil
	target target
	form   form
}

// document filters an object, a list, a table or a status. It reports false if nothing is left
// because the object that was asked for is hidden.
func (a answer) document(doc []byte) ([]byte, bool, error) {
	all, err := fields(doc)
	if err != nil {
		return nil, false, err
	}
	var out []byte
	visible := true
	switch {
	case text(all, "kind") == "Status" && text(all, "apiVersion") == "v1":
		out, err = withoutManagers(doc)
	case text(all, "kind") == "Table":
		var rows int
		out, rows, err = a.table(all)
		visible = rows > 0 || a.target.Verb == "list" || a.target.Verb == "deletecollection"
	case value(all, "items") != nil && strings.HasSuffix(text(all, "kind"), "List"):
		out, err = a.list(all)
	default:
		if out, visible, err = a.object(doc, all); err == nil && visible && a.form.partial() {
			out, err = partial(out)
		}
	}
	if err != nil || !visible {
		return nil, visible, err
	}
	return likeBefore(doc, out), true, nil
}

// object cleans an object, whose fields are all, or reports that it is hidden.
func (a answer) object(raw []byte, all []field) ([]byte, bool, error) {
	if a.judges() {
		if o, err := a.identify(raw, all); err != nil || a.veil.hides(o) {
			return nil, false, err
		}
	}
	out, err := a.clean(raw, all)
	return out, true, err
}

// judges reports whether objects may be hidden. The answer to a write is about what the client wrote:
// whether it may was decided before.
func (a answer) judges() bool {
	switch a.target.Verb {
	case "create", "update", "patch", "delete":
		return false
	}
	return true
}

// identify says which object this is.
func (a answer) identify(raw []byte, all []field) (object, error) {
	m, err := fields(valueOr(all, "metadata", "{}"))
	if err != nil {
		return object{}, err
	}
	o := object{
		group: a.target.Group, resource: a.target.Resource, namespace: text(m, "namespace"), name: text(m, "name"),
		raw: raw,
	}
	if a.target.Subresource != "" || o.name == "" {
		// Not every subresource has the name, and none the labels.
		o.namespace, o.name, o.raw = a.target.Namespace, a.target.objectName(), nil
	}
	return o, nil
}

// clean removes what tells who touched an object, and what is in the name of a hidden group.
func (a answer) clean(raw []byte, all []field) ([]byte, error) {
	images := a.images()
	if !images && !bytes.Contains(raw, []byte(`"managedFields"`)) && !a.veil.annotated(raw) {
		return raw, nil
	}
	return editFields(raw, all, func(name string, v []byte) ([]byte, error) {
		switch {
		case name == "metadata":
			return a.veil.metadata(v)
		case name == "status" && images:
			return a.veil.nodeStatus(v)
		}
		return v, nil
	})
}

// images reports whether an object may have a list of images.
func (a answer) images() bool {
	return a.target.Group == "" && a.target.Resource == "nodes" && len(a.veil.images) > 0
}

// annotated reports whether the text may have annotations of hidden groups.
func (v *veil) annotated(raw []byte) bool {
	return slices.ContainsFunc(v.groups, func(g string) bool {
		return bytes.Contains(raw, []byte(g+"/")) || bytes.Contains(raw, []byte(`"`+stem(g)))
	})
}

// stem is how annotations of a group begin that are not in its name: Chaos Mesh notes the images of a pod that it has
// made fail in chaos-mesh-... .
func stem(group string) string {
	first, _, _ := strings.Cut(group, ".")
	return first + "-"
}

func (v *veil) metadata(raw []byte) ([]byte, error) {
	return edit(raw, func(name string, value []byte) ([]byte, error) {
		switch {
		case name == "managedFields":
			return nil, nil
		case name == "annotations" && v.annotated(value):
			return edit(value, func(key string, value []byte) ([]byte, error) {
				domain, _, _ := strings.Cut(key, "/")
				if slices.ContainsFunc(v.groups, func(g string) bool {
					return inDomain(domain, g) || strings.HasPrefix(key, stem(g))
				}) {
					return nil, nil
				}
				return value, nil
			})
		}
		return value, nil
	})
}

// nodeStatus removes hidden images from the list that a node has of them.
func (v *veil) nodeStatus(raw []byte) ([]byte, error) {
	return edit(raw, func(name string, value []byte) ([]byte, error) {
		if name != "images" {
			return value, nil
		}
		return sift(value, func(item []byte) bool {
			return !slices.ContainsFunc(v.images, func(s string) bool { return bytes.Contains(item, []byte(s)) })
		})
	})
}

func (a answer) list(all []field) ([]byte, error) {
	items, err := elements(value(all, "items"))
	if err != nil {
		return nil, err
	}
	kept := items[:0:0]
	for _, item := range items {
		o, err := fields(item)
		if err != nil {
			return nil, err
		}
		out, visible, err := a.object(item, o)
		if err == nil && visible && a.form.partial() {
			out, err = partial(out)
		}
		if err != nil {
			return nil, err
		}
		if visible {
			kept = append(kept, out)
		}
	}
	for i, f := range all {
		switch f.name {
		case "items":
			all[i].value = list(kept)
		case "metadata":
			// It counts hidden objects too.
			if all[i].value, err = without(f.value, "remainingItemCount"); err != nil {
				return nil, err
			}
		case "kind":
			if a.form.partial() {
				all[i].value = []byte(`"PartialObjectMetadataList"`)
			}
		case "apiVersion":
			if a.form.partial() {
				all[i].value = []byte(`"meta.k8s.io/v1"`)
			}
		}
	}
	return join(all), nil
}

// table filters rows by the objects they carry, and returns how many are left.
func (a answer) table(all []field) ([]byte, int, error) {
	rows, err := elements(value(all, "rows"))
	if err != nil {
		return nil, 0, err
	}
	kept := rows[:0:0]
	for _, row := range rows {
		visible := true
		out, err := edit(row, func(name string, v []byte) ([]byte, error) {
			if name != "object" {
				return v, nil
			}
			o, err := fields(v)
			if err != nil {
				return nil, err
			}
			if v, visible, err = a.object(v, o); err != nil || !visible {
				return nil, err
			}
			return a.include(v)
		})
		if err != nil {
			return nil, 0, err
		}
		if visible {
			kept = append(kept, out)
		}
	}
	for i, f := range all {
		switch f.name {
		case "rows":
			all[i].value = list(kept)
		case "metadata":
			if all[i].value, err = without(f.value, "remainingItemCount"); err != nil {
				return nil, 0, err
			}
		}
	}
	return join(all), len(kept), nil
}

// include reduces the object of a row to what the client wants of it.
func (a answer) include(raw []byte) ([]byte, error) {
	switch a.form.include {
	case "None":
		return nil, nil
	case "Metadata":
		return partial(raw)
	}
	return raw, nil
}

// partial reduces an object to its metadata.
func partial(raw []byte) ([]byte, error) {
	all, err := fields(raw)
	if err != nil {
		return nil, err
	}
	return join([]field{
		{"kind", []byte(`"PartialObjectMetadata"`)},
		{"apiVersion", []byte(`"meta.k8s.io/v1"`)},
		{"metadata", value(all, "metadata")},
	}), nil
}

// without removes one field of an object.
func without(obj []byte, field string) ([]byte, error) {
	return edit(obj, func(name string, v []byte) ([]byte, error) {
		if name == field {
			return nil, nil
		}
		return v, nil
	})
}

// manager is how a conflict between appliers names the other one, and when that one wrote.
var manager = regexp.MustCompile(
	`(conflicts? with )"(?:[^"\\]|\\.)*"((?: with subresource "(?:[^"\\]|\\.)*")?)((?: using [^\s:]+)?)(?: at [0-9T:Z+-]+Z)?`)

// unknownManager stands for all field managers in conflicts.
const unknownManager = `$1"unknown"$2$3`

// withoutManagers removes the names of field managers from a status.
func withoutManagers(doc []byte) ([]byte, error) {
	if !bytes.Contains(doc, []byte("conflict")) {
		return doc, nil
	}
	scrub := func(raw []byte) ([]byte, error) {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, err
		}
		return marshalString(manager.ReplaceAllString(s, unknownManager))
	}
	cause := func(raw []byte) ([]byte, error) {
		return edit(raw, func(name string, v []byte) ([]byte, error) {
			if name == "message" {
				return scrub(v)
			}
			return v, nil
		})
	}
	return edit(doc, func(name string, v []byte) ([]byte, error) {
		switch name {
		case "message":
			return scrub(v)
		case "details":
			return edit(v, func(name string, v []byte) ([]byte, error) {
				if name != "causes" {
					return v, nil
				}
				return each(v, cause)
			})
		}
		return v, nil
	})
}

// each replaces the elements of an array by what f makes of them.
func each(arr []byte, f func([]byte) ([]byte, error)) ([]byte, error) {
	items, err := elements(arr)
	if err != nil {
		return nil, err
	}
	for i, item := range items {
		if items[i], err = f(item); err != nil {
			return nil, err
		}
	}
	return list(items), nil
}

// marshalString writes a string as the API server does, with all its characters as they are.
func marshalString(s string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(s)
	return bytes.TrimSpace(b.Bytes()), err
}
