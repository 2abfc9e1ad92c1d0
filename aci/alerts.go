package aci

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

type alertsArgs struct {
	Namespace string `arg:"namespace" doc:"The namespace the alerts are about."`
}

var getAlerts = define("get_alerts", Read,
	"Show the alerts about a namespace that are firing, or pending, which means about to fire.",
	"str: a table of the alerts, with what each is about and for how long.",
	func(ctx context.Context, i *Interface, a *alertsArgs) Result {
		list, err := i.o.Observer.Alerts(ctx, a.Namespace)
		if err != nil {
			return failed("%v", err)
		}
		if len(list) == 0 {
			return Result{Text: fmt.Sprintf("There are no alerts about %s.\n", a.Namespace)}
		}
		var b strings.Builder
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "STATE\tALERT\tSEVERITY\tABOUT\tFOR\tSUMMARY")
		for _, x := range list {
			var about []string
			for _, label := range []string{"service", "system", "deployment", "pod", "container", "node", "reason"} {
				if v := x.Labels[label]; v != "" {
					about = append(about, label+"="+v)
				}
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", x.State, x.Name, x.Severity, strings.Join(about, " "),
				i.now().Sub(x.Since).Round(time.Second), x.Summary)
		}
		w.Flush()
		return Result{Text: b.String()}
	})
