package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/aiopslab/aiopslab/internal/logs"
	"github.com/aiopslab/aiopslab/internal/strict"
	"github.com/aiopslab/aiopslab/world/decoy"
	"github.com/aiopslab/aiopslab/world/noise"
)

// forms show how the value of a flag is written, by its type.
var forms = map[string]string{
	"duration": "a time such as 30s, 10m or 1h30m",
	"past":     "a time up to 24h such as 10m, or 0s",
	"int":      "a whole number such as 5",
	"uint64":   "a whole number such as 5",
	"float64":  "a number such as 2.5",
	"bool":     "true or false",
	"level":    alternatives(logs.Levels),
	"format":   alternatives(logs.Formats),
	"cloud":    alternatives(cloudNames),
	"on":       alternatives(onNames),
	"noise":    alternatives(noise.Levels()),
	"decoy":    alternatives(decoy.Kinds()) + ", or several with commas between them",
}

// flagFailure explains what is wrong with a flag: the nearest one for a name that is not known, the
// form for a value that cannot be read.
func flagFailure(c *cobra.Command, err error) error {
	hint := fmt.Sprintf("Run '%s --help' to see the flags.", c.CommandPath())
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() == "" {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := strict.Nearest(unknown.GetSpecifiedName(), names); near != "" {
			hint = fmt.Sprintf("Did you mean --%s?", near)
		}
	}
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if form := forms[bad.GetFlag().Value.Type()]; form != "" {
			err = fmt.Errorf("--%s %s: want %s", bad.GetFlag().Name, strings.TrimSpace(bad.GetValue()), form)
		}
	}
	return fail(ExitUsage, err, hint)
}
