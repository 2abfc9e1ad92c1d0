package resourceconsumer

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// period is how often the CPU time of a request is spent. It is a kernel's scheduling period, so a
// container's usage is even at the resolution anybody measures.
const period = 100 * time.Millisecond

// Image is the resource consumer.
func Image(tools map[string]kit.Program) kit.Image {
	programs := map[string]kit.Program{"/consumer": Main}
	for name, tool := range tools {
		programs["/bin/"+name] = tool
	}
	return kit.Image{
		Names:      []string{"registry.k8s.io/e2e-test-images/resource-consumer"},
		Tags:       `1\.1?\d`,
		Entrypoint: []string{"/consumer"},
		Vars:       map[string]string{"PATH": kit.DefaultPath},
		Programs:   programs,
		Memory:     6 << 20,
		Size:       30 << 20,
	}
}

// consumer is one run of the program.
type consumer struct {
	env *kit.Env
	log *log.Logger

	jobs sync.WaitGroup

	mu      sync.Mutex
	metrics map[string]float64
}

// Main serves requests until it is told to stop.
func Main(ctx context.Context, env *kit.Env) error {
	flags := flag.NewFlagSet(env.Args[0], flag.ContinueOnError)
	flags.SetOutput(env.Stderr)
	port := flags.Int("port", 8080, "Port number.")
	if err := flags.Parse(env.Args[1:]); err != nil {
		return kit.Exit(2)
	}
	c := &consumer{env: env, log: log.New(env.Stderr, "", log.LstdFlags), metrics: map[string]float64{}}
	defer c.jobs.Wait()
	ln, err := env.Net.Listen("tcp", fmt.Sprintf(":%d", *port))
	if err != nil {
		c.log.Print(err)
		return kit.Exit(1)
	}
	srv := &http.Server{ErrorLog: c.log, BaseContext: func(net.Listener) context.Context { return ctx }}
	srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.handle(ctx, w, r) })
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(ln); ctx.Err() == nil && !errors.Is(err, http.ErrServerClosed) {
		c.log.Print(err)
		return kit.Exit(1)
	}
	return ctx.Err()
}

// handle starts what a request asks for and says so. It does not wait for the end of that, which is
// up to ctx, the program's.
func (c *consumer) handle(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/metrics" {
		c.writeMetrics(w)
		return
	}
	if r.Method != http.MethodPost {
		http.Error(w, "Bad request. Not a POST request", http.StatusBadRequest)
		return
	}
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var quantity string
	var start func(ctx context.Context, amount float64, d time.Duration)
	switch r.URL.Path {
	case "/ConsumeCPU":
		quantity, start = "millicores", c.consumeCPU
	case "/ConsumeMem":
		quantity, start = "megabytes", c.consumeMemory
	case "/BumpMetric":
		metric := r.Form.Get("metric")
		quantity, start = "delta", func(ctx context.Context, amount float64, d time.Duration) { c.bump(ctx, metric, amount, d) }
	case "/GetCurrentStatus":
		fmt.Fprint(w, "Warning: not implemented!\nGetCurrentStatus")
		return
	default:
		http.Error(w, "unknown function: "+r.URL.Path, http.StatusNotFound)
		return
	}
	amount, seconds := r.Form.Get(quantity), r.Form.Get("durationSec")
	if amount == "" || seconds == "" || quantity == "delta" && r.Form.Get("metric") == "" {
		http.Error(w, "not given function argument", http.StatusBadRequest)
		return
	}
	n, err1 := strconv.ParseFloat(amount, 64)
	s, err2 := strconv.Atoi(seconds)
	if errors.Join(err1, err2) != nil {
		http.Error(w, "incorrect function argument", http.StatusBadRequest)
		return
	}
	c.log.Printf("%s %s: %v, durationSec: %v", r.URL.Path[1:], quantity, amount, s)
	c.jobs.Go(func() { start(ctx, n, time.Duration(s)*time.Second) })
	fmt.Fprintln(w, r.URL.Path[1:])
	if name := r.Form.Get("metric"); quantity == "delta" {
		fmt.Fprintln(w, name, "metric")
	}
	fmt.Fprintln(w, amount, quantity)
	fmt.Fprintln(w, s, "durationSec")
}

// consumeCPU uses a share of a core, a little in each period.
func (c *consumer) consumeCPU(ctx context.Context, millicores float64, d time.Duration) {
	slice := time.Duration(float64(period) * millicores / 1000)
	tick := time.NewTicker(period)
	defer tick.Stop()
	end := time.Now().Add(d)
	for time.Now().Before(end) {
		if c.env.CPU.Use(ctx, slice) != nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (c *consumer) consumeMemory(ctx context.Context, megabytes float64, d time.Duration) {
	bytes := int64(megabytes * (1 << 20))
	if err := c.env.Memory.Add(bytes); err != nil {
		c.log.Printf("Error while consuming memory: %v", err)
		return
	}
	sleep(ctx, d)
	_ = c.env.Memory.Add(-bytes) // Giving back what was held cannot fail.
}

func (c *consumer) bump(ctx context.Context, metric string, delta float64, d time.Duration) {
	add := func(n float64) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.metrics[metric] += n
	}
	add(delta)
	sleep(ctx, d)
	add(-delta)
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (c *consumer) writeMetrics(w http.ResponseWriter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(c.metrics)) {
		fmt.Fprintf(w, "# HELP %s info message.\n# TYPE %s gauge\n%s %f\n", name, name, name, c.metrics[name])
	}
}
