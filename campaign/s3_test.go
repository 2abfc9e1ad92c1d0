package campaign

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/aiopslab/aiopslab/campaign/local"
	"github.com/aiopslab/aiopslab/kit"
)

// s3Server is a store with the bucket "lab", and somebody whose key is "right".
func s3Server(t *testing.T) *httptest.Server {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("lab"); err != nil {
		t.Fatal(err)
	}
	store := gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog()), gofakes3.WithTimeSkewLimit(0)).Server()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Authorization"), "Credential=right/") {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, "<Error><Code>InvalidAccessKeyId</Code><Message>who are you?</Message></Error>")
			return
		}
		store.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv
}

func s3Env(url, key string) *kit.Env {
	env := kit.HostEnv()
	env.Vars = map[string]string{endpointVariable: url, keyVariable: key, secretVariable: "hush"}
	return env
}

// onServers runs a test with a store that is played, and with a real server of S3, where there is one.
func onServers(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	t.Run("played", func(t *testing.T) { test(t, s3Server(t).URL) })
	t.Run("versitygw", func(t *testing.T) { test(t, versity(t)) })
}

// versity is the URL of a Versity S3 Gateway (https://github.com/versity/versitygw) over a directory, with the bucket
// "lab" and somebody whose key is "right". test/s3 builds it, as .ci/run does.
func versity(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("versitygw")
	if err != nil {
		t.Skip("versitygw is not installed: 'go -C test/s3 build -o DIR github.com/versity/versitygw/cmd/versitygw', with DIR in PATH")
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "data", "lab"), 0o755); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	// Metadata is beside the data: not every file system has room for it in its files.
	server := exec.Command(program, "--access", "right", "--secret", "hush", "--port", address, "--quiet", "posix",
		"--sidecar", filepath.Join(dir, "meta"), filepath.Join(dir, "data"))
	server.Stdout, server.Stderr = &said, &said
	if err := os.MkdirAll(filepath.Join(dir, "meta"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	t.Cleanup(func() {
		_ = server.Process.Kill()
		<-ended
	})
	for {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			return "http://" + address
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("versitygw: %v: %s", err, &said)
		case <-t.Context().Done():
			t.Fatal("versitygw does not answer")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestBucket: a bucket keeps the promises of a store.
func TestBucket(t *testing.T) {
	onServers(t, func(t *testing.T, url string) {
		testStore(t, func() Store {
			b, err := openBucket(s3Env(url, "right"), Place{Bucket: "lab", Prefix: "teams/a/nightly"})
			if err != nil {
				t.Fatal(err)
			}
			return b
		})
		// Beside it, another campaign sees nothing of it.
		b, err := openBucket(s3Env(url, "right"), Place{Bucket: "lab", Prefix: "teams/a/nightly-2"})
		if err != nil {
			t.Fatal(err)
		}
		if list, err := b.List(t.Context()); len(list) > 0 || err != nil {
			t.Errorf("%v, %v", list, err)
		}
	})
}

// TestBucketTells: what is wrong with a bucket is a line that says what to do, and the pod ends with it.
func TestBucketTells(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	onServers(t, func(t *testing.T, url string) {
		for _, c := range []struct {
			name, key, where, want, url string
			code                        int
		}{
			{"no bucket", "right", "s3://other/x/nightly", "there is no bucket other at " + url + ": make it", url, ExitBadInput},
			{"no rights", "wrong", "s3://lab/x/nightly", "the Secret of --s3-secret needs AWS_ACCESS_KEY_ID", url, 1},
			{"no key", "", "s3://lab/x/nightly", "the Secret of --s3-secret has no AWS_ACCESS_KEY_ID: add it", url, ExitBadInput},
			{"nobody there", "right", "s3://lab/x/nightly", "where pods reach the store? --s3-endpoint says", gone.URL, 1},
			{"no place", "right", "s3:/lab", "write it as pvc:CLAIM or s3://BUCKET/PREFIX", url, ExitBadInput},
		} {
			t.Run(c.name, func(t *testing.T) {
				x := newPod(t, somePlan(2), nil)
				x.env.Vars = s3Env(c.url, c.key).Vars
				x.env.Args = []string{"keep", "--plan", x.dir, "--store", c.where}
				if code := x.run(t.Context(), Keeper); code != c.code || !strings.Contains(x.out.String(), c.want) {
					t.Errorf("status %d: %s", code, x.out)
				}
				if strings.Contains(x.out.String(), "hush") {
					t.Errorf("it tells the key: %s", x.out)
				}
			})
		}
	})
}

// TestWorkerInBucket: the pod of a run keeps its record in a bucket, and the next one finds it.
func TestWorkerInBucket(t *testing.T) {
	onServers(t, func(t *testing.T, url string) {
		runs := 0
		w := Worker{Run: func(_ context.Context, _ *kit.Env, _ *Plan, r local.Run) (Leavings, error) {
			runs++
			return Leavings{Record: aRecord(t, r, "solved")}, nil
		}}
		for i, want := range []string{"00001.jsonl recorded", "00001.jsonl is recorded already"} {
			x := newPod(t, somePlan(2), indexes{1})
			x.env.Vars = s3Env(url, "right").Vars
			x.env.Vars[indexVariable] = "0"
			x.env.Args = []string{"run", "--plan", x.dir, "--store", "s3://lab/nightly"}
			if code := x.run(t.Context(), w.Main); code != 0 || !strings.Contains(x.out.String(), want) || runs != 1 {
				t.Errorf("try %d after %d runs: status %d: %s", i, runs, code, x.out)
			}
		}
	})
}

func TestCheckS3(t *testing.T) {
	at := Place{Bucket: "lab"}
	for _, c := range []struct {
		s3   S3
		at   Place
		want string
	}{
		{S3{Secret: "keys"}, at, ""},
		{S3{Secret: "keys", Endpoint: "http://minio:9000/", Region: "eu-1"}, at, ""},
		{S3{}, at, "records at s3://lab need --s3-secret"},
		{S3{Secret: "keys", Endpoint: "minio:9000"}, at, "--s3-endpoint minio:9000: want a URL"},
		{S3{Secret: "keys", Endpoint: "http://user:pw@minio"}, at, "want a URL"},
		{S3{Secret: "keys"}, Place{Claim: "x"}, "are for records in a bucket, not at pvc:x"},
		{S3{}, Place{Claim: "x"}, ""},
	} {
		if err := c.s3.Check(c.at); (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v at %s: %v", c.s3, c.at, err)
		}
	}
}

// TestKeysAreInTheSecret: nothing that is made in the cluster has them.
func TestKeysAreInTheSecret(t *testing.T) {
	c := someCampaign(t)
	c.Records, c.S3 = Place{Bucket: "lab", Prefix: "x"}, S3{Secret: "keys", Endpoint: "http://minio:9000"}
	for name, spec := range map[string]string{
		"worker": fmt.Sprintf("%+v", c.job("m", indexes{0}).Spec.Template.Spec), "keeper": fmt.Sprintf("%+v", c.keeper("m").Spec),
	} {
		for _, want := range []string{"Name:keys,", "{Name:AWS_ENDPOINT_URL Value:http://minio:9000", "s3://lab/x/nightly"} {
			if !strings.Contains(spec, want) {
				t.Errorf("the %s has no %s: %s", name, want, spec)
			}
		}
		if strings.Contains(spec, "AWS_SECRET") || strings.Contains(spec, filepath.Base(recordsDir)+":") {
			t.Errorf("the %s: %s", name, spec)
		}
	}
}
