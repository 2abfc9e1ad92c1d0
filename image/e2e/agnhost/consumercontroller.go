package agnhost

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
)

// consumerController spreads a request to use resources over the pods of a service: it makes many
// small requests of a large one and lets the service balance them.
type consumerController struct {
	*program
	port, consumerPort int
	service, namespace string
	client             *http.Client
}

// spread is one of the things a consumer can be asked for.
type spread struct {
	amount, size string // form values: how much in all, and how much per request
	metric       bool   // the form names a metric
	summary      string // takes the number of requests, their size, and the size of the last one
	done         string // takes the size
}

var spreads = map[string]spread{
	"/ConsumeCPU": {
		amount: "millicores", size: "requestSizeMillicores",
		summary: "RC manager: sending %v requests to consume %v millicores each and 1 request to consume %v millicores\n",
		done:    "Consumed %d millicores\n",
	},
	"/ConsumeMem": {
		amount: "megabytes", size: "requestSizeMegabytes",
		summary: "RC manager: sending %v requests to consume %v MB each and 1 request to consume %v MB\n",
		done:    "Consumed %d megabytes\n",
	},
	"/BumpMetric": {
		amount: "delta", size: "requestSizeMetrics", metric: true,
		summary: "RC manager: sending %v requests to bump custom metric by %v each and 1 request to bump by %v\n",
		done:    "Bumped metric by %d\n",
	},
}

func (p *program) newResourceConsumerController() *cobra.Command {
	r := &consumerController{program: p}
	c := command("resource-consumer-controller", "Starts a HTTP server that spreads requests around resource consumers", func(ctx context.Context) error {
		transport := p.env.HTTPTransport()
		transport.DisableKeepAlives = true // Each connection goes to another pod.
		r.client = &http.Client{Transport: transport}
		return together(ctx, p.serveHTTP(fmt.Sprintf(":%d", r.port), r))
	})
	c.Flags().IntVar(&r.port, "port", 8080, "Port number.")
	c.Flags().IntVar(&r.consumerPort, "consumer-port", 8080, "Port number of consumers.")
	c.Flags().StringVar(&r.service, "consumer-service-name", "resource-consumer", "Name of service containing resource consumers.")
	c.Flags().StringVar(&r.namespace, "consumer-service-namespace", "default", "Namespace of service containing resource consumers.")
	return c
}

func (c *consumerController) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "Bad request. Not a POST request", http.StatusBadRequest)
		return
	}
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s, ok := spreads[r.URL.Path]
	if !ok {
		http.Error(w, "unknown function", http.StatusNotFound)
		return
	}
	amount, size, seconds := r.Form.Get(s.amount), r.Form.Get(s.size), r.Form.Get("durationSec")
	if amount == "" || size == "" || seconds == "" || s.metric && r.Form.Get("metric") == "" {
		http.Error(w, "not given function argument", http.StatusBadRequest)
		return
	}
	total, err1 := strconv.Atoi(amount)
	each, err2 := strconv.Atoi(size)
	if _, err := strconv.Atoi(seconds); err != nil || errors.Join(err1, err2) != nil || each <= 0 {
		http.Error(w, "incorrect function argument", http.StatusBadRequest)
		return
	}
	count, rest := total/each, total%each
	fmt.Fprintf(w, s.summary, count, each, rest)
	var all sync.WaitGroup
	var mu sync.Mutex // protects w
	send := func(n int) {
		all.Go(func() {
			form := url.Values{s.amount: {strconv.Itoa(n)}, "durationSec": {seconds}}
			if s.metric {
				form.Set("metric", r.Form.Get("metric"))
			}
			err := c.post(r.Context(), r.URL.Path, form)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				fmt.Fprintf(w, "Failed to connect to consumer: %v\n", err)
				return
			}
			fmt.Fprintf(w, s.done, n)
		})
	}
	for range count {
		send(each)
	}
	if rest > 0 {
		send(rest)
	}
	all.Wait()
}

func (c *consumerController) post(ctx context.Context, path string, form url.Values) error {
	domain, err := c.clusterDomain()
	if err != nil {
		return err
	}
	target := fmt.Sprintf("http://%s.%s.svc.%s:%d%s", c.service, c.namespace, domain, c.consumerPort, path)
	req, err := http.NewRequestWithContext(ctx, "POST", target, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// clusterDomain is the part after "svc." of one of the resolver's search domains.
func (c *consumerController) clusterDomain() (string, error) {
	domains, err := c.resolverConfig("search")
	if err != nil {
		return "", err
	}
	for _, d := range domains {
		if domain, ok := strings.CutPrefix(d, "svc."); ok {
			return domain, nil
		}
	}
	return "", errors.New(`no search domain starts with "svc."`)
}
