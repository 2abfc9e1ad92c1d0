package embedded_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// What an operator reads in kubectl describe pod of each of the usual mishaps: the container's state
// and the pod's events, in the kubelet's words. POD stands for the pod's name_namespace(uid), and IP
// for its address.
func TestDiagnosis(t *testing.T) {
	t.Parallel()
	c := shared(t)
	agnhost := func(rest string) string { return "image: '" + agnhostImage + "', " + rest }
	const (
		noImage   = `rpc error: code = Unknown desc = failed to pull and unpack image "docker.io/library/nosuch:1": failed to resolve reference "docker.io/library/nosuch:1": pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed`
		noTag     = `rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/library/nginx:0.1": failed to resolve reference "docker.io/library/nginx:0.1": docker.io/library/nginx:0.1: not found`
		noCommand = `failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: exec: "nosuch": executable file not found in $PATH`
	)
	for _, tt := range []struct {
		name      string
		container string // its fields
		spec      string // of the pod, besides
		waiting   string // reason: message
		ended     string // the last run: reason exit-code: message
		events    []string
	}{
		{
			name:      "crash-loop",
			container: `image: busybox, command: [sh, -c, "echo no database >&2; exit 3"]`,
			waiting:   "CrashLoopBackOff: back-off 10s restarting failed container=main pod=POD",
			ended:     "Error 3: ",
			events: []string{
				"Scheduled: Successfully assigned",
				`Pulling: Pulling image "busybox"`,
				`Pulled: Successfully pulled image "busybox" in `,
				"Created: Container created",
				"Started: Container started",
				"BackOff: Back-off restarting failed container main in pod POD",
			},
		},
		{
			name:      "termination-message",
			container: `image: busybox, command: [sh, -c, "echo no luck > /dev/termination-log; exit 4"]`,
			ended:     "Error 4: no luck\n",
		},
		{
			name:      "last-words",
			container: `image: busybox, terminationMessagePolicy: FallbackToLogsOnError, command: [sh, -c, "echo cannot go on; exit 5"]`,
			ended:     "Error 5: cannot go on\n",
		},
		{
			name:      "completed",
			container: `image: busybox, command: ["true"]`,
			waiting:   "CrashLoopBackOff: back-off 10s restarting failed container=main pod=POD",
			ended:     "Completed 0: ",
		},
		{
			name:      "no-such-image",
			container: "image: 'nosuch:1'",
			waiting:   `ImagePullBackOff: Back-off pulling image "nosuch:1": ErrImagePull: ` + noImage,
			events: []string{
				`Pulling: Pulling image "nosuch:1"`,
				`Failed: Failed to pull image "nosuch:1": ` + noImage,
				"Failed: Error: ErrImagePull",
				`BackOff: Back-off pulling image "nosuch:1"`,
				"Failed: Error: ImagePullBackOff",
			},
		},
		{
			name:      "no-such-pull-secret",
			container: "image: 'nosuch:1'",
			spec:      "imagePullSecrets: [{name: registry}, {name: mirror}]",
			events:    []string{"FailedToRetrieveImagePullSecret: Unable to retrieve some image pull secrets (registry, mirror); attempting to pull the image may not succeed."},
		},
		{
			name:      "no-such-tag",
			container: "image: 'nginx:0.1'",
			waiting:   `ImagePullBackOff: Back-off pulling image "nginx:0.1": ErrImagePull: ` + noTag,
		},
		{
			name:      "invalid-image-name",
			container: "image: 'Nginx:1.29'",
			waiting:   `InvalidImageName: Failed to apply default image tag "Nginx:1.29": couldn't parse image name "Nginx:1.29": invalid reference format: repository name (library/Nginx) must be lowercase`,
			events: []string{
				`InspectFailed: Failed to apply default image tag "Nginx:1.29": couldn't parse image name "Nginx:1.29": invalid reference format: repository name (library/Nginx) must be lowercase`,
				"Failed: Error: InvalidImageName",
			},
		},
		{
			name:      "never-pulled",
			container: "image: 'nosuch:1', imagePullPolicy: Never",
			waiting:   `ErrImageNeverPull: Container image "nosuch:1" is not present with pull policy of Never`,
			events:    []string{"Failed: Error: ErrImageNeverPull"},
		},
		{
			name:      "wrong-command",
			container: "image: busybox, command: [nosuch]",
			waiting:   "CrashLoopBackOff: back-off 10s restarting failed container=main pod=POD",
			ended:     "StartError 128: " + noCommand,
			events:    []string{"Failed: Error: " + noCommand},
		},
		{
			name:      "missing-configmap",
			container: "image: busybox, envFrom: [{configMapRef: {name: settings}}]",
			waiting:   `CreateContainerConfigError: configmap "settings" not found`,
			events:    []string{`Failed: Error: configmap "settings" not found`},
		},
		{
			name:      "missing-key",
			container: "image: busybox, env: [{name: A, valueFrom: {configMapKeyRef: {name: kube-root-ca.crt, key: nosuch}}}]",
			waiting:   `CreateContainerConfigError: couldn't find key nosuch in ConfigMap NS/kube-root-ca.crt`,
		},
		{
			name:      "missing-volume",
			container: "image: busybox, volumeMounts: [{name: v, mountPath: /v}]",
			spec:      "volumes: [{name: v, secret: {secretName: nosuch}}]",
			waiting:   "ContainerCreating: ",
			events:    []string{`FailedMount: MountVolume.SetUp failed for volume "v" : secret "nosuch" not found`},
		},
		{
			name:      "out-of-memory",
			container: agnhost("args: [stress, --mem-total=1Gi, --mem-alloc-size=16Mi], resources: {limits: {memory: 64Mi}}"),
			waiting:   "CrashLoopBackOff: back-off 10s restarting failed container=main pod=POD",
			ended:     "OOMKilled 137: ",
		},
		{
			name:      "liveness-http",
			container: "image: 'nginx:1.29', livenessProbe: {httpGet: {port: 80, path: /nosuch}, periodSeconds: 1, failureThreshold: 1}",
			spec:      "terminationGracePeriodSeconds: 1",
			ended:     "Completed 0: ",
			events: []string{
				"Unhealthy: Liveness probe failed: HTTP probe failed with statuscode: 404",
				"Killing: Container main failed liveness probe, will be restarted",
			},
		},
		{
			name:      "readiness-refused",
			container: agnhost("readinessProbe: {httpGet: {port: 81, path: /}, periodSeconds: 1}"),
			events:    []string{`Unhealthy: Readiness probe failed: Get "http://IP:81/": dial tcp IP:81: connect: connection refused`},
		},
		{
			name:      "readiness-tcp",
			container: agnhost("readinessProbe: {tcpSocket: {port: 81}, periodSeconds: 1}"),
			events:    []string{"Unhealthy: Readiness probe failed: dial tcp IP:81: connect: connection refused"},
		},
		{
			name:      "readiness-exec",
			container: "image: busybox, command: [sleep, 1h], readinessProbe: {exec: {command: [cat, /tmp/ready]}, periodSeconds: 1}",
			events:    []string{"Unhealthy: Readiness probe failed: cat: can't open '/tmp/ready': No such file or directory\n"},
		},
		{
			name:      "readiness-grpc",
			container: agnhost("args: [grpc-health-checking, --delay-unhealthy-sec=0], readinessProbe: {grpc: {port: 5000}, periodSeconds: 1}"),
			events:    []string{`Unhealthy: Readiness probe failed: service unhealthy (responded with "NOT_SERVING")`},
		},
		{
			name:      "startup-timeout",
			container: `image: busybox, command: [sleep, 1h], startupProbe: {exec: {command: [sleep, "30"]}, periodSeconds: 1, failureThreshold: 1}`,
			spec:      "terminationGracePeriodSeconds: 1",
			events: []string{
				`Unhealthy: Startup probe failed: command timed out: "sleep 30" timed out after 1s`,
				"Killing: Container main failed startup probe, will be restarted",
			},
		},
		{
			name:      "post-start-fails",
			container: "image: busybox, command: [sleep, 1h], lifecycle: {postStart: {exec: {command: [sh, -c, exit 7]}}}",
			spec:      "terminationGracePeriodSeconds: 1",
			events:    []string{"FailedPostStartHook: PostStartHook failed"},
		},
		{
			name:      "too-big",
			container: "image: busybox, resources: {requests: {cpu: 1000}}",
			events:    []string{"FailedScheduling: 0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."},
		},
		{
			name:      "no-such-node",
			container: "image: busybox",
			spec:      "nodeSelector: {disk: ssd}",
			events:    []string{"FailedScheduling: 0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."},
		},
		{
			name:      "no-such-claim",
			container: "image: busybox",
			spec:      "volumes: [{name: v, persistentVolumeClaim: {claimName: nosuch}}]",
			events:    []string{`FailedScheduling: 0/3 nodes are available: persistentvolumeclaim "nosuch" not found.`},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ns := c.namespace(t)
			c.apply(t, ns, fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {containers: [{name: main, %s}], %s}}", tt.name, tt.container, tt.spec))
			var pod *v1.Pod
			expand := func(s string) string {
				return strings.NewReplacer("POD", fmt.Sprintf("%s_%s(%s)", pod.Name, ns, pod.UID), "IP", pod.Status.PodIP, "NS", ns).Replace(s)
			}
			pod = c.awaitPod(t, ns, tt.name, "waiting with "+tt.waiting+", ended with "+tt.ended, func(p *v1.Pod) bool {
				pod = p
				if tt.waiting == "" && tt.ended == "" {
					return p.Status.PodIP != "" || !slices.ContainsFunc(tt.events, func(e string) bool { return strings.Contains(e, "IP") })
				}
				if len(p.Status.ContainerStatuses) == 0 {
					return false
				}
				s := p.Status.ContainerStatuses[0]
				waiting := s.State.Waiting != nil && s.State.Waiting.Reason+": "+s.State.Waiting.Message == expand(tt.waiting)
				last := s.LastTerminationState.Terminated
				ended := last != nil && fmt.Sprintf("%s %d: %s", last.Reason, last.ExitCode, last.Message) == tt.ended
				return (tt.waiting == "" || waiting) && (tt.ended == "" || ended)
			})
			for _, want := range tt.events {
				reason, message, _ := strings.Cut(expand(want), ": ")
				c.awaitEvent(t, ns, tt.name, reason, message)
			}
		})
	}
}
