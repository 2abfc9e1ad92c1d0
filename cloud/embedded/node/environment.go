package node

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubernetes/pkg/api/v1/resource"
	podshelper "k8s.io/kubernetes/pkg/apis/core/pods"
	v1helper "k8s.io/kubernetes/pkg/apis/core/v1/helper"
	"k8s.io/kubernetes/pkg/fieldpath"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/envvars"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
	"k8s.io/utils/ptr"
)

// environment returns a container's variables: those of the services it can see, of envFrom, and of
// env, each overriding the ones before.
func (k *kubelet) environment(pod *v1.Pod, c *v1.Container, podIP string,
	podIPs []string,
) ([]kubecontainer.EnvVar, error) {
	services, err := k.serviceVars(pod)
	if err != nil {
		return nil, err
	}
	own := map[string]string{}
	if err := k.envFrom(pod, c, own); err != nil {
		return nil, err
	}
	expand := expansion.MappingFuncFor(own, services)
	for _, e := range c.Env {
		value := e.Value
		if value != "" {
			value = expansion.Expand(value, expand)
		} else if e.ValueFrom != nil {
			var skip bool
			if value, skip, err = k.valueFrom(e.ValueFrom, pod, c, podIP, podIPs); err != nil {
				return nil, err
			} else if skip {
				continue
			}
		}
		own[e.Name] = value
	}
	all := maps.Clone(services)
	maps.Copy(all, own)
	list := make([]kubecontainer.EnvVar, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, kubecontainer.EnvVar{Name: name, Value: all[name]})
	}
	return list, nil
}

// serviceVars are the variables that tell of services: always of the API server's, and of those in
// the pod's namespace unless it does not want them.
func (k *kubelet) serviceVars(pod *v1.Pod) (map[string]string, error) {
	all, err := k.watches.services.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	var visible []*v1.Service
	for _, s := range all {
		master := s.Namespace == metav1.NamespaceDefault && s.Name == "kubernetes"
		linked := s.Namespace == pod.Namespace && ptr.Deref(pod.Spec.EnableServiceLinks, v1.DefaultEnableServiceLinks)
		if v1helper.IsServiceIPSet(s) && (master || linked) {
			visible = append(visible, s)
		}
	}
	vars := map[string]string{}
	for _, e := range envvars.FromServices(visible) {
		vars[e.Name] = e.Value
	}
	return vars, nil
}

func (k *kubelet) envFrom(pod *v1.Pod, c *v1.Container, vars map[string]string) error {
	for _, from := range c.EnvFrom {
		switch {
		case from.ConfigMapRef != nil:
			m, err := k.watches.configs.ConfigMaps(pod.Namespace).Get(from.ConfigMapRef.Name)
			if apierrors.IsNotFound(err) && ptr.Deref(from.ConfigMapRef.Optional, false) {
				continue
			}
			if err != nil {
				return err
			}
			for key, value := range m.Data {
				vars[from.Prefix+key] = value
			}
		case from.SecretRef != nil:
			s, err := k.watches.secrets.Secrets(pod.Namespace).Get(from.SecretRef.Name)
			if apierrors.IsNotFound(err) && ptr.Deref(from.SecretRef.Optional, false) {
				continue
			}
			if err != nil {
				return err
			}
			for key, value := range s.Data {
				vars[from.Prefix+key] = string(value)
			}
		}
	}
	return nil
}

