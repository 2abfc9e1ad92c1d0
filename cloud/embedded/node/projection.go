package node

import (
	"bytes"
	"context"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/kubernetes/pkg/volume/configmap"
	"k8s.io/kubernetes/pkg/volume/secret"
	volumeutil "k8s.io/kubernetes/pkg/volume/util"
	"k8s.io/utils/ptr"
)

// The names by which the kubelet swaps the files of a projected volume at once.
const (
	dataDir    = "..data"
	newDataDir = "..data_tmp"
)

// project mounts a volume whose files come from the API.
func (v *podVolumes) project(ctx context.Context, pod *v1.Pod, spec *v1.Volume) (*volume, error) {
	var plugin string
	var files map[string]volumeutil.FileProjection
	var err error
	switch s := &spec.VolumeSource; {
	case s.ConfigMap != nil:
		plugin = "configmap"
		files, err = v.configMapFiles(pod, s.ConfigMap.Name, s.ConfigMap.Items, s.ConfigMap.DefaultMode,
			ptr.Deref(s.ConfigMap.Optional, false))
	case s.Secret != nil:
		plugin = "secret"
		files, err = v.secretFiles(pod, s.Secret.SecretName, s.Secret.Items, s.Secret.DefaultMode,
			ptr.Deref(s.Secret.Optional, false))
	case s.DownwardAPI != nil:
		plugin = "downward-api"
		files, err = v.downwardFiles(pod, s.DownwardAPI.Items, s.DownwardAPI.DefaultMode)
	default:
		plugin = "projected"
		files, err = v.projectedFiles(ctx, pod, spec.Name, s.Projected)
	}
	if err != nil {
		return nil, err
	}
	m := &volume{hostPath: v.volumeDir(plugin, spec.Name), readOnly: plugin != "downward-api"}
	changed, err := v.writeFiles(m.hostPath, files)
	if err != nil {
		return nil, err
	}
	if changed {
		return m, v.own(pod, m)
	}
	return m, nil
}

func (v *podVolumes) configMapFiles(pod *v1.Pod, name string, items []v1.KeyToPath, mode *int32,
	optional bool,
) (map[string]volumeutil.FileProjection, error) {
	m, err := v.worker.kubelet.watches.configs.ConfigMaps(pod.Namespace).Get(name)
	if apierrors.IsNotFound(err) && optional {
		m, err = &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: name}}, nil
	}
	if err != nil {
		return nil, err
	}
	return configmap.MakePayload(items, m, mode, nil, optional)
}

func (v *podVolumes) secretFiles(pod *v1.Pod, name string, items []v1.KeyToPath, mode *int32,
	optional bool,
) (map[string]volumeutil.FileProjection, error) {
	s, err := v.worker.kubelet.watches.secrets.Secrets(pod.Namespace).Get(name)
	if apierrors.IsNotFound(err) && optional {
		s, err = &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: name}}, nil
	}
	if err != nil {
		return nil, err
	}
	return secret.MakePayload(items, s, mode, nil, optional)
}

func (v *podVolumes) downwardFiles(pod *v1.Pod, items []v1.DownwardAPIVolumeFile,
	mode *int32,
) (map[string]volumeutil.FileProjection, error) {
	k := v.worker.kubelet
	files := map[string]volumeutil.FileProjection{}
	var errs []error
	for _, item := range items {
		var value string
		var err error
		switch {
		case item.FieldRef != nil:
			value, err = k.podField(item.FieldRef, pod, pod.Status.PodIP, nil)
		case item.ResourceFieldRef != nil:
			value, err = k.resourceField(item.ResourceFieldRef, pod,
				&v1.Container{Name: item.ResourceFieldRef.ContainerName})
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		f := volumeutil.FileProjection{
			Data: []byte(value),
			Mode: ptr.Deref(mode, v1.DownwardAPIVolumeSourceDefaultMode),
		}
		if item.Mode != nil {
			f.Mode = *item.Mode
		}
		files[path.Clean(item.Path)] = f
	}
	return files, utilerrors.NewAggregate(errs)
}

func (v *podVolumes) projectedFiles(ctx context.Context, pod *v1.Pod, volume string,
	s *v1.ProjectedVolumeSource,
) (map[string]volumeutil.FileProjection, error) {
	files := map[string]volumeutil.FileProjection{}
	var errs []error
	for i, source := range s.Sources {
		var part map[string]volumeutil.FileProjection
		var err error
		switch {
		case source.ConfigMap != nil:
			part, err = v.configMapFiles(pod, source.ConfigMap.Name, source.ConfigMap.Items, s.DefaultMode,
				ptr.Deref(source.ConfigMap.Optional, false))
		case source.Secret != nil:
			part, err = v.secretFiles(pod, source.Secret.Name, source.Secret.Items, s.DefaultMode,
				ptr.Deref(source.Secret.Optional, false))
		case source.DownwardAPI != nil:
			part, err = v.downwardFiles(pod, source.DownwardAPI.Items, s.DefaultMode)
		case source.ServiceAccountToken != nil:
			part, err = v.tokenFile(pod, source.ServiceAccountToken, s.DefaultMode)
		case source.ClusterTrustBundle != nil:
			part, err = v.trustFile(ctx, pod, source.ClusterTrustBundle, s.DefaultMode)
		case source.PodCertificate != nil:
			part, err = v.certificateFiles(ctx, pod, volume, i, source.PodCertificate, s.DefaultMode)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		maps.Copy(files, part)
	}
	return files, utilerrors.NewAggregate(errs)
}

// tokenFile asks the API server for a token that is bound to the pod. The token manager keeps it
// until it has to be renewed.
func (v *podVolumes) tokenFile(pod *v1.Pod, s *v1.ServiceAccountTokenProjection,
	mode *int32,
) (map[string]volumeutil.FileProjection, error) {
	req := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: s.ExpirationSeconds,
		BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Pod", Name: pod.Name,
			UID: pod.UID,
		},
	}}
	if s.Audience != "" {
		req.Spec.Audiences = []string{s.Audience}
	}
	res, err := v.worker.kubelet.node.fleet.tokens.GetServiceAccountToken(pod.Namespace, pod.Spec.ServiceAccountName,
		req)
	if err != nil {
		return nil, err
	}
	return map[string]volumeutil.FileProjection{s.Path: credential(pod, []byte(res.Status.Token), mode)}, nil
}

