package fault

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// sign is how a flag shows that is on.
type sign struct {
	service string   // that misbehaves
	others  []string // that may be called the place of the fault as well
	alone   bool     // what shows is less with one pod more
	kills   bool     // containers are killed for it
	shows   func(ctx context.Context, e *Env, f *flagged) (string, error)
	hold    time.Duration // for how long it may not show while it is there; see [Lasting]
	why     string
}

func (s *sign) services() []string { return append([]string{s.service}, s.others...) }

// signs are the flags whose effects are known, as the Astronomy Shop has them.
var signs = map[string]*sign{
	"adFailure":       {service: "ad", shows: fails("advertise", 0.015)},
	"adHighCpu":       {service: "ad", alone: true, shows: busy},
	"adManualGc":      {service: "ad", alone: true, shows: slow("advertise", 80*time.Millisecond)},
	"cartFailure":     {service: "cart", shows: fails("buy", 0.5)},
	"emailMemoryLeak": {service: "email", alone: true, kills: true, shows: growing},
	"failedReadinessProbe": {service: "cart", shows: func(ctx context.Context, e *Env, _ *flagged) (string, error) {
		return unsettled(ctx, e, "cart", 0)
	}},
	"imageSlowLoad":      {service: "frontend", others: []string{"frontend-proxy"}, shows: fails("home", 0.3)},
	"kafkaQueueProblems": {service: "kafka", shows: behind("fraud-detection", 20)},
	"llmInaccurateResponse": {
		service: "llm", shows: fails("assistant", 0.01),
		hold: time.Minute, why: "one product in ten is summed up wrongly",
	},
	"llmRateLimitError": {
		service: "product-reviews", others: []string{"llm"}, shows: fails("assistant", 0.1),
		hold: 30 * time.Second, why: "half of the questions are answered",
	},
	"loadGeneratorFloodHomepage": {
		service: "frontend", others: []string{"load-generator"}, shows: flooded,
		hold: floodWindow, why: "the flood comes and goes",
	},
	"paymentFailure":             {service: "payment", shows: fails("buy", 0.05)},
	"paymentUnreachable":         {service: "checkout", shows: fails("buy", 0.5)},
	"productCatalogFailure":      {service: "product-catalog", shows: fails("browse", 0.015)},
	"recommendationCacheFailure": {service: "recommendation", alone: true, kills: true, shows: growing},
}

// fails sees a flag by the requests of users that fail: more than a part of one operation, or, where users do
// something else, of all together.
func fails(operation string, part float64) func(context.Context, *Env, *flagged) (string, error) {
	return func(ctx context.Context, e *Env, _ *flagged) (string, error) {
		if e.Load == nil {
			return "", nil
		}
		s, err := e.Load(ctx)
		if err != nil {
			return "", err
		}
		w := s.Window("10s")
		of, name := w.Operation(operation), operation
		if of.Operation == "" {
			of, name = w.Total, "all"
		}
		if of.Failed == 0 || float64(of.Failed) < part*float64(of.Requests) {
			return "", nil
		}
		return fmt.Sprintf("%d of %d requests of users (%s) failed in the last 10s", of.Failed, of.Requests, name), nil
	}
}

// slow sees a flag by answers that users wait for: half of those of an operation take longer.
func slow(operation string, than time.Duration) func(context.Context, *Env, *flagged) (string, error) {
	return func(ctx context.Context, e *Env, _ *flagged) (string, error) {
		if e.Load == nil {
			return "", nil
		}
		s, err := e.Load(ctx)
		if err != nil {
			return "", err
		}
		w := s.Window("10s")
		of := w.Operation(operation)
		if of.Requests == 0 || of.P50 < than && 2*of.Failed < of.Requests {
			return "", nil
		}
		return fmt.Sprintf("users (%s) wait for %v, half of them longer", operation,
			of.P50.Round(time.Millisecond)), nil
	}
}

// Bounds of what is looked at between two looks.
const (
	busyLook    = 400 * time.Millisecond
	busyCores   = 0.5
	growLook    = 5 * time.Second
	growBytes   = 192 << 10
	floodWindow = 40 * time.Second
	floodVisits = 90 // in that time; users who look around come by far less often
)

// seen is what a pod said of itself at a time.
type seen struct {
	at    time.Time
	value float64
}

// busy sees a flag by a processor that is used up though there is nothing to do.
func busy(ctx context.Context, e *Env, f *flagged) (string, error) {
	pods, err := podsOf(ctx, e, f.sign.service)
	if err != nil {
		return "", err
	}
	const metric = "process_cpu_seconds_total"
	before, begin := map[string]float64{}, time.Now()
	for i := range pods {
		if v, ok := metricOf(ctx, e, f.sign.service, &pods[i], metric, ""); ok {
			before[pods[i].Name] = v
		}
	}
	select {
	case <-time.After(busyLook):
	case <-ctx.Done():
		return "", ctx.Err()
	}
	for i := range pods {
		v, ok := metricOf(ctx, e, f.sign.service, &pods[i], metric, "")
		was, had := before[pods[i].Name]
		if used := (v - was) / time.Since(begin).Seconds(); ok && had && used > busyCores {
			return fmt.Sprintf("%s uses %.1f cores", pods[i].Name, used), nil
		}
	}
	return "", nil
}

