package nonewprivs

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPrintsItsUser(t *testing.T) {
	m := kittest.New(t).Machine("pod", "10.244.0.2")
	image := Image(nil)
	m.Install(image)
	m.User = kit.User{UID: 1000}
	env := m.Env(image.Cmd...)
	p, err := env.Procs.Start(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	// The conformance suite looks for this text.
	if out := env.Stdout.(*kittest.Buffer); p.Wait() != 0 || out.String() != "Effective uid: 1000\n" {
		t.Errorf("printed %q", out)
	}
}
