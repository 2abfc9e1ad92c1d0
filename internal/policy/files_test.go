package policy

import (
	"bytes"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// unwanted is what no file of the repository says, and why.
var unwanted = []struct {
	text *regexp.Regexp
	why  string
}{
	{regexp.MustCompile(`\b(TODO|FIXME|XXX)\b`), "finish it, or open an issue"},
	{regexp.MustCompile(`(^|[\s"'=(` + "`" + `])/(work|builds)/`), "a path of somebody's machine"},
	{regexp.MustCompile(`/(Users|home)/\w+/(go|src|git|code|projects|Documents|Desktop)/`), "a path of somebody's machine"},
	{regexp.MustCompile(`/root/(go|\.cache)/|\.\./shared/`), "a path of somebody's machine"},
	{regexp.MustCompile(`(?i)\b[\w.-]*(artifactory|jfrog|nexus|registry-(proxy|mirror)|goproxy)[\w-]*\.\w+`), "a registry proxy that others do not have"},
	{regexp.MustCompile(`\b(mirror\.gcr\.io|registry-1\.docker\.io)\b`), "a registry proxy, not the name of an image"},
}

const maxFile = 1 << 20

func TestFilesSpeakOfTheProduct(t *testing.T) {
	skip := map[string]bool{
		".git": true, "bin": true,
		"internal/policy": true, // It names what it bans.
	}
	published := map[string]bool{ // by others, and kept as it is
		"server/page/static/xterm.css": true, "server/page/static/xterm.js": true,
	}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case published[name]:
			return nil
		case skip[name]:
			return fs.SkipDir
		case !d.Type().IsRegular(), strings.HasSuffix(name, ".test"), strings.HasSuffix(name, ".prof"):
			return nil
		}
		if fi, err := d.Info(); err != nil || fi.Size() > maxFile {
			return err
		}
		content, err := os.ReadFile(root + "/" + name)
		if err != nil {
			return err
		}
		if bytes.IndexByte(content, 0) >= 0 {
			return nil // It is no text.
		}
		n := 0
		for line := range strings.Lines(string(content)) {
			n++
			if why := complaint(line); why != "" {
				t.Errorf("%s:%d: %s: %s", name, n, why, strings.TrimSpace(line))
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// complaint says what is wrong with a line, or nothing.
func complaint(line string) string {
	for _, u := range unwanted {
		if u.text.MatchString(line) {
			return u.why
		}
	}
	return ""
}

func TestComplaint(t *testing.T) {
	for line, bad := range map[string]bool{
		"// TODO: later":                       true,
		"// todo lists are fine":               false,
		`cd "/builds/tree"`:                    true,
		"/home/ann/go/src":                     true,
		"curl_user:/home/curl_user:/bin/sh":    false,
		"/root/go/pkg/mod":                     true,
		"root:/root:/bin/sh":                   false,
		"GOPROXY=https://goproxy.example.com":  true,
		"image: artifactory.corp.com/busybox":  true,
		"image: registry.k8s.io/pause":         false,
		"see https://proxy.golang.org/":        false,
		"network/worker, home/user/documents/": false,
	} {
		if (complaint(line) != "") != bad {
			t.Errorf("%q: %q", line, complaint(line))
		}
	}
}
