package cloud

import (
	"math"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestValidate(t *testing.T) {
	geo := Selector{Namespace: "shop", Service: "geo"}
	loss := &NetworkChaos{Loss: 0.1}
	for _, c := range []struct {
		name string
		d    Disturbance
		want string // "" is valid; else a part of the error
	}{
		{"loss", Disturbance{Selector: geo, Network: loss}, ""},
		{"pods of a node", Disturbance{Selector: Selector{Node: "node-1"}, Network: &NetworkChaos{Partition: true, Direction: Both}}, ""},
		{"periodic stress", Disturbance{Selector: geo, Stress: &StressChaos{CPU: 0.5}, Schedule: Schedule{Every: time.Minute, For: time.Second}}, ""},
		{"slow files", Disturbance{Selector: geo, IO: &IOChaos{Path: "/data", Latency: time.Second, Methods: []string{"read", "fsync"}}}, ""},
		{"kill", Disturbance{Selector: geo, Pod: &PodChaos{Action: ContainerKill, Containers: []string{"geo"}}}, ""},
		{"kernel", Disturbance{Selector: geo, Kernel: &KernelChaos{Call: "connect", Errno: "ENOMEM", Percent: 50}}, ""},

		{"nothing", Disturbance{Selector: geo}, "kind: set exactly one of pod, network, stress, io and kernel, not 0"},
		{"two kinds", Disturbance{Selector: geo, Network: loss, Stress: &StressChaos{CPU: 1}}, "not 2"},
		{"no selector", Disturbance{Network: loss}, "selector: set at least one of namespace, labels, pod, service and node"},
		{"a service of no namespace", Disturbance{Selector: Selector{Service: "geo"}, Network: loss}, `selector.namespace: say which namespace service "geo" is in`},
		{"a pod of no namespace", Disturbance{Selector: geo, Network: &NetworkChaos{Loss: 1, Target: &Selector{Pod: "db"}}}, `network.target.namespace: say which namespace pod "db" is in`},
		{"a percentage", Disturbance{Selector: geo, Network: &NetworkChaos{Loss: 10}}, "network.loss: 10 is not a number from 0 to 1"},
		{"not a number", Disturbance{Selector: geo, Stress: &StressChaos{CPU: math.NaN()}}, "stress.cpu: NaN is not a number from 0 up"},
		{"no magnitude", Disturbance{Selector: geo, Network: &NetworkChaos{}}, "network: set at least one of loss"},
		{"direction", Disturbance{Selector: geo, Network: &NetworkChaos{Loss: 1, Direction: "in"}}, `network.direction: "in" is not one of to, from, both`},
		{"action", Disturbance{Selector: geo, Pod: &PodChaos{Action: "kill"}}, `pod.action: "kill" is not one of pod-kill, pod-failure, container-kill`},
		{"containers of a pod", Disturbance{Selector: geo, Pod: &PodChaos{Action: PodKill, Containers: []string{"geo"}}}, "only container-kill chooses containers"},
		{"half a period", Disturbance{Selector: geo, Network: loss, Schedule: Schedule{Every: time.Minute}}, "schedule.for: is required with every"},
		{"too long", Disturbance{Selector: geo, Network: loss, Schedule: Schedule{Every: time.Second, For: time.Minute}}, "schedule.for: 1m0s is more than every, 1s"},
		{"never", Disturbance{Selector: geo, Network: loss, Schedule: Schedule{For: time.Minute}}, "schedule.every: is required with for"},
		{"a relative path", Disturbance{Selector: geo, IO: &IOChaos{Path: "data", Errno: "EIO"}}, `io.path: "data" is not an absolute path`},
		{"an unknown error", Disturbance{Selector: geo, IO: &IOChaos{Path: "/", Errno: "EBROKEN"}}, `io.errno: "EBROKEN" is not one of EACCES,`},
		{"an unknown method", Disturbance{Selector: geo, IO: &IOChaos{Path: "/", Errno: "EIO", Methods: []string{"poke"}}}, `io.methods: "poke" is not one of open,`},
		{"no effect", Disturbance{Selector: geo, IO: &IOChaos{Path: "/"}}, "io: set errno, latency or both"},
		{"an unknown call", Disturbance{Selector: geo, Kernel: &KernelChaos{Call: "fly", Errno: "EIO"}}, `kernel.call: "fly" is not one of socket, connect`},
		{"no error", Disturbance{Selector: geo, Kernel: &KernelChaos{Call: "connect"}}, `kernel.errno: "" is not one of`},
		{"percent", Disturbance{Selector: geo, Kernel: &KernelChaos{Call: "connect", Errno: "EIO", Percent: 101}}, "kernel.percent: 101 is not a number from 0 to 100"},
	} {
		t.Run(c.name, func(t *testing.T) {
			switch err := c.d.Validate(); {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && err == nil:
				t.Errorf("it is valid; want %q", c.want)
			case c.want != "" && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")):
				t.Errorf("%v; want one line with %q", err, c.want)
			}
		})
	}
}

// Everything that is wrong is said at once.
func TestValidateSaysAll(t *testing.T) {
	err := Disturbance{Network: &NetworkChaos{Loss: 2, Delay: -1}}.Validate()
	for _, want := range []string{"selector:", "network.loss:", "network.delay:"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %s", err, want)
		}
	}
}

func TestErrno(t *testing.T) {
	if e, ok := Errno("ENOBUFS"); !ok || e != syscall.ENOBUFS {
		t.Errorf("%v, %v", e, ok)
	}
	if _, ok := Errno("enobufs"); ok {
		t.Error("names are in capitals")
	}
}
