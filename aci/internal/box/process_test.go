package box

import (
	"bytes"
	"context"
	"testing"

	"github.com/aiopslab/aiopslab/kit"
)

// A panic of a program is one line, and no more than that.
func TestPanicIsQuiet(t *testing.T) {
	table := newTable(map[string]kit.Program{}, 2)
	var stderr bytes.Buffer
	p, err := table.Fork(t.Context(), &kit.Env{Args: []string{"awk"}, Stderr: &stderr}, func(context.Context, *kit.Env) error { panic("x") })
	if err != nil {
		t.Fatal(err)
	}
	if code := p.Wait(); code != kit.ExitPanic || stderr.String() != "awk: an internal error\n" {
		t.Errorf("%d, %q", code, stderr.String())
	}
}
