package observe_test

import (
	"context"
	"fmt"
	"time"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/observe"
)

// An observer deploys Prometheus into a cluster, and reads what there is of metrics, logs and traces.
func Example() {
	var c cloud.Cloud // such as embedded.Start returns
	ctx := context.Background()
	o, err := observe.New(c.RESTConfig(), c.Dial, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer o.Close()
	if err := o.Deploy(ctx, nil); err != nil {
		fmt.Println(err)
		return
	}
	value, _, err := o.Prometheus().Query(ctx, `sum(rate(container_cpu_usage_seconds_total[1m])) by (pod)`, time.Now())
	fmt.Println(value, err)
	lines, err := o.Logs(ctx, observe.LogQuery{Namespace: "shop", Service: "cart", Level: "error", Limit: 10})
	fmt.Println(len(lines), err)
	alerts, err := o.Alerts(ctx, "shop")
	fmt.Println(len(alerts), err)
}
