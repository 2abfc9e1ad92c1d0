package pd

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// maxStoreDownTime is how long nothing may be heard of a store before it is down, if the configuration does not say.
const maxStoreDownTime = 30 * time.Minute

// downTime reads max-store-down-time of the section [schedule] of a configuration file. The others are not heeded.
func downTime(config string) (time.Duration, error) {
	section := ""
	for line := range strings.Lines(config) {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[] ")
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		if section != "schedule" || strings.TrimSpace(key) != "max-store-down-time" {
			continue
		}
		text, err := strconv.Unquote(strings.TrimSpace(value))
		if err == nil {
			var d time.Duration
			if d, err = time.ParseDuration(text); err == nil && d > 0 {
				return d, nil
			}
		}
		return 0, fmt.Errorf(`schedule.max-store-down-time is %s: want a time such as "30m"`, strings.TrimSpace(value))
	}
	return maxStoreDownTime, nil
}
