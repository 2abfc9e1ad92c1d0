package httpecho

import (
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/kit/kittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEcho(t *testing.T) {
	w := kittest.New(t)
	server, client := w.Machine("server", "10.244.0.2"), w.Machine("client", "10.244.0.3")
	run := server.Start(Main, "/http-echo", "-text=hello", "-status-code=418")
	server.WaitListen(":5678")

	transport := client.Env().HTTPTransport()
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get("http://10.244.0.2:5678/any")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "hello\n" || resp.StatusCode != 418 {
		t.Errorf("%d %q, %v", resp.StatusCode, body, err)
	}
	run.Signal(syscall.SIGTERM)
	if code := run.Wait(); code != 0 {
		t.Errorf("told to stop, it exits %d", code)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"/http-echo"}, {"/http-echo", "-no-such-flag"}} {
		run := kittest.New(t).Machine("pod", "10.244.0.2").Start(Main, args...)
		if code := run.Wait(); code != 127 || run.Stderr.String() == "" {
			t.Errorf("%q: exit %d, %q", args, code, run.Stderr)
		}
	}
}

// TestDocs holds docs/images.md to this package: it shows the file as it is.
func TestDocs(t *testing.T) {
	doc, err := os.ReadFile("../../docs/images.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("httpecho.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), "```go\n"+string(code)+"```\n") {
		t.Error("docs/images.md does not show httpecho.go as it is; copy it there")
	}
}
