package fault

import (
	"errors"
	"path"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/internal/term"
)

type diskParams struct {
	Path          string   `yaml:"path" doc:"the directory whose files are affected"`
	Methods       []string `yaml:"methods" doc:"the operations that fail"`
	Errno         string   `yaml:"errno" doc:"what they fail with"`
	Percent       float64  `yaml:"percent" doc:"of the operations that fail, 0 to 100"`
	disturbParams `yaml:",inline"`
}

// Validate implements the check of parameters.
func (p diskParams) Validate() error {
	switch {
	case !path.IsAbs(p.Path):
		return errors.New(`"path" must be absolute`)
	case p.Errno == "":
		return errors.New(`"errno" must not be empty`)
	case p.Percent <= 0 || p.Percent > 100:
		return errors.New(`"percent" must be more than 0 and at most 100`)
	}
	return p.disturbParams.Validate()
}

func diskWoreout() *Kind {
	return disturbing(Kind{
		Name:  "disk_woreout",
		Title: "The disk below a MongoDB server fails writes",
		Description: `Writes below the data directory of a MongoDB server fail with an input/output error, and the server is
started again on it. It cannot write its lock file and ends: its pods are in CrashLoopBackOff. No
operator can help.`,
		Cause: Cause{term.Hardware, term.NetworkStorage},
		Targets: func(a *app.App) []string {
			return services(a, func(s app.Service) bool { return s.Kind == "mongodb" })
		},
	}, diskParams{Path: "/data/db", Methods: []string{"write", "fsync"}, Errno: "EIO", Percent: 100},
		func(p diskParams) disturbParams { return p.disturbParams },
		func(_ Target, p diskParams) (cloud.Disturbance, error) {
			return cloud.Disturbance{IO: &cloud.IOChaos{
				Path: p.Path, Methods: p.Methods, Errno: p.Errno,
				Percent: p.Percent,
			}}, nil
		}, func(diskParams) probe { return healthProbe }, true)
}
