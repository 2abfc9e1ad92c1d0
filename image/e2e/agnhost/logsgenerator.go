package agnhost

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"
)

// newLogsGenerator returns the sub-command that spreads a number of log lines evenly over a time.
func (p *program) newLogsGenerator() *cobra.Command {
	var lines int
	var duration time.Duration
	c := command("logs-generator", "Log a number of lines, evenly over a time", func(ctx context.Context) error {
		if lines <= 0 || duration <= 0 {
			return errors.New("--log-lines-total and --run-duration must be more than 0")
		}
		tick := time.NewTicker(max(duration/time.Duration(lines), 1))
		defer tick.Stop()
		for id := range lines {
			p.log.Print(requestLine(id))
			select {
			case <-tick.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	c.Flags().IntVarP(&lines, "log-lines-total", "t", 0, "number of lines")
	c.Flags().DurationVarP(&duration, "run-duration", "d", 0, "time to spread them over")
	return c
}

// requestLine is a line such as an API server logs. A spec waits for one about kube-system.
func requestLine(id int) string {
	namespaces := []string{"kube-system", "default", "shop"}
	return fmt.Sprintf("%d GET /api/v1/namespaces/%s/pods/pod-%04x %d",
		id, namespaces[id%len(namespaces)], rand.IntN(1<<16), 200+rand.IntN(300))
}
