package cri

import (
	"io/fs"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/aiopslab/aiopslab/cloud"
)

// TestRotatedFile holds that the file before a log stands beside it on the node, with a name and a date that tell when it
// was rotated; that a log that was not rotated has none; that nobody can write it; and that both go with
// their container.
func TestRotatedFile(t *testing.T) {
	l := newLab(t)
	env := l.env()
	for _, dir := range []string{"/dev", "/proc", "/sys", logDir} {
		if err := env.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Mount(); err != nil {
		t.Fatal(err)
	}
	pod, err := l.RunPodSandbox(t.Context(), &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "p", Namespace: "shop", Uid: "u"}, LogDirectory: logDir + "/shop_p_u",
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	id := l.run(pod, []string{"wait"}, func(c *runtimeapi.ContainerConfig) { c.LogPath = "c/0.log" })
	c, err := l.Runtime.container(id)
	if err != nil {
		t.Fatal(err)
	}
	names := func() (list []string) {
		entries, err := env.FS.ReadDir(logDir + "/shop_p_u/c")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			list = append(list, e.Name())
		}
		return list
	}
	if err := c.addRotated(); err != nil || len(names()) != 1 {
		t.Fatalf("%v, %v", names(), err)
	}
	at := time.Date(2026, 11, 18, 3, 15, 2, 7, time.UTC)
	gone := []cloud.Line{{Time: at.Add(-time.Second), Stream: "stdout", Text: "two"}}
	begin := []cloud.Line{{Time: at.Add(-time.Hour), Stream: "stdout", Text: "Starting"}}
	looked := 0
	c.log.rotated = rotateOut(gone, at, maxPast, func(until time.Time, _ int) ([]cloud.Line, bool) {
		looked++
		return []cloud.Line{{Time: until.Add(-time.Second), Stream: "stdout", Text: "one"}}, true
	}, begin)
	if err := c.addRotated(); err != nil || looked != 0 {
		t.Fatalf("%v, %d times made", err, looked)
	}
	if len(names()) != 2 {
		t.Errorf("files %v", names())
	}
	const file = logDir + "/shop_p_u/c/0.log.20261118-031502"
	text, err := env.ReadFile(file)
	want := "2026-11-18T02:15:02.000000007Z stdout F Starting\n2026-11-18T03:15:00.000000007Z stdout F one\n2026-11-18T03:15:01.000000007Z stdout F two\n"
	if err != nil || string(text) != want {
		t.Errorf("%q, %v", text, err)
	}
	fi, err := env.FS.Stat(file)
	if err != nil || fi.Size() != int64(len(want)) || !fi.ModTime().Equal(at) || fi.Mode() != fs.FileMode(0o640) || looked != 1 {
		t.Errorf("%+v, %v, %d times made", fi, err, looked)
	}
	if err := env.WriteFile(file, []byte("x"), 0o640); err == nil {
		t.Error("it can be written")
	}
	if err := l.RemoveContainer(t.Context(), id); err != nil || len(names()) > 0 {
		t.Errorf("with the container gone, there is %v, %v", names(), err)
	}
}