// valueFrom resolves the source of a variable. skip means that it is optional and not there.
func (k *kubelet) valueFrom(from *v1.EnvVarSource, pod *v1.Pod, c *v1.Container, podIP string,
	podIPs []string,
) (value string, skip bool, err error) {
	switch {
	case from.FieldRef != nil:
		value, err = k.podField(from.FieldRef, pod, podIP, podIPs)
	case from.ResourceFieldRef != nil:
		value, err = k.resourceField(from.ResourceFieldRef, pod, c)
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		optional := ptr.Deref(ref.Optional, false)
		m, err := k.watches.configs.ConfigMaps(pod.Namespace).Get(ref.Name)
		if err != nil {
			return "", optional && apierrors.IsNotFound(err), ignoreIf(optional && apierrors.IsNotFound(err), err)
		}
		value, ok := m.Data[ref.Key]
		if !ok && !optional {
			return "", false, fmt.Errorf("couldn't find key %v in ConfigMap %v/%v", ref.Key, pod.Namespace, ref.Name)
		}
		return value, !ok, nil
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		optional := ptr.Deref(ref.Optional, false)
		s, err := k.watches.secrets.Secrets(pod.Namespace).Get(ref.Name)
		if err != nil {
			return "", optional && apierrors.IsNotFound(err), ignoreIf(optional && apierrors.IsNotFound(err), err)
		}
		value, ok := s.Data[ref.Key]
		if !ok && !optional {
			return "", false, fmt.Errorf("couldn't find key %v in Secret %v/%v", ref.Key, pod.Namespace, ref.Name)
		}
		return string(value), !ok, nil
	case from.FileKeyRef != nil:
		return k.fileKey(from.FileKeyRef, pod)
	}
	return value, false, err
}

func ignoreIf(ignore bool, err error) error {
	if ignore {
		return nil
	}
	return err
}

// fileKey reads a variable from a file of NAME='value' lines in a volume.
func (k *kubelet) fileKey(ref *v1.FileKeySelector, pod *v1.Pod) (value string, skip bool, err error) {
	w := k.worker(pod.UID)
	if w == nil {
		return "", false, fmt.Errorf("pod %s/%s is gone", pod.Namespace, pod.Name)
	}
	dir, ok := w.volumes.path(ref.VolumeName)
	if !ok {
		return "", false, fmt.Errorf("cannot find the volume %q referenced by FileKeyRef", ref.VolumeName)
	}
	file := dir + "/" + ref.Path
	b, err := k.machine.env().ReadFile(file)
	if err != nil {
		return "", false, fmt.Errorf("couldn't parse env file")
	}
	for line := range strings.Lines(string(b)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && strings.TrimSpace(name) == ref.Key {
			return strings.Trim(strings.TrimSpace(value), `'"`), false, nil
		}
	}
	if ptr.Deref(ref.Optional, false) {
		return "", true, nil
	}
	return "", false, fmt.Errorf("environment variable key %q not found in file %q", ref.Key, file)
}

func (k *kubelet) podField(ref *v1.ObjectFieldSelector, pod *v1.Pod, podIP string, podIPs []string) (string, error) {
	name, _, err := podshelper.ConvertDownwardAPIFieldLabel(ref.APIVersion, ref.FieldPath, "")
	if err != nil {
		return "", err
	}
	switch name {
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs":
		return k.node.spec.Address.String(), nil
	case "status.podIP":
		return podIP, nil
	case "status.podIPs":
		return strings.Join(podIPs, ","), nil
	}
	return fieldpath.ExtractFieldPathAsString(pod, name)
}

// resourceField returns a container's request or limit; a limit that is not set is what the node has.
func (k *kubelet) resourceField(ref *v1.ResourceFieldSelector, pod *v1.Pod, c *v1.Container) (string, error) {
	limited := k.withNodeLimits(pod)
	if ref.ContainerName != "" {
		return resource.ExtractResourceValueByContainerName(ref, limited, ref.ContainerName)
	}
	return resource.ExtractResourceValueByContainerName(ref, limited, c.Name)
}

func (k *kubelet) withNodeLimits(pod *v1.Pod) *v1.Pod {
	limited := pod.DeepCopy()
	allocatable := k.node.allocatable()
	for i := range limited.Spec.Containers {
		resource.MergeContainerResourceLimits(&limited.Spec.Containers[i], allocatable)
	}
	for i := range limited.Spec.InitContainers {
		resource.MergeContainerResourceLimits(&limited.Spec.InitContainers[i], allocatable)
	}
	return limited
}
