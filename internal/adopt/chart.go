package adopt

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	dependencies "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
)

// hook marks what Helm makes before, after or instead of a release.
const hook = "helm.sh/hook"

// render adds the objects that a chart makes. It asks no cluster, so lookups find nothing.
func (s *source) render(o Options) error {
	c, err := loader.Load(o.Source)
	if err != nil {
		return fmt.Errorf("chart %s: %w", o.Source, err)
	}
	s.title, s.description = c.Metadata.Name, c.Metadata.Description
	values, err := readValues(o.Values)
	if err != nil {
		return err
	}
	if err := complete(c); err != nil {
		return fmt.Errorf("chart %s: %w", o.Source, err)
	}
	if err := dependencies.ProcessDependencies(c, values); err != nil {
		return fmt.Errorf("chart %s: %w", o.Source, err)
	}
	all, err := util.ToRenderValues(c, values, common.ReleaseOptions{
		Name: o.Name, Namespace: o.namespace(), Revision: 1, IsInstall: true,
	}, nil)
	if err != nil {
		return fmt.Errorf("chart %s: %w", o.Source, err)
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return fmt.Errorf("chart %s: %w", o.Source, err)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, "NOTES.txt") || strings.TrimSpace(files[name]) == "" {
			continue
		}
		if err := s.parse(name+", as rendered", []byte(files[name])); err != nil {
			return err
		}
	}
	for _, crd := range c.CRDObjects() {
		if err := s.parse(crd.Filename, crd.File.Data); err != nil {
			return err
		}
	}
	return nil
}

// complete says which charts are missing that a chart depends on.
func complete(c *chart.Chart) error {
	var missing []string
	for _, d := range c.Metadata.Dependencies {
		if !slices.ContainsFunc(c.Dependencies(), func(sub *chart.Chart) bool { return sub.Name() == d.Name }) {
			missing = append(missing, d.Name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("it needs %s, which is not in its directory charts: run 'helm dependency build' in it first",
			strings.Join(missing, ", "))
	}
	return nil
}

// readValues are the values of files, the last of which counts.
func readValues(files []string) (map[string]any, error) {
	values := map[string]any{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("--values: %w", err)
		}
		if err := syntax(file, document{1, data}); err != nil {
			return nil, err
		}
		more, err := loader.LoadValues(strings.NewReader(string(data)))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("--values %s", file), err)
		}
		values = loader.MergeMaps(values, more)
	}
	return values, nil
}
