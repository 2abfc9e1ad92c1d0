package campaign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// maxText is how much of what others say is told.
const maxText = 300

// short keeps a text on one line, and its end if it is too long.
func short(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > maxText {
		text = "..." + string(r[len(r)-maxText:])
	}
	return text
}

// forbiddenAdvice says what to do about an object that is not admitted.
func forbiddenAdvice(err error) string {
	switch text := err.Error(); {
	case strings.Contains(text, "exceeded quota"):
		return "ask for less with --cpu and --memory, or have the quota of the namespace raised"
	case strings.Contains(text, "must specify") || strings.Contains(text, "usage per"):
		return "choose --cpu and --memory that the namespace's limits admit"
	case strings.Contains(text, "violates PodSecurity"):
		return "a pod of a campaign asks for nothing beyond the restricted level; a webhook may have changed it"
	}
	return "docs/campaigns.md lists the rights that a campaign needs in its namespace"
}

const imageAdvice = "--image must name one with the program aiopslab in its PATH"

// trouble is why a keeper does not answer, if waiting does not help. Late says that an image has had its time.
func (c *Campaign) trouble(p *v1.Pod, late bool) error {
	if p.Status.Phase == v1.PodFailed {
		why := lastWords(p)
		for _, s := range p.Status.ContainerStatuses {
			if t := s.State.Terminated; t != nil && (t.Reason == "StartError" || t.Reason == "ContainerCannotRun") {
				return unmendable{fmt.Errorf("the pods cannot be started: %s: %s", why, imageAdvice)}
			}
		}
		return unmendable{fmt.Errorf("the records cannot be kept at %s: %s", c.Records,
			cmp.Or(why, p.Status.Message, "the pod "+p.Name+" failed; 'kubectl describe pod' may tell why"))}
	}
	line, stuck := waiting(p)
	switch {
	case line == "":
	case stuck && late:
		return unmendable{errors.New(line)}
	default:
		c.tell("%s", line)
	}
	return nil
}

// waiting is what a pod waits for, and whether it hardly comes by itself.
func waiting(p *v1.Pod) (line string, stuck bool) {
	for _, s := range p.Status.ContainerStatuses {
		if s.State.Waiting == nil {
			continue
		}
		why := short(s.State.Waiting.Message)
		switch s.State.Waiting.Reason {
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull":
			return fmt.Sprintf("the nodes cannot pull the image %s: %s: push it where they can, with --pull-secret if "+
				"its registry asks who they are, and name it with --image", s.Image, why), true
		case "CreateContainerConfigError":
			return fmt.Sprintf("the pods cannot be started: %s: make it in namespace %s, or name another", why,
				p.Namespace), true
		case "CreateContainerError", "RunContainerError":
			return fmt.Sprintf("the pods cannot be started: %s: %s", why, imageAdvice), true
		}
	}
	for _, x := range p.Status.Conditions {
		if x.Type == v1.PodScheduled && x.Status == v1.ConditionFalse && x.Reason == v1.PodReasonUnschedulable {
			return "no node takes a pod yet: " + short(x.Message), false
		}
	}
	return "", false
}

// lastWords is what a pod that has failed said last.
func lastWords(p *v1.Pod) string {
	for _, s := range p.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
			lines := strings.Split(strings.TrimSpace(t.Message), "\n")
			if last := short(lines[len(lines)-1]); last != "" {
				return last
			}
			return fmt.Sprintf("%s, exit status %d", cmp.Or(t.Reason, "it ended"), t.ExitCode)
		}
	}
	return short(p.Status.Message)
}

func exitCode(p *v1.Pod) int32 {
	for _, s := range p.Status.ContainerStatuses {
		if s.State.Terminated != nil {
			return s.State.Terminated.ExitCode
		}
	}
	return 0
}

// maxTrouble is how many pods are looked at to find out what holds them up.
const maxTrouble = 20

// watchOver tells what holds the Job up. Nothing of it ends the campaign: quotas are raised and nodes are added.
func (c *Campaign) watchOver(ctx context.Context, job *batchv1.Job) {
	if c.Queue != "" && job.Spec.Suspend != nil && *job.Spec.Suspend {
		c.tell("the Job waits to be admitted to the queue %s", c.Queue)
		return
	}
	pods := func(phase v1.PodPhase) []v1.Pod {
		list, err := c.client.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{
			LabelSelector: batchv1.JobNameLabel + "=" + c.Name, Limit: maxTrouble,
			FieldSelector: fields.OneTermEqualSelector("status.phase", string(phase)).String(),
		})
		if err != nil {
			return nil // It is asked again.
		}
		return list.Items
	}
	if job.Status.Active > 0 {
		for _, p := range pods(v1.PodPending) {
			if line, _ := waiting(&p); line != "" {
				c.tell("%s", line)
				break
			}
		}
	} else {
		c.tellRefusal(ctx)
		for _, p := range append(pods(v1.PodRunning), pods(v1.PodPending)...) {
			if d := p.DeletionTimestamp; d != nil && time.Since(d.Time) > lostAfter*time.Second {
				c.tell("the node %s does not answer, and runs wait for it: if it is gone for good, "+
					"'kubectl delete node %s' has them begin anew elsewhere", p.Spec.NodeName, p.Spec.NodeName)
			}
		}
	}
	if job.Status.Failed > c.failed {
		c.failed = job.Status.Failed
		for _, p := range pods(v1.PodFailed) {
			code := exitCode(&p)
			if code > 0 && code < exitNotStarted && len(c.told) < maxTold { // Else it was killed, or lost.
				c.tell("a run failed, and is tried again if it has tries left: %s", lastWords(&p))
			}
		}
	}
}

// maxTold is how many different lines are told, so that a campaign in which everything fails does not flood who watches
// it.
const maxTold = 20

// tellRefusal tells why the Job cannot make pods.
func (c *Campaign) tellRefusal(ctx context.Context) {
	list, err := c.client.CoreV1().Events(c.Namespace).List(ctx, metav1.ListOptions{
		Limit: maxTrouble,
		FieldSelector: fields.Set{
			"involvedObject.kind": "Job", "involvedObject.name": c.Name, "reason": "FailedCreate",
		}.AsSelector().String(),
	})
	if err != nil {
		return
	}
	for _, e := range list.Items {
		advice := forbiddenAdvice(errors.New(e.Message))
		if key := "refused: " + advice; !c.told[key] {
			c.told[key] = true
			c.tell("the cluster does not let the Job make pods: %s: %s", short(e.Message), advice)
		}
	}
}

// explain returns why indexes of a Job that has ended have no record.
func (c *Campaign) explain(ctx context.Context, job *batchv1.Job) func(index int) string {
	whole := "the Job ended without it"
	for _, x := range job.Status.Conditions {
		if x.Type == batchv1.JobFailed && x.Reason != batchv1.JobReasonFailedIndexes {
			whole = "not run: " + short(x.Message)
		}
	}
	words := map[int]string{}
	list, err := c.client.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: batchv1.JobNameLabel + "=" + c.Name,
		FieldSelector: fields.OneTermEqualSelector("status.phase", string(v1.PodFailed)).String(),
	})
	if err == nil {
		for _, p := range list.Items {
			words[completionIndex(&p)] = lastWords(&p)
		}
	}
	return func(index int) string { return cmp.Or(words[index], whole) }
}
