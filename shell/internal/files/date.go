package files

import (
	"fmt"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// touchTime is the time that touch sets.
func touchTime(c *tool.Call) (time.Time, error) {
	location := tool.Location(c.Env)
	if name := c.Opts.Get("r", ""); name != "" {
		fi, err := c.Env.FS.Stat(c.Env.Path(name))
		if err != nil {
			return time.Time{}, fmt.Errorf("%s: %s", name, tool.Reason(err))
		}
		return fi.ModTime(), nil
	}
	if text := c.Opts.Get("d", ""); text != "" {
		return tool.ParseTime(text, time.Now().In(location))
	}
	if text := c.Opts.Get("t", ""); text != "" {
		for _, layout := range strings.Fields(
			"200601021504.05 200601021504 0601021504.05 0601021504 01021504.05 01021504") {
			if t, err := time.ParseInLocation(layout, text, location); err == nil {
				if t.Year() == 0 {
					t = t.AddDate(time.Now().Year(), 0, 0)
				}
				return t, nil
			}
		}
		return time.Time{}, fmt.Errorf("invalid date '%s'", text)
	}
	return time.Now(), nil
}
