package node

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func testService(namespace, name, ip string) *v1.Service {
	return &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1.ServiceSpec{ClusterIP: ip, Ports: []v1.ServicePort{{Port: 80, Protocol: v1.ProtocolTCP}}},
	}
}

func sources() []any {
	return []any{
		testService("default", "kubernetes", "10.96.0.1"), testService("shop", "redis-cache", "10.96.0.7"),
		testService("shop", "headless", v1.ClusterIPNone), testService("default", "other", "10.96.0.8"),
		&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cm"}, Data: map[string]string{"COLOUR": "blue", "SIZE": "7"}},
		&v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sec"}, Data: map[string][]byte{"PASSWORD": []byte("p4ss")}},
	}
}

func configKey(name, key string, optional bool) *v1.EnvVarSource {
	return &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: name}, Key: key, Optional: &optional}}
}

func secretKey(name, key string, optional bool) *v1.EnvVarSource {
	return &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: name}, Key: key, Optional: &optional}}
}

func field(path string) *v1.EnvVarSource {
	return &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}
}

func TestEnvironment(t *testing.T) {
	local := func(name string) v1.LocalObjectReference { return v1.LocalObjectReference{Name: name} }
	limits := v1.ResourceList{v1.ResourceMemory: resource.MustParse("64Mi")}
	tests := []struct {
		name string
		c    v1.Container
		want string // those that are not about services
		err  string
	}{
		{"none", v1.Container{}, "", ""},
		{"values", v1.Container{Env: []v1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "$(A)2 $$(A) $(NONE)"}, {Name: "A", Value: "3"}, {Name: "E"}}}, "A=3 B=12 $(A) $(NONE) E=", ""},
		{"of a service", v1.Container{Env: []v1.EnvVar{{Name: "URL", Value: "redis://$(REDIS_CACHE_SERVICE_HOST)"}}}, "URL=redis://10.96.0.7", ""},
		{"from", v1.Container{EnvFrom: []v1.EnvFromSource{
			{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: local("cm")}},
			{Prefix: "S_", SecretRef: &v1.SecretEnvSource{LocalObjectReference: local("sec")}},
			{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: local("none"), Optional: ptr.To(true)}},
			{SecretRef: &v1.SecretEnvSource{LocalObjectReference: local("none"), Optional: ptr.To(true)}},
		}, Env: []v1.EnvVar{{Name: "SIZE", Value: "$(COLOUR)er"}}}, "COLOUR=blue SIZE=blueer S_PASSWORD=p4ss", ""},
		{"from nothing", v1.Container{EnvFrom: []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: local("none")}}}}, "", `configmap "none" not found`},
		{"from no secret", v1.Container{EnvFrom: []v1.EnvFromSource{{SecretRef: &v1.SecretEnvSource{LocalObjectReference: local("none")}}}}, "", `secret "none" not found`},
		{"keys", v1.Container{Env: []v1.EnvVar{{Name: "C", ValueFrom: configKey("cm", "COLOUR", false)}, {Name: "P", ValueFrom: secretKey("sec", "PASSWORD", false)}}}, "C=blue P=p4ss", ""},
		{"no key", v1.Container{Env: []v1.EnvVar{{Name: "C", ValueFrom: configKey("cm", "COLOR", false)}}}, "", "couldn't find key COLOR in ConfigMap shop/cm"},
		{"no key of a secret", v1.Container{Env: []v1.EnvVar{{Name: "C", ValueFrom: secretKey("sec", "PW", false)}}}, "", "couldn't find key PW in Secret shop/sec"},
		{"no map", v1.Container{Env: []v1.EnvVar{{Name: "C", ValueFrom: configKey("none", "K", false)}}}, "", `configmap "none" not found`},
		{"optional", v1.Container{Env: []v1.EnvVar{
			{Name: "A", ValueFrom: configKey("cm", "COLOR", true)},
			{Name: "B", ValueFrom: configKey("none", "K", true)},
			{Name: "C", ValueFrom: secretKey("sec", "PW", true)},
			{Name: "D", ValueFrom: secretKey("none", "K", true)},
		}}, "", ""},
		{"fields", v1.Container{Env: []v1.EnvVar{
			{Name: "A", ValueFrom: field("metadata.name")},
			{Name: "B", ValueFrom: field("metadata.labels['app']")},
			{Name: "C", ValueFrom: field("spec.nodeName")},
			{Name: "D", ValueFrom: field("status.podIP")},
			{Name: "E", ValueFrom: field("status.hostIP")},
			{Name: "F", ValueFrom: field("spec.serviceAccountName")},
		}}, "A=web B=web C=n1 D=10.244.0.2 E=192.168.0.1 F=robot", ""},
		{"no field", v1.Container{Env: []v1.EnvVar{{Name: "A", ValueFrom: field("spec.colour")}}}, "", "field label not supported: spec.colour"},
		{"resources", v1.Container{Resources: v1.ResourceRequirements{Limits: limits}, Env: []v1.EnvVar{
			{Name: "M", ValueFrom: &v1.EnvVarSource{ResourceFieldRef: &v1.ResourceFieldSelector{Resource: "limits.memory", Divisor: resource.MustParse("1Mi")}}},
			// Without a limit, what the node can give.
			{Name: "C", ValueFrom: &v1.EnvVarSource{ResourceFieldRef: &v1.ResourceFieldSelector{Resource: "limits.cpu"}}},
		}}, "C=4 M=64", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := testKubelet(t, sources()...)
			tt.c.Name = "c"
			pod := testPod(func(p *v1.Pod) { p.Spec.Containers = []v1.Container{tt.c} })
			vars, err := k.environment(pod, &tt.c, "10.244.0.2", []string{"10.244.0.2"})
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%v, want %s", err, tt.err)
				}
				return
			}
			var got []string
			for _, v := range vars {
				if !strings.HasPrefix(v.Name, "KUBERNETES_") && !strings.HasPrefix(v.Name, "REDIS_CACHE_") {
					got = append(got, v.Name+"="+v.Value)
				}
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

func TestServiceVars(t *testing.T) {
	k := testKubelet(t, sources()...)
	vars, err := k.serviceVars(testPod(nil))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "80", "REDIS_CACHE_SERVICE_HOST": "10.96.0.7",
		"REDIS_CACHE_PORT": "tcp://10.96.0.7:80", "HEADLESS_SERVICE_HOST": "", "OTHER_SERVICE_HOST": "",
	} {
		if vars[name] != want {
			t.Errorf("%s=%q, want %q", name, vars[name], want)
		}
	}
	vars, err = k.serviceVars(testPod(func(p *v1.Pod) { p.Spec.EnableServiceLinks = ptr.To(false) }))
	if err != nil || vars["KUBERNETES_SERVICE_HOST"] == "" || vars["REDIS_CACHE_SERVICE_HOST"] != "" {
		t.Errorf("without links: %v, %v", vars, err)
	}
}

