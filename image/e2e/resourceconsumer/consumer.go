package resourceconsumer

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
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
}

// Main serves requests until it is told to stop.
func Main(ctx context.Context, env *kit.Env) error {
	flags := flag.NewFlagSet(env.Args[0], flag.ContinueOnError)
	flags.SetOutput(env.Stderr)
	port := flags.Int("port", 8080, "port to serve at")
	if err := flags.Parse(env.Args[1:]); err != nil {
		return kit.Exit(2)
	}
	c := &consumer{env: env, log: log.New(env.Stderr, "", log.LstdFlags)}
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

// handle starts what a form asks for, such as millicores=250&durationSec=30. It does not wait for the end
// of that: ctx, the program's, is the limit.
func (c *consumer) handle(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	job, ok := map[string]struct {
		unit string
		use  func(ctx context.Context, amount float64, d time.Duration)
	}{"/ConsumeCPU": {"millicores", c.consumeCPU}, "/ConsumeMem": {"megabytes", c.consumeMemory}}[r.URL.Path]
	const usage = "post a form to /ConsumeCPU or /ConsumeMem"
	switch {
	case r.URL.Path == "/": // whether it is up
		fmt.Fprintln(w, usage)
		return
	case !ok || r.Method != http.MethodPost:
		http.Error(w, usage, http.StatusNotFound)
		return
	}
	amount, err1 := strconv.ParseFloat(r.FormValue(job.unit), 64)
	seconds, err2 := strconv.Atoi(r.FormValue("durationSec"))
	if err := errors.Join(err1, err2); err != nil {
		http.Error(w, fmt.Sprintf("%s and durationSec must be numbers: %v", job.unit, err), http.StatusBadRequest)
		return
	}
	c.log.Printf("%v %s for %d s", amount, job.unit, seconds)
	c.jobs.Go(func() { job.use(ctx, amount, time.Duration(seconds)*time.Second) })
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
		c.log.Print(err)
		return
	}
	sleep(ctx, d)
	_ = c.env.Memory.Add(-bytes) // Giving back what was held cannot fail.
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
