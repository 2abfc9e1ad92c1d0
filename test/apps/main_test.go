package apps

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/app/social"
	"github.com/aiopslab/aiopslab/cloud/embedded"
	"github.com/aiopslab/aiopslab/image/consul"
	"github.com/aiopslab/aiopslab/image/coredns"
	"github.com/aiopslab/aiopslab/image/jaeger"
	"github.com/aiopslab/aiopslab/image/kubestatemetrics"
	"github.com/aiopslab/aiopslab/image/memcached"
	"github.com/aiopslab/aiopslab/image/metricsserver"
	"github.com/aiopslab/aiopslab/image/mongo"
	"github.com/aiopslab/aiopslab/image/prometheus"
	"github.com/aiopslab/aiopslab/image/redis"
	"github.com/aiopslab/aiopslab/internal/manifest"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/observe"
)

const (
	// patience is how long a condition may take to come about. It is long because the machine may be
	// busy; a test that passes does not wait for it.
	patience = 3 * time.Minute
	poll     = 100 * time.Millisecond
)

// lab is the cloud, with its telemetry, that all tests share: a process holds one, and the
// applications do not disturb each other.
var lab struct {
	cloud    *embedded.Cloud
	client   kubernetes.Interface
	apply    *manifest.Client
	observer *observe.Observer
}

func TestMain(m *testing.M) {
	code, err := runIn(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// runIn runs the tests in a cloud.
func runIn(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lab.cloud, err = embedded.Start(ctx, embedded.Options{Images: kit.NewRegistry(
		coredns.Image(), metricsserver.Image(), kubestatemetrics.Image(), prometheus.Image(nil), jaeger.Image(),
		consul.Image(nil), mongo.Image(nil), memcached.Image(nil), redis.Image(nil), hotel.Image(nil), social.Image(nil),
	)})
	if err != nil {
		return 0, err
	}
	defer func() {
		if cerr := lab.cloud.Close(); err == nil {
			err = cerr
		}
	}()
	if err := lab.cloud.WaitReady(ctx); err != nil {
		return 0, err
	}
	config := lab.cloud.RESTConfig()
	config.QPS = -1
	if lab.client, err = kubernetes.NewForConfig(config); err != nil {
		return 0, err
	}
	if lab.apply, err = manifest.NewClient(config); err != nil {
		return 0, err
	}
	if lab.observer, err = observe.New(config, lab.cloud.Dial); err != nil {
		return 0, err
	}
	defer lab.observer.Close()
	if err := lab.observer.Deploy(ctx, nil); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// await calls check until it returns no error, and returns its value. The last error, which says
// what is lacking, is what the test fails with.
func await[T any](t *testing.T, check func() (T, error)) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		v, err := check()
		if err == nil {
			return v
		}
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			t.Fatalf("gave up waiting: %v", err)
		}
	}
}