func TestFileKey(t *testing.T) {
	k := testKubelet(t)
	pod := testPod(nil)
	w := k.add(pod)
	w.volumes.mounted["vol"] = &volume{hostPath: "/vol"}
	env := k.machine.env()
	if err := env.MkdirAll("/vol", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := env.WriteFile("/vol/vars", []byte("# comment\nA='one two'\nB = \"x\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	ref := func(key string, optional bool) *v1.FileKeySelector {
		return &v1.FileKeySelector{VolumeName: "vol", Path: "vars", Key: key, Optional: &optional}
	}
	for key, want := range map[string]string{"A": "one two", "B": "x"} {
		if got, skip, err := k.fileKey(ref(key, false), pod); got != want || skip || err != nil {
			t.Errorf("%s: %q, %v, %v", key, got, skip, err)
		}
	}
	if _, skip, err := k.fileKey(ref("C", true), pod); !skip || err != nil {
		t.Errorf("optional: %v, %v", skip, err)
	}
	if _, _, err := k.fileKey(ref("C", false), pod); err == nil || !strings.Contains(err.Error(), `key "C" not found`) {
		t.Errorf("%v", err)
	}
	if _, _, err := k.fileKey(&v1.FileKeySelector{VolumeName: "none"}, pod); err == nil {
		t.Error("no volume, and no error")
	}
}
