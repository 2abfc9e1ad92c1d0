package export

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// OTLP is a Writer of spans as OpenTelemetry's file exporters write them: a line of JSON for each run.
func OTLP(w io.Writer) Writer { return &otlpFile{w} }

type otlpFile struct{ w io.Writer }

func (f *otlpFile) Write(_ context.Context, r *Run) error {
	line, err := otlpJSON(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{r.Spans()}})
	if err != nil {
		return fmt.Errorf("%s: %w", r.File, err)
	}
	_, err = f.w.Write(append(line, '\n'))
	return err
}

func (f *otlpFile) Close() error { return nil }

// otlpJSON is OTLP's JSON: that of Protocol Buffers, but ids are hexadecimal and enumerations are numbers.
func otlpJSON(d *tracepb.TracesData) ([]byte, error) {
	b, err := protojson.MarshalOptions{UseEnumNumbers: true}.Marshal(d)
	if err != nil {
		return nil, err
	}
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return nil, err
	}
	if err := rewriteIDs(tree); err != nil {
		return nil, err
	}
	return json.Marshal(tree)
}

// rewriteIDs writes the ids of spans in hexadecimal. No attribute is an object with such a key: they have "key" and
// "value" only.
func rewriteIDs(v any) error {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if err := rewriteIDs(e); err != nil {
				return err
			}
		}
	case map[string]any:
		for k, e := range v {
			text, ok := e.(string)
			if !ok || k != "traceId" && k != "spanId" && k != "parentSpanId" {
				if err := rewriteIDs(e); err != nil {
					return err
				}
				continue
			}
			id, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				return fmt.Errorf("%s: %w", k, err)
			}
			v[k] = hex.EncodeToString(id)
		}
	}
	return nil
}
