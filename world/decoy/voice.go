package decoy

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	// sayEvery is how long it is from one request to the next: seldom enough that what is answered to it does not
	// show in rates, and often enough that the last lines of a log have it.
	sayEvery = 15 * time.Second
	// sayTimeout is how long an answer is waited for.
	sayTimeout = 10 * time.Second
)

// voice is a user who says something, again and again, by requests whose words get into logs.
type voice struct {
	decoys *Decoys
	words  string
	stop   func()
}

// Speak has the user of an instruction begin to send requests, until End. Before a release it would be too early:
// the logs of pods that are replaced are gone.
func (d *Decoys) Speak() {
	if d.voice == nil || d.voice.stop != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { d.voice.run(ctx) })
	d.voice.stop = func() { cancel(); done.Wait() }
}

func (v *voice) end() {
	if v.stop != nil {
		v.stop()
		v.stop = nil
	}
}

// run sends every request once, and then one after the other.
func (v *voice) run(ctx context.Context) {
	transport := &http.Transport{DialContext: v.decoys.Env.Dial}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: sayTimeout}
	heard := v.decoys.Env.App.Heard
	for n := 0; ; n++ {
		v.say(ctx, client, heard[n%len(heard)])
		if n+1 < len(heard) {
			continue
		}
		select {
		case <-time.After(sayEvery):
		case <-ctx.Done():
			return
		}
	}
}

// say sends a request. Whether it is answered, and how, does not matter.
func (v *voice) say(ctx context.Context, client *http.Client, request string) {
	request = strings.ReplaceAll(request, "{words}", url.QueryEscape(v.words))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+v.decoys.Env.App.Host()+request, nil)
	if err != nil {
		return
	}
	if resp, err := client.Do(req); err == nil {
		_ = resp.Body.Close()
	}
}
