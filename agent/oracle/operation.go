package oracle

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strconv"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
)

// operator does what an operation asks for, and reports. Numbers it has to read first, as anybody.
type operator struct {
	steps  []step
	report map[string]any
	read   string // the key of the number that the next observation has
	scale  float64
}

// step is a call, and which number of the report its observation has, if any.
type step struct {
	call, key string
	scale     float64
}

func newOperator(p *problem.Problem) (agent.Agent, error) {
	commands, err := p.Solution()
	if err != nil {
		return nil, err
	}
	o := &operator{report: map[string]any{}}
	for _, c := range commands {
		o.steps = append(o.steps, step{call: agent.Call("exec_shell", c, patience)})
	}
	for _, item := range p.Goal().Report {
		if item.Is == "" {
			o.report[item.Key] = item.Value
			continue
		}
		query, scale := fmt.Sprintf(`sum(rate(container_cpu_usage_seconds_total{namespace=%q,container=%q}[1m]))`,
			p.App.Namespace, item.Of), 1000.0
		if item.Is == problem.P99Item {
			query = fmt.Sprintf(`histogram_quantile(0.99, sum by (le) (rate(http_request_duration_seconds_bucket`+
				`{namespace=%q,service=%q}[1m])))`, p.App.Namespace, item.Of)
		}
		o.steps = append(o.steps, step{
			call: agent.Call("exec_shell", "kubectl get --raw '/api/v1/namespaces/observe/services/"+
				"prometheus-server:80/proxy/api/v1/query?query="+url.QueryEscape(query)+"'"),
			key: item.Key, scale: scale,
		})
	}
	return o, nil
}

// patience is how long a command may take, in seconds.
const patience = 120

var number = regexp.MustCompile(`"value":\[[0-9.]+,"([^"]+)"\]`)

// Act implements [agent.Agent].
func (o *operator) Act(_ context.Context, observation string) (string, error) {
	if o.read != "" {
		m := number.FindStringSubmatch(observation)
		if m == nil {
			return "", fmt.Errorf("there is no number in %.200q", observation)
		}
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return "", err
		}
		o.report[o.read], o.read = n*o.scale, ""
	}
	if len(o.steps) == 0 {
		if len(o.report) == 0 {
			return agent.Call("submit"), nil
		}
		return agent.Call("submit", o.report), nil
	}
	next := o.steps[0]
	o.steps, o.read, o.scale = o.steps[1:], next.key, next.scale
	return next.call, nil
}
