package cli_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/aiopslab/aiopslab/internal/cli"
)

// programs are what the test binary is when it is called by another name. Scripts find them in
// their PATH, as symbolic links: copies of a binary this big would cost more than the tests.
var programs = map[string]func() int{
	"aiopslab":      lab,
	"kubectl":       lab,
	"submit":        lab,
	"fetch":         fetch,
	"withmodel":     withModel,
	"hostile-agent": hostileAgent,
	"fakelab":       fakelab,
	"tinydisk":      tinydisk, "tinymount": tinymount,
}

func lab() int { return cli.Main(context.Background(), cli.Process()) }

func TestMain(m *testing.M) {
	if program := programs[filepath.Base(os.Args[0])]; program != nil {
		os.Exit(program())
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "cli")
	if err == nil {
		err = linkPrograms(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	os.Setenv("AIOPSLAB_NOISE", "none")                        // It takes seconds; who tests it says so.
	os.Setenv("AIOPSLAB_WORLDS", filepath.Join(dir, "worlds")) // An application is deployed once, not for each test.
	code := m.Run()
	if err := shared.stop(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "the shared environment:", err)
		code = 1
	}
	return code
}

func linkPrograms(bin string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for name := range programs {
		if err := os.Symlink(self, filepath.Join(bin, name)); err != nil {
			return err
		}
	}
	return os.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
}

var loopback = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// fetch prints what a web server answers: fetch FILE PATH. The file, a program's output, names the
// server's address.
func fetch() int {
	b, err := os.ReadFile(os.Args[1])
	address := loopback.Find(b)
	if err == nil && address == nil {
		err = errors.New("no address yet")
	}
	var res *http.Response
	if err == nil {
		res, err = http.Get("http://" + string(address) + os.Args[2])
	}
	if err == nil {
		defer res.Body.Close()
		fmt.Println(res.Status)
		_, err = io.Copy(os.Stdout, res.Body)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
