package fault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/aiopslab/aiopslab/app"
	questions "github.com/aiopslab/aiopslab/app/ask"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/internal/term"
)

type cpuParams struct {
	Cores         float64       `yaml:"cores" doc:"how many cores are kept busy"`
	Slow          time.Duration `yaml:"slow" doc:"it shows if most requests that cost next to nothing take longer"`
	Page          string        `yaml:"page" doc:"a page that costs next to nothing, if it speaks HTTP and no gRPC"`
	disturbParams `yaml:",inline"`
}

// Validate implements the check of parameters.
func (p cpuParams) Validate() error {
	if p.Cores <= 0 || p.Slow <= 0 {
		return errors.New(`"cores" and "slow" must be more than 0`)
	}
	if p.Page != "" && !strings.HasPrefix(p.Page, "/") {
		return fmt.Errorf("\"page\": %q is no path such as /health", p.Page)
	}
	return p.disturbParams.Validate()
}

func cpuStress() *Kind {
	return disturbing(Kind{
		Name:  "cpu_stress",
		Title: "Something in the pods of a service uses up their CPU",
		Description: `Cores are kept busy in the containers of a service, up to their limit. What the service does itself waits
for its turn: it is throttled, and its calls take long. An operator can raise the limit, or, where it
is bound to a node, move the pods off it.`,
		Cause: Cause{term.OperatingSystem, term.OperationError},
		Targets: func(a *app.App) []string {
			return services(a, func(s app.Service) bool { return s.Kind == "service" && len(callers(a, s.Name)) > 0 })
		},
		TrueFixes: map[string]string{LimitsToInfinity: "the node has more cores than are kept busy"},
		MayFix:    movedByRestart,
	}, cpuParams{Cores: 8, Slow: 15 * time.Millisecond}, func(p cpuParams) disturbParams { return p.disturbParams },
		func(_ Target, p cpuParams) (cloud.Disturbance, error) {
			return cloud.Disturbance{Stress: &cloud.StressChaos{CPU: p.Cores}}, nil
		}, func(p cpuParams) probe { return p.probe }, false)
}

// checks is how many requests are sent, and pause how long to wait before each. Who is throttled gets
// its turn at the beginning of each tenth of a second; a request right after another would profit
// from that.
const (
	checks = 7
	pause  = 60 * time.Millisecond
)

// probe sees a service that waits for the CPU by how long its answers take.
func (p cpuParams) probe(ctx context.Context, e *Env, service string) (string, error) {
	if symptom, err := podSymptom(ctx, e, service); symptom != "" || err != nil {
		return symptom, err
	}
	check := checkHealth
	if p.Page != "" {
		check = p.checkPage
	}
	took, err := check(ctx, e, service)
	if err != nil {
		return fmt.Sprintf("%s does not answer: %v", service, err), ctx.Err()
	}
	if took > p.Slow {
		return fmt.Sprintf("%s takes %v for a request that costs next to nothing", service,
			took.Round(time.Millisecond)), nil
	}
	if err := ask(ctx, e, service, askTimeout); err != nil {
		return fmt.Sprintf("%s does not answer: %v", service, err), ctx.Err()
	}
	return "", nil
}

// checkHealth returns how long gRPC's own health check takes: the median.
func checkHealth(ctx context.Context, e *Env, service string) (time.Duration, error) {
	o, err := read(e.App)
	if err != nil {
		return 0, err
	}
	port, _ := o.port(service)
	ctx, cancel := context.WithTimeout(ctx, checks*askTimeout)
	defer cancel()
	conn, err := grpc.NewClient(fmt.Sprintf("passthrough:///%s.%s:%d", service, e.App.Namespace, port),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return e.Dial(ctx, "tcp", address)
		}))
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	ctx = metadata.AppendToOutgoingContext(ctx, "traceparent", questions.Unsampled)
	client := healthpb.NewHealthClient(conn)
	return median(ctx, func() error {
		_, err := client.Check(ctx, &healthpb.HealthCheckRequest{})
		return err
	})
}

// checkPage returns how long a page takes: the median.
func (p cpuParams) checkPage(ctx context.Context, e *Env, service string) (time.Duration, error) {
	o, err := read(e.App)
	if err != nil {
		return 0, err
	}
	port, _ := o.port(service)
	ctx, cancel := context.WithTimeout(ctx, checks*askTimeout)
	defer cancel()
	transport := &http.Transport{DialContext: e.Dial}
	defer transport.CloseIdleConnections()
	url := fmt.Sprintf("http://%s.%s:%d%s", service, e.App.Namespace, port, p.Page)
	return median(ctx, func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		req.Header.Set("traceparent", questions.Unsampled)
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode >= http.StatusBadRequest {
			return fmt.Errorf("%s: %s", p.Page, resp.Status)
		}
		_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
		return err
	})
}

// median is how long something takes most of the time. The first time, which connects, does not count.
func median(ctx context.Context, do func() error) (time.Duration, error) {
	if err := do(); err != nil {
		return 0, err
	}
	times := make([]time.Duration, checks)
	for i := range times {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
		start := time.Now()
		if err := do(); err != nil {
			return 0, err
		}
		times[i] = time.Since(start)
	}
	slices.Sort(times)
	return times[checks/2], nil
}

type memoryParams struct {
	Memory        string `yaml:"memory" doc:"how much is held, such as 512Mi"`
	disturbParams `yaml:",inline"`
}

// Validate implements the check of parameters.
func (p memoryParams) Validate() error {
	if q, err := resource.ParseQuantity(p.Memory); err != nil || q.Sign() <= 0 {
		return fmt.Errorf("\"memory\": %q is no amount such as 512Mi", p.Memory)
	}
	return p.disturbParams.Validate()
}

func memoryStress() *Kind {
	return disturbing(Kind{
		Name:  "memory_stress",
		Title: "Something in the pods of a service uses up their memory",
		Description: `Memory is held in the containers of a service, more than their limit allows: they are killed (OOMKilled),
restart, and are killed again. With a ramp it is a leak. An operator can raise the limit, or, where it
is bound to a node, move the pods off it.`,
		Cause:     Cause{term.OperatingSystem, term.OperationError},
		Targets:   workloads,
		TrueFixes: map[string]string{LimitsToInfinity: "the node has more memory than is held"},
		MayFix:    movedByRestart,
	}, memoryParams{Memory: "1Gi"}, func(p memoryParams) disturbParams { return p.disturbParams },
		func(_ Target, p memoryParams) (cloud.Disturbance, error) {
			q, err := resource.ParseQuantity(p.Memory)
			return cloud.Disturbance{Stress: &cloud.StressChaos{Memory: q.Value()}}, err
		}, func(memoryParams) probe { return healthProbe }, false)
}
