package node

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// content lists the files of a volume with their modes, as a program sees them.
func content(t *testing.T, k *kubelet, dir string) map[string]string {
	t.Helper()
	env := k.machine.env()
	files := map[string]string{}
	var walk func(sub string)
	walk = func(sub string) {
		entries, err := env.FS.ReadDir(dir + sub)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name := sub + "/" + e.Name()
			if strings.HasPrefix(e.Name(), "..") {
				continue
			}
			fi, err := env.FS.Stat(dir + name)
			if err != nil {
				t.Fatal(err)
			}
			if fi.IsDir() {
				walk(name)
				continue
			}
			b, err := env.ReadFile(dir + name)
			if err != nil {
				t.Fatal(err)
			}
			files[name] = fi.Mode().String() + " " + string(b)
		}
	}
	walk("")
	return files
}

func TestProject(t *testing.T) {
	items := []v1.KeyToPath{{Key: "SIZE", Path: "deep/size", Mode: ptr.To[int32](0o400)}}
	downward := []v1.DownwardAPIVolumeFile{{Path: "labels", FieldRef: &v1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.labels"}}}
	config := func(name string, items []v1.KeyToPath, optional bool) v1.VolumeSource {
		return v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: name}, Items: items, Optional: &optional, DefaultMode: ptr.To[int32](0o644)}}
	}
	tests := []struct {
		name   string
		source v1.VolumeSource
		want   map[string]string
		err    string
	}{
		{"config map", config("cm", nil, false), map[string]string{"/COLOUR": "-rw-r--r-- blue", "/SIZE": "-rw-r--r-- 7"}, ""},
		{"items", config("cm", items, false), map[string]string{"/deep/size": "-r-------- 7"}, ""},
		{"no map", config("none", nil, false), nil, `configmap "none" not found`},
		{"no map, optional", config("none", nil, true), map[string]string{}, ""},
		{"no key", config("cm", []v1.KeyToPath{{Key: "NONE", Path: "x"}}, false), nil, "references non-existent config key: NONE"},
		{
			"secret",
			v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "sec", DefaultMode: ptr.To[int32](0o400)}},
			map[string]string{"/PASSWORD": "-r-------- p4ss"},
			"",
		},
		{
			"downward",
			v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{Items: downward, DefaultMode: ptr.To[int32](0o644)}},
			map[string]string{"/labels": `-rw-r--r-- app="web"`},
			"",
		},
		{"projected", v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{DefaultMode: ptr.To[int32](0o644), Sources: []v1.VolumeProjection{
			{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "cm"}, Items: items}},
			{Secret: &v1.SecretProjection{LocalObjectReference: v1.LocalObjectReference{Name: "sec"}}},
			{DownwardAPI: &v1.DownwardAPIProjection{Items: downward}},
		}}}, map[string]string{"/deep/size": "-r-------- 7", "/PASSWORD": "-rw-r--r-- p4ss", "/labels": `-rw-r--r-- app="web"`}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := testKubelet(t, sources()...)
			pod := testPod(nil)
			m, err := k.add(pod).volumes.project(t.Context(), pod, &v1.Volume{Name: "vol", VolumeSource: tt.source})
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, content(t, k, m.hostPath)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestProjectAgain changes a ConfigMap under a volume: the files change all at once, and only then.
func TestProjectAgain(t *testing.T) {
	k := testKubelet(t, sources()...)
	pod := testPod(nil)
	v := k.add(pod).volumes
	project := func(data map[string]string) (dir, current string) {
		t.Helper()
		k.watches = testWatches(t, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cm"}, Data: data})
		m, err := v.project(t.Context(), pod, &v1.Volume{Name: "vol", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{
			LocalObjectReference: v1.LocalObjectReference{Name: "cm"}, DefaultMode: ptr.To[int32](0o644),
		}}})
		if err != nil {
			t.Fatal(err)
		}
		if current, err = k.machine.env().FS.Readlink(m.hostPath + "/" + dataDir); err != nil {
			t.Fatal(err)
		}
		return m.hostPath, current
	}
	dir, first := project(map[string]string{"a": "1", "b": "1"})
	if _, again := project(map[string]string{"a": "1", "b": "1"}); again != first {
		t.Error("nothing changed, and the files were written anew")
	}
	_, second := project(map[string]string{"b": "2", "c": "2"})
	if diff := cmp.Diff(map[string]string{"/b": "-rw-r--r-- 2", "/c": "-rw-r--r-- 2"}, content(t, k, dir)); diff != "" || second == first {
		t.Errorf("from %s to %s: %s", first, second, diff)
	}
	entries, _ := k.machine.env().FS.ReadDir(dir)
	var names []string
	for _, e := range entries {
		if e.Type() != fs.ModeSymlink && e.Name() != second {
			names = append(names, e.Name())
		}
	}
	if len(names) > 0 {
		t.Errorf("left behind: %v", names)
	}
}

func TestCredentialMode(t *testing.T) {
	root, user := ptr.To[int64](0), ptr.To[int64](1000)
	tests := []struct {
		name   string
		change func(*v1.Pod)
		mode   int32
		owner  *int64
	}{
		{"anybody", nil, 0o644, nil},
		{"a user", func(p *v1.Pod) { p.Spec.SecurityContext = &v1.PodSecurityContext{RunAsUser: user} }, 0o600, user},
		{"a group", func(p *v1.Pod) { p.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: root} }, 0o600, nil},
		{"different users", func(p *v1.Pod) {
			p.Spec.SecurityContext = &v1.PodSecurityContext{RunAsUser: user}
			p.Spec.InitContainers = []v1.Container{{Name: "i", SecurityContext: &v1.SecurityContext{RunAsUser: root}}}
		}, 0o644, nil},
	}
	for _, tt := range tests {
		f := credential(testPod(tt.change), []byte("token"), nil)
		if f.Mode != tt.mode || ptr.Deref(f.FsUser, -1) != ptr.Deref(tt.owner, -1) {
			t.Errorf("%s: mode %o, owner %v", tt.name, f.Mode, f.FsUser)
		}
	}
}
