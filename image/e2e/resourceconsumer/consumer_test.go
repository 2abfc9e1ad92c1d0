package resourceconsumer

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/kit/kittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T) (*kittest.Machine, *kittest.Run, *http.Client) {
	t.Helper()
	m := kittest.New(t).Machine("pod", "10.244.0.2")
	r := m.Start(Main, "/consumer", "-port=80")
	m.WaitListen(":80")
	return m, r, m.Client()
}

func post(t *testing.T, c *http.Client, path string, form url.Values) (int, string) {
	t.Helper()
	resp, err := c.PostForm("http://localhost"+path, form)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestConsumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r, c := serve(t)
		if code, body := post(t, c, "/ConsumeCPU", url.Values{"millicores": {"300"}, "durationSec": {"10"}}); code != 200 {
			t.Errorf("%d %q", code, body)
		}
		post(t, c, "/ConsumeMem", url.Values{"megabytes": {"50"}, "durationSec": {"10"}})
		time.Sleep(5 * time.Second)
		if held := m.Resources.Memory(); held != 50<<20 {
			t.Errorf("it holds %d bytes", held)
		}
		time.Sleep(6 * time.Second)
		if used := m.Resources.Info().Used; used < 2900*time.Millisecond || used > 3100*time.Millisecond {
			t.Errorf("0.3 cores for 10s used %v", used)
		}
		if held := m.Resources.Memory(); held != 0 {
			t.Errorf("it still holds %d bytes", held)
		}
		r.Signal(syscall.SIGTERM)
		r.Wait()
	})
}

func TestStopsWhatItStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r, c := serve(t)
		post(t, c, "/ConsumeCPU", url.Values{"millicores": {"100"}, "durationSec": {"600"}})
		post(t, c, "/ConsumeMem", url.Values{"megabytes": {"1"}, "durationSec": {"600"}})
		time.Sleep(10 * time.Second)
		if held, used := m.Resources.Memory(), m.Resources.Info().Used; held != 1<<20 || used < 900*time.Millisecond {
			t.Errorf("after 10s it holds %d bytes and has used %v", held, used)
		}
		r.Signal(syscall.SIGTERM)
		r.Wait()
		before := m.Resources.Info().Used
		time.Sleep(time.Minute)
		if held, used := m.Resources.Memory(), m.Resources.Info().Used; held != 0 || used != before {
			t.Errorf("a minute after its end it holds %d bytes and has used %v more", held, used-before)
		}
	})
}

func TestRefuses(t *testing.T) {
	_, _, c := serve(t)
	tests := []struct {
		path string
		form url.Values
		code int
		want string
	}{
		{"/ConsumeCPU", url.Values{"millicores": {"1"}}, 400, "millicores and durationSec must be numbers"},
		{"/ConsumeMem", url.Values{"megabytes": {"x"}, "durationSec": {"1"}}, 400, "megabytes and durationSec must be numbers"},
		{"/Fly", nil, 404, "post a form to /ConsumeCPU or /ConsumeMem"},
	}
	for _, tt := range tests {
		if code, body := post(t, c, tt.path, tt.form); code != tt.code || !strings.HasPrefix(body, tt.want) {
			t.Errorf("%s: %d %q", tt.path, code, body)
		}
	}
	resp, err := c.Get("http://localhost/ConsumeCPU")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 404 {
		t.Errorf("GET: %d", resp.StatusCode)
	}
}
