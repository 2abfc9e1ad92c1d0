package campaign

import (
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// Label is on everything that a campaign makes. Its value is the campaign's name.
	Label = "aiopslab.io/campaign"
	// queueLabel names the queue of Kueue that a Job waits in, and minAnnotation how few pods it begins with if there
	// is no room for all.
	queueLabel    = "kueue.x-k8s.io/queue-name"
	minAnnotation = "kueue.x-k8s.io/job-min-parallelism"

	container = "run" // of every pod
	// modelPrefix is put before the variables of models in a pod, so that they are told from those of the records.
	modelPrefix = "AIOPSLAB_MODEL_"
	// user is whom the pods run as: nobody in particular.
	user = 65532
	// keepFinished is how long a Job that nobody came back for is kept, in seconds. Its records stay.
	keepFinished = 7 * 24 * 3600
	// lostAfter is how long a node may be silent until its pods are given up, in seconds. Kubernetes' own is 300.
	lostAfter = 60
	// runDeadline is how long a pod may take, in seconds. A run that hangs is ended long before, by itself.
	runDeadline = 3 * 3600
)

// Resources are what a pod of the Job has.
type Resources struct {
	CPU, Memory resource.Quantity // that are asked for
	MaxMemory   resource.Quantity // that it may take
	Scratch     resource.Quantity // of /tmp, at most
}

// DefaultResources fit any problem of the catalog. docs/campaigns.md has what runs were measured to take.
func DefaultResources() Resources {
	return Resources{
		CPU: resource.MustParse("1"), Memory: resource.MustParse("1Gi"), MaxMemory: resource.MustParse("4608Mi"),
		Scratch: resource.MustParse("2Gi"),
	}
}

// maxCPU is how many processors a pod may use while others do not need them, for each that it asks for.
const maxCPU = 2

func (r Resources) requirements() v1.ResourceRequirements {
	cpu := resource.NewMilliQuantity(r.CPU.MilliValue()*maxCPU, resource.DecimalSI)
	return v1.ResourceRequirements{
		Requests: v1.ResourceList{
			v1.ResourceCPU: r.CPU, v1.ResourceMemory: r.Memory,
			v1.ResourceEphemeralStorage: resource.MustParse("256Mi"),
		},
		Limits: v1.ResourceList{
			v1.ResourceCPU: *cpu, v1.ResourceMemory: r.MaxMemory, v1.ResourceEphemeralStorage: r.Scratch,
		},
	}
}

// keeperResources are few: it copies files.
func keeperResources() v1.ResourceRequirements {
	list := func(cpu, memory string) v1.ResourceList {
		return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)}
	}
	return v1.ResourceRequirements{Requests: list("50m", "64Mi"), Limits: list("1", "512Mi")}
}

func (c *Campaign) labels(component string) map[string]string {
	return map[string]string{
		Label: c.Name, "app.kubernetes.io/name": "aiopslab", "app.kubernetes.io/component": component,
	}
}

func (c *Campaign) meta(name, component string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: c.Namespace, Labels: c.labels(component)}
}

// configMap has what the pods of a Job know. Another share of the plan has another name.
func (c *Campaign) configMap(todo indexes) *v1.ConfigMap {
	text := todo.String()
	return &v1.ConfigMap{
		ObjectMeta: c.meta(c.Name+"-"+digest([]byte(text)), "plan"), Immutable: ptr.To(true),
		BinaryData: map[string][]byte{planName: c.encoded}, Data: map[string]string{indexesName: text},
	}
}

// job has an index for each run of a share.
func (c *Campaign) job(config string, todo indexes) *batchv1.Job {
	j := &batchv1.Job{
		ObjectMeta: c.meta(c.Name, "runs"),
		Spec: batchv1.JobSpec{
			CompletionMode: ptr.To(batchv1.IndexedCompletion), Completions: ptr.To(int32(len(todo))),
			Parallelism:             ptr.To(int32(min(c.Parallelism, len(todo)))),
			BackoffLimitPerIndex:    ptr.To(int32(c.Retries)),
			MaxFailedIndexes:        ptr.To(int32(min(c.MaxFailed, len(todo)))),
			PodFailurePolicy:        podFailurePolicy(),
			PodReplacementPolicy:    ptr.To(batchv1.Failed), // Of two pods of a run, one would run for nothing.
			TTLSecondsAfterFinished: ptr.To(int32(keepFinished)),
			Template:                c.pod("runs", config, c.Resources.requirements(), c.WorkerArgs),
		},
	}
	if c.ModelSecret != "" {
		x := &j.Spec.Template.Spec.Containers[0]
		x.EnvFrom = append(x.EnvFrom, v1.EnvFromSource{Prefix: modelPrefix, SecretRef: &v1.SecretEnvSource{
			LocalObjectReference: v1.LocalObjectReference{Name: c.ModelSecret},
		}})
	}
	j.Spec.Template.Spec.ActiveDeadlineSeconds = ptr.To(int64(runDeadline))
	j.Spec.Template.Annotations = undisturbed()
	if c.Queue != "" {
		j.Labels[queueLabel], j.Spec.Suspend = c.Queue, ptr.To(true)
		j.Annotations = map[string]string{minAnnotation: "1"}
	}
	return j
}

// undisturbed are the annotations of pods that begin anew when they are moved. Who tidies up nodes lets them end first,
// which is soon.
func undisturbed() map[string]string {
	return map[string]string{
		"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "karpenter.sh/do-not-disrupt": "true",
	}
}

