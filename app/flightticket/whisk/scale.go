package whisk

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// idleEvery is how often pods are asked whether they have something to do.
	idleEvery = 2 * time.Second
	// idleWait is how long a pod may take to say so.
	idleWait = time.Second
	// apiWait is how long the API server may take.
	apiWait = 3 * time.Second
)

// grow gives an action as many pods as it needs. It is called again if it fails.
func (c *controller) grow(ctx context.Context, name string) error {
	s, ok := c.fleet.state(name)
	if !ok || s.replicas >= s.wanted {
		return nil
	}
	err := c.scale(ctx, s, s.wanted)
	switch {
	case err == nil || apierrors.IsConflict(err):
		return err
	case apierrors.IsForbidden(err) || apierrors.IsNotFound(err):
		c.fleet.refuse(name, err) // To wait would not help.
	}
	c.s.Log.ErrorContext(ctx, "Cannot scale an action up", "action", name, "replicas", s.wanted, "error", err)
	return err
}

// scale sets how many pods an action has, unless somebody else has changed its Deployment since.
func (c *controller) scale(ctx context.Context, s state, to int32) error {
	ctx, cancel := context.WithTimeout(ctx, apiWait)
	defer cancel()
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]string{"resourceVersion": s.version}, "spec": map[string]int32{"replicas": to},
	})
	if err != nil {
		return err
	}
	_, err = c.client.AppsV1().Deployments(c.namespace).Patch(ctx, s.deployment, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: program}, "scale")
	if err != nil {
		return err
	}
	c.m.scaled.WithLabelValues(s.name, direction(s.replicas, to)).Inc()
	c.s.Log.InfoContext(ctx, "Scaled an action", "action", s.name, "from", s.replicas, "to", to)
	return nil
}

func direction(from, to int32) string {
	if to > from {
		return "up"
	}
	return "down"
}

// status is what a pod of an action says of itself.
type status struct {
	Active int   `json:"active"`  // invocations that run
	IdleMS int64 `json:"idle_ms"` // since the last one or its initialisation ended, or the program was started
}

// shrink looks for actions with more pods than they need, again and again.
func (c *controller) shrink(ctx context.Context) {
	tick := time.NewTicker(idleEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for _, name := range c.fleet.names() {
			c.rest(ctx, name)
		}
	}
}

// rest takes a pod from an action, or the last ones, if all of them have been idle for long enough. As long as one of
// its pods is not ready or does not answer, nobody knows: it is left for people to look at.
func (c *controller) rest(ctx context.Context, name string) {
	s, ok := c.fleet.state(name)
	if !ok || s.replicas == 0 || s.unready > 0 || len(s.pods) != int(s.replicas) {
		return
	}
	spare, least := 0, time.Duration(-1)
	for _, address := range s.pods {
		st, err := c.status(ctx, address)
		if err != nil {
			return
		}
		idle := time.Duration(st.IdleMS) * time.Millisecond
		if st.Active > 0 {
			idle = 0
		}
		if idle >= c.idle/2 {
			spare++
		}
		if least < 0 || idle < least {
			least = idle
		}
	}
	to := s.replicas
	switch {
	case least >= c.idle && s.idle:
		to = 0
	case spare > 0 && s.replicas > 1:
		to--
	default:
		return
	}
	if err := c.scale(ctx, s, to); err != nil && !apierrors.IsConflict(err) && ctx.Err() == nil {
		c.s.Log.ErrorContext(ctx, "Cannot scale an action down", "action", name, "replicas", to, "error", err)
	}
}

// status asks a pod whether it has something to do.
func (c *controller) status(ctx context.Context, address string) (st status, err error) {
	ctx, cancel := context.WithTimeout(ctx, idleWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, podURL(address, "/status"), nil)
	if err != nil {
		return st, err
	}
	resp, err := c.plain.Do(req)
	if err != nil {
		return st, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return st, fmt.Errorf("status %d", resp.StatusCode)
	}
	return st, json.NewDecoder(http.MaxBytesReader(nil, resp.Body, maxBody)).Decode(&st)
}

// podURL is where a pod of an action is asked.
func podURL(address, path string) string {
	return "http://" + net.JoinHostPort(address, strconv.Itoa(RuntimePort)) + path
}
