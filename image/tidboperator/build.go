package tidboperator

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Names of components.
const (
	pd   = "pd"
	tikv = "tikv"
	tidb = "tidb"
)

const (
	labelName      = "app.kubernetes.io/name"
	labelManagedBy = "app.kubernetes.io/managed-by"
	labelInstance  = "app.kubernetes.io/instance"
	labelComponent = "app.kubernetes.io/component"
	manager        = "tidb-operator"
	// lastApplied is an annotation with the specification that was applied last.
	lastApplied = "pingcap.com/last-applied-configuration"
)

// createAtOnce is how many pods a new StatefulSet has at most. The others come one by one.
const createAtOnce = 3

// component returns the specification of a component; nil if there is none.
func (c *cluster) component(name string) *component {
	return map[string]*component{pd: c.Spec.PD, tikv: c.Spec.TiKV, tidb: c.Spec.TiDB}[name]
}

func (c *cluster) labels(name string) map[string]string {
	return map[string]string{
		labelName: "tidb-cluster", labelManagedBy: manager, labelInstance: c.Name, labelComponent: name,
	}
}

func (c *cluster) owner() metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: Resource.GroupVersion().String(), Kind: Kind, Name: c.Name, UID: c.UID,
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}
}

func (c *cluster) meta(name, suffix string, annotations map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: c.Namespace, Name: c.Name + "-" + name + suffix, Labels: c.labels(name), Annotations: annotations,
		OwnerReferences: []metav1.OwnerReference{c.owner()},
	}
}

// version is that of a component, which is the image's tag.
func (c *cluster) version(p *component) string {
	return cmp.Or(ptr.Deref(p.Version, ""), c.Spec.Version)
}

// ports are those that a component's container listens on, the first being what clients use.
func ports(name string) []v1.ContainerPort {
	port := func(name string, n int32) v1.ContainerPort {
		return v1.ContainerPort{Name: name, ContainerPort: n, Protocol: v1.ProtocolTCP}
	}
	switch name {
	case pd:
		return []v1.ContainerPort{port("client", 2379), port("server", 2380)}
	case tikv:
		return []v1.ContainerPort{port("server", 20160), port("status", 20180)}
	}
	return []v1.ContainerPort{port("server", 4000), port("status", 10080)}
}

// services are the ways to the components.
func (c *cluster) services() (list []*v1.Service) {
	add := func(name, suffix string, headless bool, ports ...v1.ServicePort) {
		s := &v1.Service{ObjectMeta: c.meta(name, suffix, nil)}
		s.Spec = v1.ServiceSpec{Selector: c.labels(name), Ports: ports, Type: v1.ServiceTypeClusterIP}
		if headless {
			s.Labels["app.kubernetes.io/used-by"] = "peer"
			s.Spec.ClusterIP, s.Spec.PublishNotReadyAddresses = v1.ClusterIPNone, true
		} else if p := c.component(name); p.Service != nil {
			s.Spec.Type = cmp.Or(p.Service.Type, s.Spec.Type)
			s.Annotations = p.Service.Annotations
		}
		list = append(list, s)
	}
	port := func(name string, n int32) v1.ServicePort {
		return v1.ServicePort{Name: name, Port: n, TargetPort: intstr.FromInt32(n), Protocol: v1.ProtocolTCP}
	}
	if c.Spec.PD != nil {
		add(pd, "", false, port("client", 2379))
		add(pd, "-peer", true, port("tcp-peer-2380", 2380), port("tcp-peer-2379", 2379))
	}
	if c.Spec.TiKV != nil {
		add(tikv, "-peer", true, port("peer", 20160))
	}
	if c.Spec.TiDB != nil {
		add(tidb, "", false, port("mysql-client", 4000), port("status", 10080))
		add(tidb, "-peer", true, port("status", 10080))
	}
	return list
}

// configMap has the configuration file of a component.
func (c *cluster) configMap(name string) *v1.ConfigMap {
	text := ""
	if p := c.component(name); p.Config != nil {
		text = string(*p.Config)
	}
	return &v1.ConfigMap{ObjectMeta: c.meta(name, "", nil), Data: map[string]string{"config-file": text}}
}

// statefulSet is what a component is to be.
func (c *cluster) statefulSet(name string) *appsv1.StatefulSet {
	p := c.component(name)
	set := &appsv1.StatefulSet{ObjectMeta: c.meta(name, "", map[string]string{})}
	podLabels := c.labels(name)
	maps.Copy(podLabels, p.Labels)
	annotations := map[string]string{
		"prometheus.io/scrape": "true", "prometheus.io/path": "/metrics",
		"prometheus.io/port": strconv.Itoa(metricsPort(name)),
	}
	maps.Copy(annotations, p.Annotations)
	strategy := cmp.Or(p.StatefulSetUpdateStrategy, c.Spec.StatefulSetUpdateStrategy,
		string(appsv1.RollingUpdateStatefulSetStrategyType))
	set.Spec = appsv1.StatefulSetSpec{
		Replicas: ptr.To(c.desired(name)), ServiceName: c.Name + "-" + name + "-peer",
		Selector:            &metav1.LabelSelector{MatchLabels: c.labels(name)},
		PodManagementPolicy: appsv1.ParallelPodManagement,
		UpdateStrategy:      appsv1.StatefulSetUpdateStrategy{Type: appsv1.StatefulSetUpdateStrategyType(strategy)},
		Template: v1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: podLabels, Annotations: annotations},
			Spec:       c.podSpec(name, p),
		},
	}
	if name != tidb {
		set.Spec.VolumeClaimTemplates = []v1.PersistentVolumeClaim{c.claim(name, p)}
	}
	return set
}

