package main

import (
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/aiopslab/aiopslab/internal/bench/measure"
)

const (
	labPackage   = "./cmd/aiopslab"
	barePackage  = "./internal/bench/bare"
	linkFlags    = "-ldflags=-s -w -funcalign=1" // as in the Makefile
	importsShown = 20
)

// benchBuild measures the binary. Only -cold builds everything anew, because that takes minutes.
func benchBuild(ctx context.Context, r *run) error {
	cache := "" // the user's
	cpu := map[string]time.Duration{}
	if r.cold {
		cache = filepath.Join(r.dir, "cache")
		defer os.RemoveAll(cache)
	}
	var used, took time.Duration
	for _, p := range []struct {
		pkg, what     string
		size, minutes float64
	}{
		{barePackage, "the embedded cloud and kubectl alone", 150, 14},
		{labPackage, "all", 260, 22}, // what it has in common with the cloud is built
	} {
		b, err := r.build(ctx, p.pkg, cache)
		if err != nil {
			return err
		}
		r.report(measure.Row{
			What: "binary, stripped, " + p.what, Value: measure.Of("MB", megabytes(b.size)),
			Target: measure.AtMost(p.size),
		})
		if !r.cold {
			continue
		}
		maps.Copy(cpu, b.packages)
		used, took = used+b.cpu, took+b.took
		r.report(measure.Row{
			What: "cold build, CPU, " + p.what, Value: measure.Of("min", used.Minutes()),
			Target: measure.AtMost(p.minutes),
		})
		r.report(measure.Row{What: "cold build, on the clock, " + p.what, Value: measure.Of("min", took.Minutes())})
	}
	sizes, err := r.symbolSizes(ctx)
	if err != nil {
		return err
	}
	modules, err := packageModules(ctx)
	if err != nil {
		return err
	}
	lines := [][]string{{"HEAVIEST IMPORTS", "PACKAGES", "CODE AND DATA", "COMPILE CPU"}}
	costs := measure.Costs(sizes, cpu, func(pkg string) string { return modules[pkg] })
	for _, c := range costs[:min(importsShown, len(costs))] {
		compile := ""
		if r.cold {
			compile = fmt.Sprintf("%.1f s", c.CPU.Seconds())
		}
		lines = append(lines, []string{
			c.Module, fmt.Sprint(c.Packages), fmt.Sprintf("%.1f MB", megabytes(c.Size)),
			compile,
		})
	}
	r.extra = append(r.extra, lines)
	return nil
}

// built is what it took to build a program, and its size.
type built struct {
	size      int64
	cpu, took time.Duration
	packages  map[string]time.Duration // CPU, by package
}

// build builds a program as `make build` does. What is in the cache is not built again.
func (r *run) build(ctx context.Context, pkg, cache string) (built, error) {
	graph, file := filepath.Join(r.dir, "actions.json"), filepath.Join(r.dir, "program")
	defer os.Remove(file)
	cmd := exec.CommandContext(ctx, "go", "build", linkFlags, "-debug-actiongraph="+graph, "-o", file, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOGC=400")
	if cache != "" {
		cmd.Env = append(cmd.Env, "GOCACHE="+cache)
	}
	cmd.Stderr = os.Stderr
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return built{}, err
	}
	b := built{took: time.Since(start), cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	info, err := os.Stat(file)
	if err != nil {
		return built{}, err
	}
	b.size = info.Size()
	f, err := os.Open(graph)
	if err != nil {
		return built{}, err
	}
	defer f.Close()
	b.packages, err = measure.ActionCPU(f)
	return b, err
}

// symbolSizes links the program with its symbols and reads what each package takes.
func (r *run) symbolSizes(ctx context.Context) (map[string]int64, error) {
	file := filepath.Join(r.dir, "symbols")
	defer os.Remove(file)
	build := exec.CommandContext(ctx, "go", "build", "-o", file, labPackage)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, err
	}
	f, err := elf.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		return nil, fmt.Errorf("read the program's symbols: %w", err)
	}
	return measure.SymbolSizes(symbols, f.Sections), nil
}

// packageModules maps the packages of the program to their modules.
func packageModules(ctx context.Context) (map[string]string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-json=ImportPath,Standard,Module", labPackage)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	modules := map[string]string{}
	for d := json.NewDecoder(out); ; {
		var p struct {
			ImportPath string
			Standard   bool
			Module     struct{ Path string }
		}
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return modules, cmd.Wait()
		}
		if err != nil {
			return nil, errors.Join(err, cmd.Wait())
		}
		if modules[p.ImportPath] = p.Module.Path; p.Standard {
			modules[p.ImportPath] = "std"
		}
	}
}
