package campaign

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func someCampaign(t *testing.T) *Campaign {
	t.Helper()
	c := &Campaign{
		Name: "nightly", Namespace: "lab", Plan: somePlan(200), Image: "registry.example/aiopslab:v1",
		Records: Place{Claim: "records"}, WorkerArgs: []string{"campaign", "run"}, KeeperArgs: []string{"campaign", "keep"},
		Parallelism: 50, Retries: 3, MaxFailed: 20, Resources: DefaultResources(),
	}
	var err error
	if c.encoded, err = c.Plan.Encode(); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestJob holds the Job to what is promised of it: to Kubernetes, to Kueue and to autoscalers.
func TestJob(t *testing.T) {
	c := someCampaign(t)
	todo := indexes{0, 3, 4, 5, 199}
	m := c.configMap(todo)
	j := c.job(m.Name, todo)
	text, err := yaml.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"completionMode: Indexed", "completions: 5\n", "parallelism: 5\n", "backoffLimitPerIndex: 3", "maxFailedIndexes: 5",
		"- action: Ignore\n", "type: DisruptionTarget", "- action: FailIndex\n", "- 65\n", "podReplacementPolicy: Failed",
		"restartPolicy: Never", "automountServiceAccountToken: false", "safe-to-evict: \"false\"", "- campaign\n        - run\n        - --store\n        - /records/nightly\n",
		"claimName: records", "sizeLimit: 2Gi", "memory: 4608Mi", "aiopslab.io/campaign: nightly",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	for _, not := range []string{"hostPath", "kueue", "suspend", "AWS_"} {
		if strings.Contains(string(text), not) {
			t.Errorf("there is %q in\n%s", not, text)
		}
	}
	c.ModelSecret = "models"
	for name, spec := range map[string]v1.PodSpec{"runs": c.job(m.Name, todo).Spec.Template.Spec, "keeper": c.keeper("m").Spec} {
		from := spec.Containers[0].EnvFrom
		if name == "keeper" && len(from) > 0 || name == "runs" && (len(from) != 1 || from[0].SecretRef.Name != "models" || from[0].Prefix == "") {
			t.Errorf("%s have %+v", name, from)
		}
	}
	c.Queue = "team"
	q := c.job(m.Name, todo)
	if q.Labels[queueLabel] != "team" || !*q.Spec.Suspend || q.Annotations[minAnnotation] != "1" {
		t.Errorf("for a queue: %v, %v", q.Labels, q.Spec.Suspend)
	}
	if other := c.configMap(indexes{0, 3}); other.Name == m.Name || m.Data[indexesName] != "0,3-5,199" {
		t.Errorf("%s has the runs %s, and %s others", m.Name, m.Data[indexesName], other.Name)
	}
}

// TestPodsAskForNothing: every container of a campaign is below the restricted Pod Security level, with limits.
func TestPodsAskForNothing(t *testing.T) {
	c := someCampaign(t)
	for name, spec := range map[string]v1.PodSpec{
		"worker": c.job("m", indexes{0}).Spec.Template.Spec, "keeper": c.keeper("m").Spec,
	} {
		p, s := spec.SecurityContext, spec.Containers[0].SecurityContext
		if !*p.RunAsNonRoot || *p.RunAsUser == 0 || p.SeccompProfile.Type != v1.SeccompProfileTypeRuntimeDefault ||
			*s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []v1.Capability{"ALL"}) {
			t.Errorf("%s: %+v, %+v", name, p, s)
		}
		if policy := spec.Containers[0].ImagePullPolicy; policy != v1.PullIfNotPresent {
			t.Errorf("%s: an image that is on the nodes is pulled: %s", name, policy)
		}
		r := spec.Containers[0].Resources
		for _, of := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
			if a, b := r.Requests[of], r.Limits[of]; a.IsZero() || b.Cmp(a) < 0 {
				t.Errorf("%s asks for %v of %s, and may have %v", name, &a, of, &b)
			}
		}
		for _, v := range spec.Volumes {
			if v.HostPath != nil || v.EmptyDir != nil && v.EmptyDir.SizeLimit.IsZero() {
				t.Errorf("%s has %+v", name, v)
			}
		}
	}
}

