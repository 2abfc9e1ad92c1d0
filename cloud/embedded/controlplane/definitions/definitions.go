// Package definitions has the OpenAPI definitions of Kubernetes' built-in types, as data.
//
// k8s.io/kubernetes/pkg/generated/openapi has them as code, a function for each of 1500 types, which
// takes 4 MB of the program. The aggregator has a package of its own with those that it serves. What is here is made
// from the two, and the test compares it with them: after an update of Kubernetes,
//
//	go test ./cloud/embedded/controlplane/definitions -update
package definitions

import (
	_ "embed"
	"fmt"
	"reflect"
	"sync"

	"github.com/fxamacker/cbor/v2"
	"github.com/klauspost/compress/zstd"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

var (
	//go:embed definitions.cbor.zst
	compressed []byte
	//go:embed aggregator.cbor.zst
	compressedAggregator []byte
)

// definition is a [common.OpenAPIDefinition].
type definition struct {
	Schema       schema   `cbor:"1,keyasint"`
	Dependencies []string `cbor:"2,keyasint,omitempty"`
}

// schema is what the definitions use of a [spec.Schema].
type schema struct {
	Description string            `cbor:"1,keyasint,omitempty"`
	Type        []string          `cbor:"2,keyasint,omitempty"`
	Format      string            `cbor:"3,keyasint,omitempty"`
	Ref         string            `cbor:"4,keyasint,omitempty"` // the name of a definition
	Default     any               `cbor:"5,keyasint,omitempty"`
	Enum        []any             `cbor:"6,keyasint,omitempty"`
	Required    []string          `cbor:"7,keyasint,omitempty"`
	Properties  map[string]schema `cbor:"8,keyasint,omitempty"`
	Items       *schema           `cbor:"9,keyasint,omitempty"`
	Values      *schema           `cbor:"10,keyasint,omitempty"` // additionalProperties
	OneOf       []schema          `cbor:"11,keyasint,omitempty"`
	Extensions  map[string]any    `cbor:"12,keyasint,omitempty"`
	V2          *schema           `cbor:"13,keyasint,omitempty"` // the extension that is a schema
}

// decoder reads the values that have no type of their own as if they were read from JSON.
var decoder = sync.OnceValues(func() (cbor.DecMode, error) {
	return cbor.DecOptions{
		DefaultMapType: reflect.TypeFor[map[string]any](), IntDec: cbor.IntDecConvertSignedOrFail,
		MaxMapPairs: 1 << 16,
	}.DecMode()
})

// Get is k8s.io/kubernetes/pkg/generated/openapi.GetOpenAPIDefinitions. The definitions are the
// caller's own.
func Get(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	return resolve(mustRead(compressed), ref)
}

// Aggregator is k8s.io/kube-aggregator/pkg/generated/openapi.GetOpenAPIDefinitions. The definitions are the caller's
// own.
func Aggregator(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	return resolve(mustRead(compressedAggregator), ref)
}

// Ahead begins to read the definitions and returns [Get]. Its first call takes what was read.
func Ahead() common.GetOpenAPIDefinitions {
	first := make(chan map[string]definition, 1)
	go func() {
		first <- mustRead(compressed)
		close(first)
	}()
	return func(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		if list, ok := <-first; ok {
			return resolve(list, ref)
		}
		return Get(ref)
	}
}

func resolve(list map[string]definition, ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	all := make(map[string]common.OpenAPIDefinition, len(list))
	for name, d := range list {
		all[name] = common.OpenAPIDefinition{Schema: d.Schema.spec(ref), Dependencies: d.Dependencies}
	}
	return all
}

// mustRead panics if the data in the program cannot be read, which the test does.
func mustRead(compressed []byte) map[string]definition {
	list, err := read(compressed)
	if err != nil {
		panic(fmt.Sprintf("the OpenAPI definitions in the program: %v", err))
	}
	return list
}

func read(compressed []byte) (map[string]definition, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	data, err := z.DecodeAll(compressed, nil)
	if err != nil {
		return nil, err
	}
	mode, err := decoder()
	if err != nil {
		return nil, err
	}
	var list map[string]definition
	err = mode.Unmarshal(data, &list)
	return list, err
}

func (s *schema) spec(ref common.ReferenceCallback) spec.Schema {
	out := spec.Schema{SchemaProps: spec.SchemaProps{
		Description: s.Description, Type: s.Type, Format: s.Format, Default: s.Default, Enum: s.Enum,
		Required: s.Required,
	}}
	if s.Ref != "" {
		out.Ref = ref(s.Ref)
	}
	if s.Properties != nil {
		out.Properties = make(map[string]spec.Schema, len(s.Properties))
		for name, p := range s.Properties {
			out.Properties[name] = p.spec(ref)
		}
	}
	if s.Items != nil {
		items := s.Items.spec(ref)
		out.Items = &spec.SchemaOrArray{Schema: &items}
	}
	if s.Values != nil {
		values := s.Values.spec(ref)
		out.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: &values}
	}
	for _, o := range s.OneOf {
		out.OneOf = append(out.OneOf, o.spec(ref))
	}
	out.Extensions = s.Extensions
	if s.V2 != nil {
		out.AddExtension(common.ExtensionV2Schema, s.V2.spec(ref))
	}
	return out
}