// podFailurePolicy: a pod that had to go for reasons of the cluster says nothing of its run, and what cannot be run is
// not tried again.
func podFailurePolicy() *batchv1.PodFailurePolicy {
	return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
		{
			Action: batchv1.PodFailurePolicyActionIgnore,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{
				Type: v1.DisruptionTarget, Status: v1.ConditionTrue,
			}},
		},
		{
			Action: batchv1.PodFailurePolicyActionFailIndex,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
				ContainerName: ptr.To(container), Operator: batchv1.PodFailurePolicyOnExitCodesOpIn,
				Values: []int32{ExitBadInput},
			},
		},
	}}
}

// keeper is the pod through which records are gathered.
func (c *Campaign) keeper(config string) *v1.Pod {
	t := c.pod("keeper", config, keeperResources(), c.KeeperArgs)
	p := &v1.Pod{ObjectMeta: c.meta(c.Name+"-keeper", "keeper"), Spec: t.Spec}
	p.Spec.TerminationGracePeriodSeconds = ptr.To(int64(1))
	return p
}

// pod is one that knows the plan, and where records are.
func (c *Campaign) pod(component, config string, r v1.ResourceRequirements, args []string) v1.PodTemplateSpec {
	t := v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: c.labels(component)}}
	t.Spec = unprivileged(c.Image, c.PullSecret, c.Resources.Scratch, r)
	x := &t.Spec.Containers[0]
	x.Args = append(append([]string{}, args...), "--store", c.Records.of(c.Name))
	x.VolumeMounts = append(x.VolumeMounts, v1.VolumeMount{Name: "plan", MountPath: planDir, ReadOnly: true})
	t.Spec.Volumes = append(t.Spec.Volumes, v1.Volume{Name: "plan", VolumeSource: v1.VolumeSource{
		ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: config}},
	}})
	c.giveRecords(&t.Spec)
	return t
}

// unprivileged is a pod of this program under the restricted Pod Security level, which needs nothing of its node.
func unprivileged(image, pullSecret string, scratch resource.Quantity, r v1.ResourceRequirements) v1.PodSpec {
	p := v1.PodSpec{
		RestartPolicy: v1.RestartPolicyNever, AutomountServiceAccountToken: ptr.To(false),
		EnableServiceLinks: ptr.To(false),
		SecurityContext: &v1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To(int64(user)), RunAsGroup: ptr.To(int64(user)),
			FSGroup: ptr.To(int64(user)), FSGroupChangePolicy: ptr.To(v1.FSGroupChangeOnRootMismatch),
			SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []v1.Container{{
			Name: container, Image: image, Command: []string{"aiopslab"},
			// One that was put straight onto the nodes has no registry to ask, even if it is called latest.
			ImagePullPolicy: v1.PullIfNotPresent,
			Resources:       r, TerminationMessagePolicy: v1.TerminationMessageFallbackToLogsOnError,
			Env: []v1.EnvVar{
				{Name: "HOME", Value: "/tmp"}, {Name: "TMPDIR", Value: "/tmp"}, {Name: "AIOPSLAB_WORLDS", Value: "off"},
			},
			SecurityContext: &v1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
				Capabilities: &v1.Capabilities{Drop: []v1.Capability{"ALL"}},
			},
			VolumeMounts: []v1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}},
		}},
		Volumes: []v1.Volume{{Name: "tmp", VolumeSource: v1.VolumeSource{
			EmptyDir: &v1.EmptyDirVolumeSource{SizeLimit: ptr.To(scratch)},
		}}},
	}
	if pullSecret != "" {
		p.ImagePullSecrets = []v1.LocalObjectReference{{Name: pullSecret}}
	}
	for _, taint := range []string{v1.TaintNodeNotReady, v1.TaintNodeUnreachable} {
		p.Tolerations = append(p.Tolerations, v1.Toleration{
			Key: taint, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute,
			TolerationSeconds: ptr.To(int64(lostAfter)),
		})
	}
	return p
}

// giveRecords gives a pod the volume of the records, or the keys to their bucket, which are in a Secret and nowhere
// else.
func (c *Campaign) giveRecords(p *v1.PodSpec) {
	x := &p.Containers[0]
	if c.Records.Claim != "" {
		x.VolumeMounts = append(x.VolumeMounts, v1.VolumeMount{Name: "records", MountPath: recordsDir})
		p.Volumes = append(p.Volumes, v1.Volume{Name: "records", VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: c.Records.Claim},
		}})
		return
	}
	x.EnvFrom = []v1.EnvFromSource{{SecretRef: &v1.SecretEnvSource{
		LocalObjectReference: v1.LocalObjectReference{Name: c.S3.Secret},
	}}}
	for name, value := range map[string]string{endpointVariable: c.S3.Endpoint, regionVariable: c.S3.Region} {
		if value != "" {
			x.Env = append(x.Env, v1.EnvVar{Name: name, Value: value})
		}
	}
	slices.SortFunc(x.Env, func(a, b v1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
}

// selector finds what a campaign has made.
func (c *Campaign) selector() string { return Label + "=" + c.Name }

// completionIndex is the index of a pod of the Job, or -1.
func completionIndex(p *v1.Pod) int {
	i, err := strconv.Atoi(p.Annotations[batchv1.JobCompletionIndexAnnotation])
	if err != nil {
		return -1
	}
	return i
}
