package metricsserver

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/kit/kittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStartErrors(t *testing.T) {
	m := kittest.New(t).Machine("metrics", "10.244.0.2")
	run := m.Start(Main, "/metrics-server", "--secure-port=10250", "--cert-dir=/tmp")
	if code := run.Wait(); code != 1 || !strings.HasPrefix(run.Stderr.String(), "unable to load in-cluster configuration") {
		t.Errorf("exit %d, %s", code, run.Stderr)
	}
	run = m.Start(Main, "/metrics-server", "--secure-prt=10250")
	if code := run.Wait(); code != 2 || !strings.HasPrefix(run.Stderr.String(), "flag provided but not defined: -secure-prt") {
		t.Errorf("exit %d, %s", code, run.Stderr)
	}
}