// TestTrouble: what holds a pod up is one line that says what to do.
func TestTrouble(t *testing.T) {
	waits := func(reason, message string) v1.PodStatus {
		return v1.PodStatus{Phase: v1.PodPending, ContainerStatuses: []v1.ContainerStatus{{
			Image: "lab:v1", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason, Message: message}},
		}}}
	}
	for _, c := range []struct {
		name   string
		status v1.PodStatus
		told   string // while there is hope
		err    string // when there is none
	}{
		{"no image", waits("ImagePullBackOff", "Back-off pulling image"), "the nodes cannot pull the image lab:v1", "name it with --image"},
		{"no secret", waits("CreateContainerConfigError", `secret "keys" not found`), `secret "keys" not found`, "make it in namespace lab"},
		{"another image", waits("RunContainerError", `exec: "aiopslab": not found`), "not found", "with the program aiopslab in its PATH"},
		{"starting", waits("ContainerCreating", ""), "", ""},
		{"no room", v1.PodStatus{Phase: v1.PodPending, Conditions: []v1.PodCondition{{
			Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: v1.PodReasonUnschedulable, Message: "0/3 nodes are available: 3 Insufficient cpu.",
		}}}, "no node takes a pod yet: 0/3 nodes are available", ""},
		{"started nothing", v1.PodStatus{Phase: v1.PodFailed, ContainerStatuses: []v1.ContainerStatus{{State: v1.ContainerState{
			Terminated: &v1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError", Message: `exec: "aiopslab": not found`},
		}}}}, "", "with the program aiopslab in its PATH"},
		{"ended", v1.PodStatus{Phase: v1.PodFailed, ContainerStatuses: []v1.ContainerStatus{{State: v1.ContainerState{
			Terminated: &v1.ContainerStateTerminated{ExitCode: 65, Message: "much\nanother campaign is there\n"},
		}}}}, "", "the records cannot be kept at pvc:records: another campaign is there"},
	} {
		x := someCampaign(t)
		var told []string
		x.told, x.Tell = map[string]bool{}, func(line string) { told = append(told, line) }
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: x.Namespace}, Status: c.status}
		err := x.trouble(p, false)
		if got := strings.Join(told, "\n"); c.told == "" && got != "" || !strings.Contains(got, c.told) {
			t.Errorf("%s: told is %q", c.name, got)
		}
		if err == nil {
			err = x.trouble(p, true)
		}
		if (err != nil) != (c.err != "") || err != nil && (!strings.Contains(err.Error(), c.err) || !fatal(err)) {
			t.Errorf("%s: %v", c.name, err)
		}
		if len(told) > 1 {
			t.Errorf("%s: told twice: %q", c.name, told)
		}
	}
}

// TestLastWords: of what a pod wrote, its end is told, on one line.
func TestLastWords(t *testing.T) {
	p := &v1.Pod{Status: v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{State: v1.ContainerState{
		Terminated: &v1.ContainerStateTerminated{ExitCode: 1, Message: "a\n" + strings.Repeat("word ", 500) + "end\n"},
	}}}}}
	if got := lastWords(p); !strings.HasSuffix(got, "word end") || len(got) > maxText+3 || strings.Contains(got, "\n") {
		t.Errorf("%q", got)
	}
	p.Status.ContainerStatuses[0].State.Terminated = &v1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}
	if got := lastWords(p); got != "OOMKilled, exit status 137" {
		t.Errorf("%q", got)
	}
	if finished(&batchv1.Job{}) != "" {
		t.Error("a Job that has not begun has ended")
	}
}

// TestKeepersFate: a keeper that had bad luck, or was killed, is replaced; one that cannot work is not.
func TestKeepersFate(t *testing.T) {
	c := someCampaign(t)
	for code, want := range map[int32]string{1: "unlucky", ExitBadInput: "", exitNotStarted: "", 137: "useless", 0: "useless"} {
		p := c.keeper("m")
		p.Status.Phase = v1.PodFailed
		if code == 0 {
			p.Status.Phase = v1.PodSucceeded
		}
		p.Status.ContainerStatuses = []v1.ContainerStatus{{State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code}}}}
		got := ""
		switch {
		case c.useless(p):
			got = "useless"
		case unlucky(p):
			got = "unlucky"
		}
		if got != want {
			t.Errorf("one that ended with %d is %q, not %q", code, got, want)
		}
	}
	p := c.keeper("m")
	if c.useless(p) {
		t.Error("one that has not begun is useless")
	}
	if p.Spec.Containers[0].Image = "other"; !c.useless(p) {
		t.Error("one of another image is not replaced")
	}
}
