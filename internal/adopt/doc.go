// Package adopt makes an application of somebody's Helm chart or manifests, and problems over it: documents that can
// be read, changed and proved like any other.
//
//	result, err := adopt.Adopt(adopt.Options{
//		Source: "charts/shop", Entry: "front:80", Mix: "users.yaml", Dir: "shop", Library: library,
//	})
//
// It asks no cluster. Who calls whom is told by the addresses in variables and ConfigMaps, and by traces if there are
// any. Only workloads that requests of users reach get problems: nobody would see a fault in another. Whether a fault
// shows is not known until 'aiopslab verify' has tried.
package adopt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/problem"
)

// DefaultRate is how many requests a second users send if nothing else is said.
const DefaultRate = 20

// Options say what is adopted.
type Options struct {
	Source string   // a chart, as a directory or an archive, or manifests, as a directory or a file
	Values []string // files with values of the chart
	Entry  string   // SERVICE:PORT that requests of users go to
	Mix    string   // file that says what users do
	Name   string   // of the application; by default that of the source
	// Namespace is the application's: by default the one that the manifests name, or else test-NAME.
	Namespace string
	Dir       string   // where it goes; by default Name
	Rate      float64  // of users' requests, a second; 0 is DefaultRate
	Kinds     []string // of faults; all that fit if there are none
	Library   *problem.Library

	// Links are who calls whom in traces, beside what the manifests tell.
	Links []observe.Link
	// Lacks says why an image cannot be had on the embedded cloud, or "". It may be nil.
	Lacks func(image string) string
}

// Result is what was made.
type Result struct {
	App       *app.App
	Dir       string   // has app.yaml, manifests, mixes and problems
	Documents []string // the ids of the problems' documents, with {task}
	Unreached []string // workloads that no request of users is seen to reach
	Weak      []string // workloads of which nobody knows what only they answer
	Images    []string // what the embedded cloud does not have, a line each
	Notes     []string // what else is not as in the source, a line each
}

// ProblemsDir is the part of the result that --problems takes.
const ProblemsDir = "problems"

// Adopt makes the application and its problems. Nothing is there if it returns an error.
func Adopt(o Options) (*Result, error) {
	name, err := nameOf(o)
	if err != nil {
		return nil, err
	}
	o.Name = name
	if o.Dir == "" {
		o.Dir = o.Name
	}
	if o.Rate == 0 {
		o.Rate = DefaultRate
	}
	if list, err := os.ReadDir(o.Dir); err == nil && len(list) > 0 {
		return nil, fmt.Errorf("%s is there already, and not empty: choose another directory with -o, or remove it",
			o.Dir)
	}
	s, err := load(o)
	if err != nil {
		return nil, err
	}
	system, err := s.system(o)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(o.Dir), 0o755); err != nil {
		return nil, err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(o.Dir), ".adopt-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	r, err := system.write(o, tmp)
	if err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), tmp, o.Dir))
	}
	r.Notes = slices.Concat(s.notes, system.notes)
	_ = os.Remove(o.Dir) // It is empty, or not there.
	if err := os.Rename(tmp, o.Dir); err != nil {
		return nil, err
	}
	r.Dir = o.Dir
	return r, os.Chmod(o.Dir, 0o755)
}
