package main

import (
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// module is the lab's own.
const module = "github.com/aiopslab/aiopslab"

// writeModules lists all that is linked into the programs for an architecture, as CycloneDX has it. It is what the
// linker has stamped into them, not what go.mod allows.
func writeModules(w io.Writer, r *release, arch string) error {
	self := component(cdx.ComponentTypeApplication, module, r.version)
	self.Name = product
	list := []cdx.Component{component(cdx.ComponentTypeLibrary, "std", goVersion(r.builds[arch]))}
	for _, m := range r.modules(arch) {
		c := component(cdx.ComponentTypeLibrary, m.Path, m.Version)
		if m.Sum != "" { // It is of a list of files, and no hash that CycloneDX knows.
			c.Properties = &[]cdx.Property{{Name: "go.sum", Value: m.Sum}}
		}
		list = append(list, c)
	}
	var refs []string
	for _, c := range list {
		refs = append(refs, c.BOMRef)
	}
	b := cdx.NewBOM()
	b.Metadata = &cdx.Metadata{
		Timestamp: r.at.UTC().Format(time.RFC3339), Component: &self,
		Properties: &[]cdx.Property{{Name: "platform", Value: "linux/" + arch}},
	}
	b.Components = &list
	b.Dependencies = &[]cdx.Dependency{{Ref: self.BOMRef, Dependencies: &refs}}
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).Encode(b)
}

func component(kind cdx.ComponentType, path, version string) cdx.Component {
	purl := fmt.Sprintf("pkg:golang/%s@%s", path, strings.ReplaceAll(version, "+", "%2B"))
	return cdx.Component{Type: kind, Name: path, Version: version, PackageURL: purl, BOMRef: purl}
}

// goVersion is that of the standard library: "1.26.8".
func goVersion(builds map[string]*debug.BuildInfo) string {
	return strings.TrimPrefix(builds[product].GoVersion, "go")
}
