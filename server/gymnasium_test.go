package server

import (
	"strings"
	"testing"
)

// With Gymnasium, or what stands in for it, the environments keep its contract.
func TestPythonGymnasium(t *testing.T) {
	out := python(t, "-W", "error", "-m", "unittest", "discover", "-s", "tests/with_gymnasium")
	if !strings.Contains(out, "OK") || strings.Contains(out, "skipped") || strings.Contains(out, "Ran 0 ") {
		t.Error(out)
	}
}
