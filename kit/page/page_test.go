package page

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dop251/goja"
)

// Every page of every image is whole: its scripts can be read, it loads nothing, and it makes no markup of
// what it is told.
func TestPages(t *testing.T) {
	var files []string
	for _, pattern := range []string{"../../app/*/page.html", "../../image/*/page.html"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) < 2 {
			t.Fatalf("%s: %d pages, %v", pattern, len(found), err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		html, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		New(string(html)).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		body := w.Body.String()
		policy := w.Header().Get("Content-Security-Policy")
		if len(body) > 24<<10 || !strings.HasPrefix(body, "<!doctype html>\n") {
			t.Errorf("%s: %d bytes that begin with %.20q", file, len(body), body)
		}
		if strings.Contains(policy, "unsafe") || !strings.Contains(policy, "default-src 'none'") {
			t.Errorf("%s: %s", file, policy)
		}
		parts := inline.FindAllStringSubmatch(body, -1)
		if n := strings.Count(policy, "'sha256-"); n != len(parts) || n < 3 || strings.Count(body, "<script") != 2 {
			t.Errorf("%s: %d scripts and styles, and %d that may run", file, len(parts), n)
		}
		for _, m := range parts {
			if m[1] == "script" {
				if _, err := goja.Parse(file, m[2]); err != nil {
					t.Error(err)
				}
			}
		}
		for _, forbidden := range []string{`innerHTML`, `outerHTML`, `insertAdjacentHTML`, `document\.write`, `\beval\b`, `https?://[^w]`, `\bsrc=`, ` on[a-z]+="`, `<link`, ` style="`} {
			if found := regexp.MustCompile(forbidden).FindString(body); found != "" {
				t.Errorf("%s has %q", file, found)
			}
		}
	}
}

// What is on a page is there for those who do not use a mouse, too: every field has a label.
func TestLabels(t *testing.T) {
	files, err := filepath.Glob("../*/page.html")
	if err != nil {
		t.Fatal(err)
	}
	field := regexp.MustCompile(`(.*)<(?:input|select|textarea)\b`)
	for _, file := range files {
		html, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range field.FindAllStringSubmatch(string(html), -1) {
			if !strings.Contains(m[1], "<label") {
				t.Errorf("%s: no label in front of a field in %q", file, m[0])
			}
		}
	}
}

func TestNoPlace(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a page without a place for what is common is served")
		}
	}()
	New("<!doctype html>")
}
