package curl

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestEntrypoint shows what the image's arguments run: a command, if there is one of that name, or
// curl with them.
func TestEntrypoint(t *testing.T) {
	say := func(code int) kit.Program {
		return func(_ context.Context, env *kit.Env) error {
			fmt.Fprint(env.Stdout, strings.Join(env.Args, " "))
			return kit.Exit(code)
		}
	}
	image := Image(map[string]kit.Program{"curl": say(22), "sh": say(3)})
	tests := []struct {
		args []string
		out  string
		code int
	}{
		{nil, "curl", 22},
		{[]string{"curl", "-s", "web"}, "curl -s web", 22},
		{[]string{"-fsS", "http://web"}, "curl -fsS http://web", 22},
		{[]string{"http://web/x"}, "curl http://web/x", 22},
		{[]string{"sh", "-c", "exit 3"}, "sh -c exit 3", 3},
	}
	for _, tt := range tests {
		m := kittest.New(t).Machine("pod", "10.244.0.2")
		m.Install(image)
		run := m.Start(image.Programs["/entrypoint.sh"], append([]string{"/entrypoint.sh"}, tt.args...)...)
		if code := run.Wait(); code != tt.code {
			t.Errorf("%q: exit %d, %s", tt.args, code, run.Stderr)
		}
		if diff := cmp.Diff(tt.out, run.Stdout.String()); diff != "" {
			t.Errorf("%q: %s", tt.args, diff)
		}
	}
}

func TestTags(t *testing.T) {
	r := kit.NewRegistry(Image(nil))
	for ref, ok := range map[string]bool{"curlimages/curl": true, "curlimages/curl:8.10.1": true, "curlimages/curl:9.0.0": false, "curl": false} {
		if _, _, err := r.Resolve(ref); (err == nil) != ok {
			t.Errorf("%s: %v", ref, err)
		}
	}
}
