package cli

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// labServer answers as a guard does, and tells what it was asked for.
func labServer(t *testing.T, status int, answer string) (flags *genericclioptions.ConfigFlags, asked *string) {
	t.Helper()
	asked = new(string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = r.Method + " " + r.URL.String()
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	flags = genericclioptions.NewConfigFlags(true)
	flags.APIServer = &s.URL
	return flags, asked
}

// What `kubectl lab` asks the guard for, by its arguments.
func TestKubectlLab(t *testing.T) {
	for _, c := range []struct{ args, want, fails string }{
		{"begin", "POST /lab/begin", ""},
		{"commit", "POST /lab/commit?wait=30", ""},
		{"commit --wait=5", "POST /lab/commit?wait=5", ""},
		{"abort", "POST /lab/abort", ""},
		{"undo", "POST /lab/undo", ""},
		{"undo 3", "POST /lab/undo?n=3", ""},
		{"undo -- -1", "POST /lab/undo?n=-1", ""}, // The guard refuses it, with a line.
		{"history", "GET /lab/history", ""},
		{"begin now", "", "unknown command"},
		{"abort 1", "", "unknown command"},
		{"undo 1 2", "", "accepts at most 1 arg(s), received 2"},
		{"undo -1", "", "unknown shorthand flag"},
		{"commit --wait=soon", "", `invalid argument "soon"`},
		{"commit --wiat=5", "", "unknown flag: --wiat"},
	} {
		flags, asked := labServer(t, http.StatusOK, "done\n")
		var out bytes.Buffer
		lab := newTransactions(flags, &out)
		lab.SetArgs(strings.Fields(c.args))
		lab.SetOut(io.Discard)
		lab.SetErr(io.Discard)
		err := lab.ExecuteContext(t.Context())
		switch {
		case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails) || *asked != ""):
			t.Errorf("%s: %v, asked %q", c.args, err, *asked)
		case c.fails == "" && (err != nil || *asked != c.want || out.String() != "done\n"):
			t.Errorf("%s: %v, asked %q, printed %q", c.args, err, *asked, out.String())
		}
	}
}

// Refusals are one line that says why; elsewhere than at a guard it says where to look for one.
func TestKubectlLabRefused(t *testing.T) {
	for _, c := range []struct {
		status       int
		answer, want string
	}{
		{400, `{"kind":"Status","message":"no transaction is open: begin one first"}`, "no transaction is open: begin one first"},
		{404, "404 page not found", "use the kubeconfig that the agent of a run has"},
		{200, "", ""},
	} {
		flags, _ := labServer(t, c.status, c.answer)
		err := transact(t.Context(), flags, io.Discard, http.MethodPost, "commit", nil)
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%d: %v", c.status, err)
		}
	}
}

// Help names every action.
func TestKubectlLabHelp(t *testing.T) {
	var out bytes.Buffer
	lab := newTransactions(genericclioptions.NewConfigFlags(true), &out)
	lab.SetArgs([]string{"--help"})
	lab.SetOut(&out)
	if err := lab.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range lab.Commands() {
		if c.Name() == "help" || c.Name() == "completion" { // Cobra's own, of a command by itself.
			continue
		}
		if !strings.Contains(out.String(), c.Short) || c.Short == "" {
			t.Errorf("help says nothing of %s:\n%s", c.Name(), out.String())
		}
		names = append(names, c.Name())
	}
	if diff := cmp.Diff([]string{"abort", "begin", "commit", "history", "undo"}, names); diff != "" {
		t.Error(diff)
	}
}