func metricsPort(name string) int { return map[string]int{pd: 2379, tikv: 20180, tidb: 10080}[name] }

func (c *cluster) claim(name string, p *component) v1.PersistentVolumeClaim {
	size, ok := p.Requests[v1.ResourceStorage]
	if !ok {
		size = resource.MustParse("1Gi")
	}
	return v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: c.labels(name)},
		Spec: v1.PersistentVolumeClaimSpec{
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, StorageClassName: p.StorageClassName,
			Resources: v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: size}},
		},
	}
}

// resources are those of a container, without storage.
func resources(p *component) v1.ResourceRequirements {
	strip := func(list v1.ResourceList) v1.ResourceList {
		list = maps.Clone(list)
		delete(list, v1.ResourceStorage)
		return list
	}
	return v1.ResourceRequirements{Requests: strip(p.Requests), Limits: strip(p.Limits)}
}

func (c *cluster) podSpec(name string, p *component) v1.PodSpec {
	container := v1.Container{
		Name: name, Image: cmp.Or(p.BaseImage, "pingcap/"+name) + ":" + c.version(p),
		ImagePullPolicy: c.Spec.ImagePullPolicy,
		Command:         c.command(name), Ports: ports(name), Resources: resources(p),
		Env: append([]v1.EnvVar{
			{Name: "POD_NAME", ValueFrom: fieldOfPod("metadata.name")},
			{Name: "NAMESPACE", ValueFrom: fieldOfPod("metadata.namespace")},
			{Name: "CLUSTER_NAME", Value: c.Name},
			{Name: "RELEASE_VERSION", Value: c.version(p)},
			{Name: "TZ", Value: cmp.Or(c.Spec.Timezone, "UTC")},
		}, p.Env...),
		VolumeMounts: []v1.VolumeMount{{Name: "config", MountPath: "/etc/" + name, ReadOnly: true}},
		ReadinessProbe: &v1.Probe{
			ProbeHandler: v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{
				Port: intstr.FromInt32(ports(name)[0].ContainerPort),
			}},
			PeriodSeconds: 1, FailureThreshold: 3,
		},
		SecurityContext: &v1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), Capabilities: &v1.Capabilities{Drop: []v1.Capability{"ALL"}},
		},
	}
	if name != tidb {
		data := v1.VolumeMount{Name: name, MountPath: "/var/lib/" + name}
		container.VolumeMounts = append(container.VolumeMounts, data)
	}
	selector := maps.Clone(c.Spec.NodeSelector)
	if len(p.NodeSelector) > 0 {
		selector = p.NodeSelector
	}
	tolerations := c.Spec.Tolerations
	if len(p.Tolerations) > 0 {
		tolerations = p.Tolerations
	}
	return v1.PodSpec{
		Containers: []v1.Container{container}, Affinity: p.Affinity, Tolerations: tolerations, NodeSelector: selector,
		SecurityContext: p.PodSecurityContext, SchedulerName: cmp.Or(p.SchedulerName, c.Spec.SchedulerName),
		PriorityClassName: p.PriorityClassName, AutomountServiceAccountToken: ptr.To(false),
		Volumes: []v1.Volume{{Name: "config", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{
			LocalObjectReference: v1.LocalObjectReference{Name: c.Name + "-" + name},
			Items:                []v1.KeyToPath{{Key: "config-file", Path: name + ".toml"}},
		}}}},
	}
}

// fieldOfPod is a variable that Kubernetes fills in.
func fieldOfPod(path string) *v1.EnvVarSource {
	return &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: path}}
}

// command starts a component. Kubernetes fills in the variables.
func (c *cluster) command(name string) []string {
	host := fmt.Sprintf("$(POD_NAME).%s-%s-peer.$(NAMESPACE).svc", c.Name, name)
	driver := c.Name + "-" + pd + ":2379"
	switch name {
	case pd:
		return []string{
			"/pd-server", "--data-dir=/var/lib/pd", "--name=$(POD_NAME)", "--peer-urls=http://0.0.0.0:2380",
			"--advertise-peer-urls=http://" + host + ":2380", "--client-urls=http://0.0.0.0:2379",
			"--advertise-client-urls=http://" + host + ":2379", "--config=/etc/pd/pd.toml",
		}
	case tikv:
		return []string{
			"/tikv-server", "--pd=http://" + driver, "--advertise-addr=" + host + ":20160", "--addr=0.0.0.0:20160",
			"--status-addr=0.0.0.0:20180", "--advertise-status-addr=" + host + ":20180", "--data-dir=/var/lib/tikv",
			"--config=/etc/tikv/tikv.toml",
		}
	}
	return []string{
		"/tidb-server", "--store=tikv", "--advertise-address=" + host, "--host=0.0.0.0", "--path=" + driver,
		"--config=/etc/tidb/tidb.toml",
	}
}