// growing sees a flag by memory that grows from look to look.
func growing(ctx context.Context, e *Env, f *flagged) (string, error) {
	pods, err := podsOf(ctx, e, f.sign.service)
	if err != nil {
		return "", err
	}
	symptom := ""
	for i := range pods {
		p := &pods[i]
		v, ok := metricOf(ctx, e, f.sign.service, p, "process_resident_memory_bytes", "")
		if !ok {
			continue
		}
		first, more := f.look(p.Name, seen{time.Now(), v}, growLook)
		if more && v-first.value > growBytes {
			symptom = fmt.Sprintf("%s holds %.1f MB more memory than %v ago", p.Name, (v-first.value)/(1<<20),
				time.Since(first.at).Round(time.Second))
		}
	}
	return symptom, nil
}

// look remembers what was seen, and returns the oldest that is not older than a time; there is one if more is true.
func (f *flagged) look(of string, now seen, within time.Duration) (oldest seen, more bool) {
	list := append(f.seen[of], now)
	for len(list) > 1 && now.at.Sub(list[0].at) > within {
		list = list[1:]
	}
	if len(list) > 1 && now.value < list[len(list)-2].value {
		list = list[len(list)-1:] // It began anew.
	}
	f.seen[of] = list
	return list[0], len(list) > 1
}

// behind sees a flag by a group of consumers that does not keep up.
func behind(group string, by float64) func(context.Context, *Env, *flagged) (string, error) {
	return func(ctx context.Context, e *Env, f *flagged) (string, error) {
		pods, err := podsOf(ctx, e, f.sign.service)
		if err != nil {
			return "", err
		}
		for i := range pods {
			lag, ok := metricOf(ctx, e, f.sign.service, &pods[i], "kafka_consumer_group_lag", `group="`+group+`"`)
			if ok && lag >= by {
				return fmt.Sprintf("%s is %.0f messages behind", group, lag), nil
			}
		}
		return "", nil
	}
}

// flooded sees a flag by how often the load generator asks for the home page.
func flooded(ctx context.Context, e *Env, f *flagged) (string, error) {
	const service, page = "load-generator", "GET /"
	var report struct {
		Stats []struct {
			Name     string  `json:"name"`
			Requests float64 `json:"num_requests"`
		} `json:"stats"`
	}
	o, err := read(e.App)
	if err != nil {
		return "", err
	}
	port, ok := o.port(service)
	if !ok {
		return "", nil
	}
	body, err := get(ctx, e, fmt.Sprintf("http://%s.%s:%d/stats/requests", service, e.App.Namespace, port))
	if err != nil || json.Unmarshal(body, &report) != nil {
		return "", ctx.Err() // Whether it is there at all is asked elsewhere.
	}
	for _, s := range report.Stats {
		if s.Name != page {
			continue
		}
		first, more := f.look(page, seen{time.Now(), s.Requests}, floodWindow)
		if more && s.Requests-first.value > floodVisits {
			return fmt.Sprintf("%s asked for the home page %.0f times in %v", service, s.Requests-first.value,
				time.Since(first.at).Round(time.Second)), nil
		}
	}
	return "", nil
}

// metricOf is the sum of a metric of a pod, over the series with a label, if it can be had.
func metricOf(ctx context.Context, e *Env, service string, p *v1.Pod, name, label string) (sum float64, ok bool) {
	o, err := read(e.App)
	if err != nil {
		return 0, false
	}
	port := o.metrics(service)
	if port == "" || p.Status.PodIP == "" {
		return 0, false
	}
	body, err := get(ctx, e, "http://"+net.JoinHostPort(p.Status.PodIP, port)+"/metrics")
	if err != nil {
		return 0, false
	}
	lines := bufio.NewScanner(strings.NewReader(string(body)))
	for lines.Scan() {
		rest, is := strings.CutPrefix(lines.Text(), name)
		if !is || rest == "" || rest[0] != ' ' && rest[0] != '{' || !strings.Contains(rest, label) {
			continue
		}
		if v, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64); err == nil {
			sum, ok = sum+v, true
		}
	}
	return sum, ok
}

// get asks for a page on a new connection.
func get(ctx context.Context, e *Env, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, askTimeout, fmt.Errorf("no answer within %v", askTimeout))
	defer cancel()
	transport := &http.Transport{DialContext: e.Dial, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, explain(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s", resp.Status)
	}
	return io.ReadAll(io.LimitReader(resp.Body, maxPage))
}

// maxPage is how much of a page is read.
const maxPage = 4 << 20
