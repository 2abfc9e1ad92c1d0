package world

import (
	"fmt"
	"math/rand/v2"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const (
	// JobImage is what the job of a namespace runs, if there is such an image.
	JobImage = "busybox:1.36"
	jobName  = "connectivity-check"
	// jobsKept is how many finished jobs a CronJob keeps unless it says otherwise.
	jobsKept = 3
	// notYet is how long it takes until the job is due again, at least: longer than any run.
	notYet = 2 * time.Hour

	jobWriter           = "kube-controller-manager"
	scheduledAnnotation = "batch.kubernetes.io/cronjob-scheduled-timestamp"
	day                 = 24 * time.Hour
	nobody              = 65534 // the user that every image has
)

// schedule gives every namespace in which things change a job that is run once a day, with the jobs that are left of
// the last days. Their pods have been cleaned up.
func (c *chronicle) schedule() {
	if !c.HasImage(JobImage) {
		return
	}
	for _, n := range c.changing() {
		c.scheduleIn(n)
	}
}

// changing are the namespaces in which things change.
func (c *chronicle) changing() (list []*v1.Namespace) {
	changing := map[string]bool{}
	for _, d := range c.deployments {
		changing[d.Namespace] = !c.steady(d.Namespace)
	}
	for _, o := range c.Objects {
		if n, ok := o.(*v1.Namespace); ok && changing[n.Name] {
			list = append(list, n)
		}
	}
	return list
}

func (c *chronicle) scheduleIn(n *v1.Namespace) {
	r := c.draw("job of " + n.Name)
	due := c.Now.UTC().Add(notYet + time.Duration(r.Int64N(int64(day-2*notYet)))).Truncate(time.Minute)
	made := between(r, n.CreationTimestamp.Time, due.Add(-(jobsKept+2)*day))
	cron := &batchv1.CronJob{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "CronJob"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: n.Name, Name: jobName, UID: c.uid("cronjob of " + n.Name), Generation: 1,
			CreationTimestamp: metav1.NewTime(made),
		},
		Spec: batchv1.CronJobSpec{
			Schedule: fmt.Sprintf("%d %d * * *", due.Minute(), due.Hour()), TimeZone: ptr.To("Etc/UTC"),
			ConcurrencyPolicy: batchv1.ForbidConcurrent, Suspend: ptr.To(false),
			SuccessfulJobsHistoryLimit: ptr.To[int32](jobsKept), FailedJobsHistoryLimit: ptr.To[int32](1),
			JobTemplate: batchv1.JobTemplateSpec{Spec: jobSpec()},
		},
	}
	for i := range jobsKept {
		c.finished(r, cron, due.Add(-time.Duration(jobsKept-i)*day))
	}
	cron.ManagedFields = []metav1.ManagedFieldsEntry{
		managed("kubectl", metav1.ManagedFieldsOperationApply, "", made, "batch/v1", `{"f:spec":{"f:concurrencyPolicy":{},`+
			`"f:jobTemplate":{"f:spec":{"f:backoffLimit":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"check\"}":`+
			`{".":{},"f:command":{},"f:image":{},"f:name":{},"f:securityContext":{"f:allowPrivilegeEscalation":{},`+
			`"f:capabilities":{"f:drop":{}}}}},"f:restartPolicy":{},"f:securityContext":{"f:runAsNonRoot":{},"f:runAsUser":{},`+
			`"f:seccompProfile":{"f:type":{}}}}}}},"f:schedule":{},"f:timeZone":{}}}`),
		managed(jobWriter, metav1.ManagedFieldsOperationUpdate, "status", cron.Status.LastSuccessfulTime.Time,
			"batch/v1", `{"f:status":{"f:lastScheduleTime":{},"f:lastSuccessfulTime":{}}}`),
	}
	c.Objects = append(c.Objects, cron)
}

// Unprivileged is how pods run that need no rights on their node: as the Pod Security level "restricted" demands.
func Unprivileged() (*v1.PodSecurityContext, *v1.SecurityContext) {
	pod := &v1.PodSecurityContext{
		RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](nobody),
		SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault},
	}
	container := &v1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false), Capabilities: &v1.Capabilities{Drop: []v1.Capability{"ALL"}},
	}
	return pod, container
}

