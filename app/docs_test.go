package app_test

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/app/apptest"
	"github.com/aiopslab/aiopslab/image/memcached"
	"github.com/aiopslab/aiopslab/kit"
)

// TestExample runs the worked example.
func TestExample(t *testing.T) {
	d := apptest.Deploy(t, visitsApp(), kit.NewRegistry(visitsImage(), memcached.Image(nil)))
	client := d.User().Client()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		resp, err := client.Get("http://visits:8080/")
		if err == nil {
			b, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK && string(b) == "You are visitor 2.\n" {
				break
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("nobody is visitor 2: %v", err)
		}
	}
}

// TestDocs holds docs/apps.md to the example: it shows the file as it is.
func TestDocs(t *testing.T) {
	doc, err := os.ReadFile("../docs/apps.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), "```go\n"+string(code)+"```\n") {
		t.Error("docs/apps.md does not show example_test.go as it is; copy it there")
	}
}
