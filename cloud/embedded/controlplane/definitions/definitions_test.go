package definitions

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/klauspost/compress/zstd"
	aggregator "k8s.io/kube-aggregator/pkg/generated/openapi"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/generated/openapi"
)

var update = flag.Bool("update", false, "make the data anew")

func TestGet(t *testing.T) {
	ref := func(name string) spec.Ref { return spec.MustCreateRef("#/definitions/" + name) }
	want := openapi.GetOpenAPIDefinitions(ref)
	if *update {
		compressed = write(t, "definitions.cbor.zst", openapi.GetOpenAPIDefinitions(spec.MustCreateRef))
		compressedAggregator = write(t, "aggregator.cbor.zst", aggregator.GetOpenAPIDefinitions(spec.MustCreateRef))
	}
	ahead := Ahead()
	for range 2 { // The first time they are there.
		compare(t, ahead(ref), want)
	}
	compare(t, Get(ref), want)
	compare(t, Aggregator(ref), aggregator.GetOpenAPIDefinitions(ref))
}

func compare(t *testing.T, got, want map[string]common.OpenAPIDefinition) {
	t.Helper()
	if names := slices.Sorted(maps.Keys(want)); !slices.Equal(slices.Sorted(maps.Keys(got)), names) {
		t.Fatalf("%d definitions, want %d; make them anew with -update", len(got), len(names))
	}
	for name, w := range want {
		g := got[name]
		if !slices.Equal(g.Dependencies, w.Dependencies) {
			t.Errorf("%s depends on %v, want %v", name, g.Dependencies, w.Dependencies)
		}
		// What JSON does not tell apart, as an int and an int64 in a default, nobody else does.
		if a, b := document(t, g.Schema), document(t, w.Schema); !bytes.Equal(a, b) {
			t.Errorf("%s is\n%s\nwant\n%s", name, a, b)
		}
		if v2, ok := w.Schema.Extensions[common.ExtensionV2Schema]; ok && reflect.TypeOf(v2) != reflect.TypeOf(g.Schema.Extensions[common.ExtensionV2Schema]) {
			t.Errorf("%s has a %T for OpenAPI 2, want a %T", name, g.Schema.Extensions[common.ExtensionV2Schema], v2)
		}
	}
}

func document(t *testing.T, s spec.Schema) []byte {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// write writes a file of data. What a schema has no room for here, the comparison misses.
func write(t *testing.T, file string, all map[string]common.OpenAPIDefinition) []byte {
	t.Helper()
	list := make(map[string]definition, len(all))
	for name, d := range all {
		list[name] = definition{Schema: *schemaOf(&d.Schema), Dependencies: d.Dependencies}
	}
	mode, err := cbor.CanonicalEncOptions().EncMode()
	if err != nil {
		t.Fatal(err)
	}
	data, err := mode.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		t.Fatal(err)
	}
	compressed := z.EncodeAll(data, nil)
	if err := os.WriteFile(file, compressed, 0o644); err != nil {
		t.Fatal(err)
	}
	return compressed
}

func schemaOf(s *spec.Schema) *schema {
	if s == nil {
		return nil
	}
	out := &schema{
		Description: s.Description, Type: s.Type, Format: s.Format, Ref: s.Ref.String(), Default: s.Default, Enum: s.Enum, Required: s.Required,
		Extensions: maps.Clone(s.Extensions),
	}
	for name, p := range s.Properties {
		if out.Properties == nil {
			out.Properties = map[string]schema{}
		}
		out.Properties[name] = *schemaOf(&p)
	}
	if s.Items != nil {
		out.Items = schemaOf(s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		out.Values = schemaOf(s.AdditionalProperties.Schema)
	}
	for _, o := range s.OneOf {
		out.OneOf = append(out.OneOf, *schemaOf(&o))
	}
	if v2, ok := s.Extensions[common.ExtensionV2Schema].(spec.Schema); ok {
		out.V2 = schemaOf(&v2)
		delete(out.Extensions, common.ExtensionV2Schema)
	}
	return out
}

func BenchmarkGet(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Get(spec.MustCreateRef)
	}
}
