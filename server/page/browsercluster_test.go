package page

import (
	"testing"

	"github.com/aiopslab/aiopslab/problem/problemtest"
)

// clusterBrowser starts one in front of a town.
func clusterBrowser(t *testing.T) (*browser, *town) {
	t.Helper()
	c := newTown(t)
	return browserAt(t, func(dir string) Options {
		return Options{Dir: dir, Library: problemtest.Library(t), Cluster: c.cluster()}
	}), c
}

// What people come for while a cluster is up, each from the page that 'up' links to in a few clicks.
func TestBrowserCluster(t *testing.T) {
	b, c := clusterBrowser(t)
	for _, task := range []struct {
		name string
		do   func(*browser)
	}{
		{"see what is red now", func(b *browser) {
			b.see("#red", "are well")
			eval[bool](b, `(window.same = true, window.shift = 0, new PerformanceObserver((list) => {
				for (const e of list.getEntries()) window.shift += e.value;
			}).observe({ type: 'layout-shift', buffered: false }), true)`)
			c.fail(true)
			b.see("#red li", "it is scaled to zero")
			b.see("#graph .node.red + text", "! geo")
			b.see("#alerts li", "39% of the HTTP requests to frontend fail.")
			b.see("#users", "61\u202f% of users' requests succeed")
			c.fail(false)
			b.see("#red", "are well")
			if !eval[bool](b, `window.same === true`) {
				b.Error("the page was loaded anew")
			}
			if shift := eval[float64](b, `window.shift`); shift > 0.01 {
				b.Errorf("the layout shifted by %v", shift)
			}
		}},
		{"query a metric", func(b *browser) {
			b.click(".tabs a", "Metrics")
			b.see(".charts .legend", `{service="search"}`)
			eval[bool](b, `(document.getElementById('query').focus(), true)`)
			b.clicks++
			b.press("sum(up)\r")
			b.see("#asked .legend", `{service="search"}`)
			if q := eval[string](b, `new URLSearchParams(location.search).get('query')`); q != "sum(up)" {
				b.Errorf("the address has %q", q)
			}
		}},
		{"follow a service's log", func(b *browser) {
			b.click(".services a.row", "geo")
			b.see("#log", "request 39 was answered")
			c.log("geo", "I geo: a line that has just come")
			b.see("#log p:last-child", "a line that has just come")
			c.log("geo", "I geo: and another")
			b.see("#log p:last-child", "and another")
			if n := eval[int](b, `[...document.querySelectorAll('#log p')].filter((p) => p.textContent.includes('just come')).length`); n != 1 {
				b.Errorf("a line is there %d times", n)
			}
		}},
		{"open a slow trace", func(b *browser) {
			b.click(".tabs a", "Traces")
			b.click(".traces tbody tr:first-child a.row", "frontend HTTP GET /hotels")
			b.see(".traces .card", "1.8 s through 3 services")
			b.see(".waterfall text", "geo !")
			b.see(".traces li", "no reachable servers")
		}},
		{"ask Prometheus' own page", func(b *browser) {
			b.click(".tabs a", "Metrics")
			b.click(".charts h3 a", "Requests a second")
			b.click(".asked a", "In Prometheus")
			b.see(".tabs a[aria-current]", "Prometheus")
			b.open(eval[string](b, `document.querySelector('iframe.own').getAttribute('src')`)) // as "Open it alone" does
			b.see("td", "answered")
			b.see("td", "42")
		}},
	} {
		t.Run(task.name, func(t *testing.T) {
			b.T, c.t = t, t
			b.open(clusterPath)
			b.see("h1", "Hotel Reservation")
			b.clicks = 0
			task.do(b)
		})
	}
}

// A program of the cluster that has become an enemy reads nothing of the site by its page: it has no cookie, no
// storage, and no parent, alone or in the frame.
func TestBrowserSandbox(t *testing.T) {
	b, _ := clusterBrowser(t)
	b.open(b.site.through.base("prometheus") + "evil")
	b.see("#said", "done")
	if said := eval[string](b, `document.getElementById('said').textContent`); said != "nothing no cookies no storage no page alone done" {
		t.Errorf("it says %q", said)
	}
	b.open(clusterPath + "/own/prometheus")
	b.until("the frame", `document.querySelector('iframe.own').contentDocument === null`)
}

// The pages about a cluster can be read by everybody, as the others can.
func TestBrowserClusterReadable(t *testing.T) {
	b, c := clusterBrowser(t)
	c.fail(true)
	b.readable(map[string]string{
		"cluster": "cluster", "metrics": "cluster/metrics?query=" + "sum+by+(service)+(rate(http_requests_total[1m]))",
		"logs": "cluster/logs", "traces": "cluster/traces?trace=bbb2", "own": "cluster/own/prometheus",
	})
}
