package cri

import (
	"context"
	"fmt"
	"slices"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/aiopslab/aiopslab/kit"
)

func init() {
	programs["id"] = func(_ context.Context, env *kit.Env) error {
		_, err := fmt.Fprintln(env.Stdout, env.User.UID, env.User.GID, env.User.Groups)
		return err
	}
}

// Who is not root has the home that the image says, and can write where its programs do.
func TestNotRoot(t *testing.T) {
	programs["home"] = func(_ context.Context, env *kit.Env) error {
		fmt.Fprintln(env.Stdout, env.Getenv("HOME"))
		return env.WriteFile("/data/file", nil, 0o644)
	}
	l := newLab(t)
	l.cfg.Images.registry.Register(kit.Image{
		Names: []string{"store"}, Entrypoint: []string{"wait"}, Files: map[string]string{
			"/data/":      "",
			"/etc/passwd": "root:x:0:0:root:/root:/bin/sh\nalice:x:1000:100:alice:/home/alice:/bin/sh\nbob:x:1001:100\n",
		},
		Programs: map[string]kit.Program{"/bin/wait": programs["wait"], "/bin/home": programs["home"]},
	})
	if _, err := l.PullImage(t.Context(), &runtimeapi.ImageSpec{Image: "store"}, nil, nil); err != nil {
		t.Fatal(err)
	}
	pod := l.pod("p")
	for uid, want := range map[int64]string{0: "/root", 1000: "/home/alice", 1001: "/", 7: "/"} {
		id := l.run(pod, nil, func(cfg *runtimeapi.ContainerConfig) {
			cfg.Image.Image = "store"
			cfg.Linux.SecurityContext.RunAsUser = &runtimeapi.Int64Value{Value: uid}
		})
		if got := l.do(id, "home"); got != want {
			t.Errorf("user %d: %s, want %s", uid, got, want)
		}
	}
}

// The image's own groups count, unless the pod says otherwise.
func TestSupplementalGroups(t *testing.T) {
	l := newLab(t)
	files := map[string]string{
		"/etc/passwd": "root:x:0:0:root:/root:/bin/sh\nalice:x:1000:100:alice:/:/bin/sh\n",
		"/etc/group":  "root:x:0:root\nwheel:x:10:root\nstaff:x:50:alice,bob\nshared:x:60:bob,alice\nbad:x:y:alice\n",
	}
	l.cfg.Images.registry.Register(kit.Image{Names: []string{"grouped"}, Entrypoint: []string{"wait"}, Files: files, Programs: map[string]kit.Program{
		"/bin/wait": programs["wait"], "/bin/id": programs["id"], "/bin/cat": programs["cat"],
	}})
	if _, err := l.PullImage(t.Context(), &runtimeapi.ImageSpec{Image: "grouped"}, nil, nil); err != nil {
		t.Fatal(err)
	}
	pod := l.pod("p")
	env := l.env()
	for name, gid := range map[string]int{"/vol/staff": 50, "/vol/other": 70} {
		if err := env.WriteFile(name, []byte("read"), 0o640); err != nil {
			t.Fatal(err)
		}
		if err := env.FS.Chmod(name, 0o640); err != nil {
			t.Fatal(err)
		}
		if err := env.FS.Chown(name, 0, gid); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		user         int64
		group        *runtimeapi.Int64Value
		policy       runtimeapi.SupplementalGroupsPolicy
		extra        []int64
		want         string
		status       []int64
		staff, other string
	}{
		"merge":    {1000, nil, 0, []int64{70, 50}, "1000 100 [50 60 70]", []int64{100, 50, 60, 70}, "read", "read"},
		"strict":   {1000, nil, runtimeapi.SupplementalGroupsPolicy_Strict, []int64{70}, "1000 100 [70]", []int64{100, 70}, "open /vol/staff: permission denied", "read"},
		"group":    {1000, &runtimeapi.Int64Value{Value: 3}, 0, nil, "1000 3 [50 60]", []int64{3, 50, 60}, "read", "open /vol/other: permission denied"},
		"root":     {0, nil, 0, nil, "0 0 [0 10]", []int64{0, 10}, "read", "read"},
		"stranger": {7, nil, 0, nil, "7 0 []", []int64{0}, "open /vol/staff: permission denied", "open /vol/other: permission denied"},
	} {
		id := l.run(pod, nil, func(cfg *runtimeapi.ContainerConfig) {
			cfg.Image.Image = "grouped"
			cfg.Mounts = []*runtimeapi.Mount{{ContainerPath: "/vol", HostPath: "/vol"}}
			sc := cfg.Linux.SecurityContext
			sc.RunAsGroup, sc.SupplementalGroupsPolicy, sc.SupplementalGroups = tt.group, tt.policy, tt.extra
			if tt.user != 0 {
				sc.RunAsUser = &runtimeapi.Int64Value{Value: tt.user}
			}
		})
		if got := l.do(id, "id"); got != tt.want {
			t.Errorf("%s: id: %s, want %s", name, got, tt.want)
		}
		if got := l.status(id).User.Linux.SupplementalGroups; !slices.Equal(got, tt.status) {
			t.Errorf("%s: status: %v, want %v", name, got, tt.status)
		}
		if staff, other := l.do(id, "cat", "/vol/staff"), l.do(id, "cat", "/vol/other"); staff != tt.staff || other != tt.other {
			t.Errorf("%s: files: %q, %q, want %q, %q", name, staff, other, tt.staff, tt.other)
		}
	}
}
