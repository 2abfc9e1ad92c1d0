package cri

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/past"
)

// TestPanicWhenTold holds that a program that panics when it is told its past is an error of the telling, and no end
// of the process that has all the others.
func TestPanicWhenTold(t *testing.T) {
	programs["forgetful"] = func(ctx context.Context, env *kit.Env) error {
		env.Recall(kit.Beginning, func(context.Context, *past.Past) error { panic("who am I?") })
		io.WriteString(env.Stdout, "serving\n")
		<-ctx.Done()
		return ctx.Err()
	}
	l := newLab(t)
	id := l.run(l.pod("p"), []string{"forgetful"}, nil)
	l.await("the program", func() bool { return strings.Contains(l.logs(id), "serving") })
	err := l.Runtime.Recall(t.Context(), kit.Beginning, nil)
	if err == nil || !strings.Contains(err.Error(), "tell c its past: panic: who am I?") {
		t.Errorf("the telling ended with %v, want the panic", err)
	}
}
