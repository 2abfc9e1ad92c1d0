package guard

import (
	"encoding/json"
	"io"
)

// watchBody filters a stream of watch events while it is read.
type watchBody struct {
	answer
	body    io.ReadCloser
	decoder *json.Decoder
	pending []byte

	// sent are the objects that the client knows of this watch, as it got them; nil if an object that
	// is visible stays so.
	sent map[string][]byte
	// columns are those of a table whose rows were all hidden. Only the first event has them.
	columns []byte
}

func newWatchBody(a answer, body io.ReadCloser) *watchBody {
	w := &watchBody{answer: a, body: body, decoder: json.NewDecoder(body)}
	if a.veil.needsObject(a.target.Group, a.target.Resource) {
		w.sent = map[string][]byte{}
	}
	return w
}

// Read returns what is there of the next event that the client may see.
func (w *watchBody) Read(p []byte) (int, error) {
	for len(w.pending) == 0 {
		var event json.RawMessage
		if err := w.decoder.Decode(&event); err != nil {
			return 0, err
		}
		out, err := w.event(event)
		if err != nil {
			return 0, err
		}
		w.pending = out
	}
	n := copy(p, w.pending)
	w.pending = w.pending[n:]
	return n, nil
}

func (w *watchBody) Close() error { return w.body.Close() }

// event filters one event. It returns nothing for one that the client may not see.
func (w *watchBody) event(raw []byte) ([]byte, error) {
	all, err := fields(raw)
	if err != nil {
		return nil, err
	}
	kind, obj := text(all, "type"), value(all, "object")
	if obj == nil {
		return nil, errJSON
	}
	if kind == "BOOKMARK" || kind == "ERROR" {
		// They are about no object, but may have the form of one.
		if obj, err = w.mark(obj); err != nil {
			return nil, err
		}
		return line(kind, obj), nil
	}
	out, visible, err := w.document(obj)
	if err != nil {
		return nil, err
	}
	if out, err = w.withColumns(obj, out, visible); err != nil {
		return nil, err
	}
	if w.sent != nil {
		kind, out, visible = w.follow(kind, key(obj), out, visible)
	}
	if !visible {
		return nil, nil
	}
	return line(kind, out), nil
}

// mark cleans the object of an event that is about none.
func (w *watchBody) mark(obj []byte) ([]byte, error) {
	all, err := fields(obj)
	if err != nil {
		return nil, err
	}
	switch text(all, "kind") {
	case "Status":
		return withoutManagers(obj)
	case "Table":
		out, _, err := w.table(all)
		return out, err
	}
	if obj, err = w.clean(obj, all); err == nil && w.form.partial() {
		obj, err = partial(obj)
	}
	return obj, err
}

// follow makes an object that becomes hidden look deleted to a client that has seen it. Its last
// state is the one the client knows.
func (w *watchBody) follow(kind, key string, out []byte, visible bool) (string, []byte, bool) {
	last, known := w.sent[key]
	switch {
	case key == "":
	case kind == "DELETED":
		delete(w.sent, key)
		if !visible && known {
			return kind, last, true
		}
	case visible:
		w.sent[key] = out
	case known:
		delete(w.sent, key)
		return "DELETED", last, true
	}
	return kind, out, visible
}

// withColumns hands the columns of a table that is dropped on to the next one.
func (w *watchBody) withColumns(in, out []byte, visible bool) ([]byte, error) {
	if w.form.as != "Table" {
		return out, nil
	}
	if !visible {
		all, err := fields(in)
		if c, cerr := elements(value(all, "columnDefinitions")); err == nil && cerr == nil && len(c) > 0 {
			w.columns = value(all, "columnDefinitions")
		}
		return out, err
	}
	if w.columns == nil {
		return out, nil
	}
	columns := w.columns
	w.columns = nil
	return edit(out, func(name string, v []byte) ([]byte, error) {
		if name == "columnDefinitions" && len(v) <= len("null") {
			return columns, nil
		}
		return v, nil
	})
}

// key tells objects of a watch apart. A table has one row.
func key(raw []byte) string {
	type metadata struct {
		Metadata struct{ Namespace, Name string }
	}
	var o struct {
		metadata
		Rows []struct{ Object metadata }
	}
	if json.Unmarshal(raw, &o) != nil {
		return ""
	}
	m := o.metadata.Metadata
	if len(o.Rows) > 0 {
		m = o.Rows[0].Object.Metadata
	}
	if m.Name == "" {
		return ""
	}
	return m.Namespace + "/" + m.Name
}

func line(kind string, obj []byte) []byte {
	b := join([]field{{"type", []byte(`"` + kind + `"`)}, {"object", obj}})
	return append(b, '\n')
}