// jobSpec is what the job does, with all that the API server fills in.
func jobSpec() batchv1.JobSpec {
	pod, container := Unprivileged()
	return batchv1.JobSpec{
		Parallelism: ptr.To[int32](1), Completions: ptr.To[int32](1), BackoffLimit: ptr.To[int32](3),
		CompletionMode: ptr.To(batchv1.NonIndexedCompletion), Suspend: ptr.To(false),
		PodReplacementPolicy: ptr.To(batchv1.TerminatingOrFailed),
		Template: v1.PodTemplateSpec{Spec: v1.PodSpec{
			Containers: []v1.Container{{
				Name: "check", Image: JobImage,
				Command:                []string{"sh", "-c", "nc -z -w 5 kubernetes.default 443 && echo reached"},
				TerminationMessagePath: v1.TerminationMessagePathDefault, ImagePullPolicy: v1.PullIfNotPresent,
				TerminationMessagePolicy: v1.TerminationMessageReadFile,
				SecurityContext:          container,
			}},
			RestartPolicy: v1.RestartPolicyNever, DNSPolicy: v1.DNSClusterFirst, SchedulerName: v1.DefaultSchedulerName,
			TerminationGracePeriodSeconds: ptr.To[int64](30), SecurityContext: pod,
		}},
	}
}

// finished adds a job that was run at a time, and says so on its CronJob.
func (c *chronicle) finished(r *rand.Rand, cron *batchv1.CronJob, at time.Time) {
	began := metav1.NewTime(at)
	ended := metav1.NewTime(at.Add(time.Duration(3+r.IntN(5)) * time.Second))
	name := fmt.Sprintf("%s-%d", cron.Name, at.Unix()/60) // as the controller names it
	uid := c.uid("job " + cron.Namespace + "/" + name)
	owner := metav1.NewControllerRef(cron, batchv1.SchemeGroupVersion.WithKind("CronJob"))
	j := &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cron.Namespace, Name: name, UID: uid, Generation: 1, CreationTimestamp: began,
			Annotations:     map[string]string{scheduledAnnotation: at.UTC().Format(time.RFC3339)},
			OwnerReferences: []metav1.OwnerReference{*owner},
			Labels:          jobLabels(name, uid),
		},
		Spec: *cron.Spec.JobTemplate.Spec.DeepCopy(),
		Status: batchv1.JobStatus{
			StartTime: &began, CompletionTime: &ended, Succeeded: 1,
			Ready: ptr.To[int32](0), Terminating: ptr.To[int32](0),
			UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{},
			Conditions: []batchv1.JobCondition{
				jobCondition(batchv1.JobSuccessCriteriaMet, ended), jobCondition(batchv1.JobComplete, ended),
			},
		},
	}
	j.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: string(uid)}}
	j.Spec.Template.Labels = jobLabels(name, uid)
	j.ManagedFields = []metav1.ManagedFieldsEntry{
		managed(jobWriter, metav1.ManagedFieldsOperationUpdate, "", at, "batch/v1",
			`{"f:metadata":{"f:annotations":{".":{},"f:`+scheduledAnnotation+`":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"`+
				string(cron.UID)+`\"}":{}}},"f:spec":{"f:backoffLimit":{},"f:completionMode":{},"f:completions":{},`+
				`"f:parallelism":{},"f:suspend":{},"f:template":{}}}`),
		managed(jobWriter, metav1.ManagedFieldsOperationUpdate, "status", ended.Time, "batch/v1",
			`{"f:status":{"f:completionTime":{},"f:conditions":{},"f:ready":{},"f:startTime":{},"f:succeeded":{},`+
				`"f:terminating":{},"f:uncountedTerminatedPods":{}}}`),
	}
	c.Objects = append(c.Objects, j)
	cron.Status.LastScheduleTime, cron.Status.LastSuccessfulTime = &began, &ended
}

// managed says who wrote which fields of an object.
func managed(by string, how metav1.ManagedFieldsOperationType, subresource string, at time.Time, version, fields string,
) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: by, Operation: how, APIVersion: version, Time: ptr.To(metav1.NewTime(at)), Subresource: subresource,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func jobLabels(name string, uid types.UID) map[string]string {
	return map[string]string{
		batchv1.ControllerUidLabel: string(uid), "controller-uid": string(uid),
		batchv1.JobNameLabel: name, "job-name": name,
	}
}

func jobCondition(kind batchv1.JobConditionType, at metav1.Time) batchv1.JobCondition {
	return batchv1.JobCondition{
		Type: kind, Status: v1.ConditionTrue, LastProbeTime: at, LastTransitionTime: at,
		Reason: batchv1.JobReasonCompletionsReached, Message: "Reached expected number of succeeded pods",
	}
}