// credential is a file for the pod's own eyes. Its group, if the volume has one, may read it as well.
func credential(pod *v1.Pod, data []byte, mode *int32) volumeutil.FileProjection {
	f := volumeutil.FileProjection{
		Data: data, Mode: ptr.Deref(mode, v1.ProjectedVolumeSourceDefaultMode),
		FsUser: runsAs(pod),
	}
	if sc := pod.Spec.SecurityContext; f.FsUser != nil || sc != nil && sc.FSGroup != nil {
		f.Mode = 0o600
	}
	return f
}

// runsAs is the one user all containers of a pod run as, if there is one.
func runsAs(pod *v1.Pod) *int64 {
	var uid *int64
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		var own *int64
		if sc := pod.Spec.SecurityContext; sc != nil {
			own = sc.RunAsUser
		}
		if c.SecurityContext != nil && c.SecurityContext.RunAsUser != nil {
			own = c.SecurityContext.RunAsUser
		}
		if own == nil || uid != nil && *uid != *own {
			return nil
		}
		uid = own
	}
	return uid
}

// writeFiles makes a directory hold the given files, all at once: they are written to a new
// directory, and the link ..data is switched to it. It reports whether anything changed.
func (v *podVolumes) writeFiles(dir string, files map[string]volumeutil.FileProjection) (changed bool, err error) {
	node := v.worker.kubelet.node
	env := v.worker.kubelet.machine.env()
	old, _ := env.FS.Readlink(dir + "/" + dataDir)
	if old != "" && v.same(dir+"/"+old, files) {
		return false, nil
	}
	stamp := ".." + node.fleet.cfg.Clock.Now().UTC().Format("2006_01_02_15_04_05.000000000")
	for _, d := range []string{dir, dir + "/" + stamp} {
		if err := env.MkdirAll(d, 0o777); err != nil {
			return false, err
		}
		if err := env.FS.Chmod(d, 0o777); err != nil {
			return false, err
		}
	}
	for name, f := range files {
		file := path.Join(dir, stamp, name)
		if err := env.MkdirAll(path.Dir(file), 0o755); err != nil {
			return false, err
		}
		if err := env.WriteFile(file, f.Data, 0o666); err != nil {
			return false, err
		}
		if err := env.FS.Chmod(file, fs.FileMode(f.Mode)); err != nil {
			return false, err
		}
		if f.FsUser != nil {
			if err := env.FS.Chown(file, int(*f.FsUser), -1); err != nil {
				return false, err
			}
		}
	}
	if err := env.FS.Symlink(stamp, dir+"/"+newDataDir); err != nil {
		return false, err
	}
	if err := env.FS.Rename(dir+"/"+newDataDir, dir+"/"+dataDir); err != nil {
		return false, err
	}
	if err := v.linkFiles(dir, files); err != nil {
		return false, err
	}
	if old != "" {
		return true, env.RemoveAll(dir + "/" + old)
	}
	return true, nil
}

// linkFiles makes the top-level names lead through ..data, and removes those that are gone.
func (v *podVolumes) linkFiles(dir string, files map[string]volumeutil.FileProjection) error {
	env := v.worker.kubelet.machine.env()
	want := map[string]bool{}
	for name := range files {
		top, _, _ := strings.Cut(name, "/")
		want[top] = true
	}
	entries, err := env.FS.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case strings.HasPrefix(name, ".."):
		case want[name]:
			delete(want, name)
		default:
			if err := env.FS.Remove(dir + "/" + name); err != nil {
				return err
			}
		}
	}
	for name := range want {
		if err := env.FS.Symlink(dataDir+"/"+name, dir+"/"+name); err != nil {
			return err
		}
	}
	return nil
}

// same reports whether a directory holds exactly the given files.
func (v *podVolumes) same(dir string, files map[string]volumeutil.FileProjection) bool {
	env := v.worker.kubelet.machine.env()
	found := 0
	var walk func(string) bool
	walk = func(sub string) bool {
		entries, err := env.FS.ReadDir(path.Join(dir, sub))
		if err != nil {
			return false
		}
		for _, e := range entries {
			name := path.Join(sub, e.Name())
			if e.IsDir() {
				if !walk(name) {
					return false
				}
				continue
			}
			b, err := env.ReadFile(path.Join(dir, name))
			f, ok := files[name]
			if err != nil || !ok || !bytes.Equal(b, f.Data) {
				return false
			}
			found++
		}
		return true
	}
	return walk("") && found == len(files)
}
