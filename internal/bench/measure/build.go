package measure

import (
	"cmp"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Cost is what a module costs a program.
type Cost struct {
	Module   string
	Packages int
	Size     int64         // of its code and data in the program, in bytes
	CPU      time.Duration // to compile it; zero if unknown
}

// Costs sums by module what packages cost. module returns the module of a package, "" for one that
// is not to be counted. The biggest come first.
func Costs(sizes map[string]int64, cpu map[string]time.Duration, module func(pkg string) string) []Cost {
	all := map[string]*Cost{}
	of := func(pkg string) *Cost {
		name := module(pkg)
		if all[name] == nil {
			all[name] = &Cost{Module: name}
		}
		return all[name]
	}
	for pkg, n := range sizes {
		c := of(pkg)
		c.Size += n
		c.Packages++
	}
	for pkg, d := range cpu {
		of(pkg).CPU += d
	}
	delete(all, "")
	list := make([]Cost, 0, len(all))
	for _, c := range all {
		list = append(list, *c)
	}
	slices.SortFunc(list, func(a, b Cost) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(b.CPU, a.CPU), strings.Compare(a.Module, b.Module))
	})
	return list
}

// SymbolSizes returns how many bytes of an ELF file each package's symbols take. Zeroed data takes
// none.
func SymbolSizes(symbols []elf.Symbol, sections []*elf.Section) map[string]int64 {
	sizes := map[string]int64{}
	for _, s := range symbols {
		if int(s.Section) < len(sections) && sections[s.Section].Type == elf.SHT_PROGBITS {
			sizes[symbolPackage(s.Name)] += int64(s.Size)
		}
	}
	return sizes
}

// symbolPackage returns the package of a symbol, "" for what the linker makes of them all.
func symbolPackage(symbol string) string {
	for _, prefix := range []string{"type:.eq.", "type:.hash.", "go:itab.", "type:"} {
		symbol = strings.TrimPrefix(symbol, prefix)
	}
	symbol = strings.TrimLeft(symbol, "*[]")
	if i := strings.IndexAny(symbol, "[({ ,;"); i >= 0 {
		symbol = symbol[:i]
	}
	slash := strings.LastIndexByte(symbol, '/')
	dot := strings.IndexByte(symbol[slash+1:], '.')
	if dot < 0 || strings.HasPrefix(symbol, "go:") {
		return ""
	}
	// The last element of an import path has its dots escaped in symbols.
	return strings.ReplaceAll(symbol[:slash+1+dot], "%2e", ".")
}

// ActionCPU reads what `go build -debug-actiongraph` writes and returns the CPU time that each
// package took to compile. The linker's is that of the package "link".
func ActionCPU(r io.Reader) (map[string]time.Duration, error) {
	var actions []struct {
		Mode            string
		Package         string
		CmdUser, CmdSys time.Duration
	}
	if err := json.NewDecoder(r).Decode(&actions); err != nil {
		return nil, fmt.Errorf("read action graph: %w", err)
	}
	cpu := map[string]time.Duration{}
	for _, a := range actions {
		pkg := a.Package
		switch a.Mode {
		case "link":
			pkg = "link"
		case "build":
		default:
			continue
		}
		cpu[pkg] += a.CmdUser + a.CmdSys
	}
	maps.DeleteFunc(cpu, func(_ string, d time.Duration) bool { return d == 0 })
	return cpu, nil
}
