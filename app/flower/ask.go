package flower

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"google.golang.org/grpc"

	"github.com/aiopslab/aiopslab/app/ask"
	"github.com/aiopslab/aiopslab/app/flower/flowerpb"
)

// questions are what only the parts of a federation can answer.
var questions = map[string]ask.Question{
	"serverapp": ask.Page("/nodes", func(status int, body []byte) error {
		for p := 1; p <= parties; p++ {
			if status != http.StatusOK || !bytes.Contains(body, fmt.Appendf(nil, `{"name":"supernode-%d"`, p)) {
				return ask.Wrong("%d %s", status, body)
			}
		}
		return nil
	}),
	"superlink": ask.GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error {
		r, err := flowerpb.NewControlClient(c).ListNodes(ctx, &flowerpb.ListNodesRequest{})
		if err == nil && len(r.Nodes) < parties {
			err = ask.Wrong("that it knows %d nodes", len(r.Nodes))
		}
		return err
	}),
	"supernode-1": ask.GRPC(clientSide), "supernode-2": ask.GRPC(clientSide),
	"clientapp-1": trains, "clientapp-2": trains,
	"jaeger": ask.Jaeger("serverapp"),
}

// clientSide asks for what a node offers to client apps.
func clientSide(ctx context.Context, c grpc.ClientConnInterface) error {
	return ask.Serves(ctx, c, flowerpb.ClientAppIo_ServiceDesc.ServiceName)
}

// trains asks a client app, which takes no calls, what it has counted: whether it could do what it was last asked.
var trains = ask.Page("/metrics", func(status int, body []byte) error {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil || status != http.StatusOK {
		return ask.Wrong("%d %s", status, body)
	}
	well := families["flower_client_well"].GetMetric()
	if len(well) != 1 {
		return ask.Wrong("without flower_client_well")
	}
	if well[0].GetGauge().GetValue() != 1 {
		return ask.Wrong("that it could not do what it was last asked")
	}
	return nil
})
