package main

import (
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/aiopslab/aiopslab/internal/bench/measure"
)

const (
	labPackage   = "./cmd/aiopslab"
	importsShown = 20
)

// benchBuild measures the binary. Only -cold builds everything anew, because that takes minutes.
func benchBuild(ctx context.Context, r *run) error {
	info, err := os.Stat(r.binary)
	if err != nil {
		return err
	}
	r.report(measure.Row{What: "binary, stripped", Value: measure.Of("MB", megabytes(info.Size())), Target: measure.AtMost(150)})
	var cpu map[string]time.Duration
	if r.cold {
		if cpu, err = r.coldBuild(ctx); err != nil {
			return err
		}
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
		lines = append(lines, []string{c.Module, fmt.Sprint(c.Packages), fmt.Sprintf("%.1f MB", megabytes(c.Size)), compile})
	}
	r.extra = append(r.extra, lines)
	return nil
}

// coldBuild builds with an empty cache, as `make build` does, and returns what packages took.
func (r *run) coldBuild(ctx context.Context) (map[string]time.Duration, error) {
	graph := filepath.Join(r.dir, "actions.json")
	cache := filepath.Join(r.dir, "cache")
	defer os.RemoveAll(cache)
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w -funcalign=16", "-debug-actiongraph="+graph, "-o", filepath.Join(r.dir, "cold"), labPackage)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOGC=400", "GOCACHE="+cache)
	cmd.Stderr = os.Stderr
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	r.report(measure.Row{What: "cold build, CPU", Value: measure.Of("min", used.Minutes()), Target: measure.AtMost(14)})
	r.report(measure.Row{What: "cold build, on the clock", Value: measure.Of("min", time.Since(start).Minutes())})
	f, err := os.Open(graph)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return measure.ActionCPU(f)
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
