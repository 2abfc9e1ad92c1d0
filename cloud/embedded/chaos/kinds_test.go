package chaos

import (
	"errors"
	"io"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/cloud/embedded/cri"
	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
)

// echo puts a host on the network that answers on port 7.
func (l *lab) echo(addr string) *vnet.Stack {
	h, err := l.network.AddHost(netip.MustParseAddr(addr))
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(h.Close)
	s := h.NewStack()
	ln, err := s.Listen("tcp", ":7")
	if err != nil {
		l.t.Fatal(err)
	}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				io.Copy(c, c)
				c.Close()
			}()
		}
	}()
	return s
}

// roundTrip returns how long one byte takes to a host and back, on an open connection.
func roundTrip(t *testing.T, c io.ReadWriter) time.Duration {
	t.Helper()
	start := time.Now()
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return time.Since(start)
}

func TestNetwork(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		one, db, outside := l.echo("10.0.0.1"), l.echo("10.0.0.3"), l.echo("10.0.0.200")
		// ping measures an open connection from a host to an address.
		ping := func(s *vnet.Stack, addr string) time.Duration {
			c, err := s.DialContext(t.Context(), "tcp", addr+":7")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			return roundTrip(t, c)
		}
		const ms = time.Millisecond
		type times struct{ OneToDB, DBToOne, OutsideToOne, OutsideToDB, OneToItself time.Duration }
		measure := func() times {
			return times{ping(one, "10.0.0.3"), ping(db, "10.0.0.1"), ping(outside, "10.0.0.1"), ping(outside, "10.0.0.3"), ping(one, "10.0.0.1")}
		}
		dbOnly := &cloud.Selector{Namespace: "shop", Labels: map[string]string{"app": "db"}}
		for _, c := range []struct {
			name string
			spec cloud.NetworkChaos
			want times
		}{
			// Each way of a round trip counts once, whoever began.
			{"to", cloud.NetworkChaos{}, times{50 * ms, 50 * ms, 50 * ms, 0, 0}},
			{"from", cloud.NetworkChaos{Direction: cloud.From}, times{50 * ms, 50 * ms, 50 * ms, 0, 0}},
			{"both", cloud.NetworkChaos{Direction: cloud.Both}, times{100 * ms, 100 * ms, 100 * ms, 0, 0}},
			{"to a target", cloud.NetworkChaos{Target: dbOnly}, times{50 * ms, 50 * ms, 0, 0, 0}},
			{"both ways with a target", cloud.NetworkChaos{Direction: cloud.Both, Target: dbOnly}, times{100 * ms, 100 * ms, 0, 0, 0}},
		} {
			c.spec.Delay = 50 * ms
			stop := l.disturb(cloud.Disturbance{Selector: geo, Network: &c.spec})
			if diff := cmp.Diff(c.want, measure()); diff != "" {
				t.Errorf("%s: %s", c.name, diff)
			}
			stop()
			if got := measure(); got != (times{}) {
				t.Errorf("%s, after its end: %+v", c.name, got)
			}
		}
	})
}

func TestNetworkFollowsPods(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.echo("10.0.0.1")
		l.echo("10.0.0.8")
		outside := l.echo("10.0.0.200")
		open := func(addr string) io.ReadWriteCloser {
			c, err := outside.DialContext(t.Context(), "tcp", addr+":7")
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		old, young := open("10.0.0.1"), open("10.0.0.8")
		defer old.Close()
		defer young.Close()
		stop := l.disturb(cloud.Disturbance{Selector: geo, Network: &cloud.NetworkChaos{Delay: time.Second}})
		if d := roundTrip(t, old); d != time.Second {
			t.Errorf("an open connection: %v", d)
		}
		if d := roundTrip(t, young); d != 0 {
			t.Errorf("somebody else's address: %v", d)
		}
		l.pod("geo-8", "10.0.0.8", "b", "geo")
		if d := roundTrip(t, young); d != time.Second {
			t.Errorf("a new pod: %v", d)
		}
		l.remove("geo-1")
		if d := roundTrip(t, old); d != 0 {
			t.Errorf("the address of a pod that is gone: %v", d)
		}
		// Two add up, and go one by one.
		more := l.disturb(cloud.Disturbance{Selector: geo, Network: &cloud.NetworkChaos{Delay: time.Minute}})
		if d := roundTrip(t, young); d != 61*time.Second {
			t.Errorf("two disturbances: %v", d)
		}
		stop()
		if d := roundTrip(t, young); d != time.Minute {
			t.Errorf("one of two: %v", d)
		}
		more()
		if d := roundTrip(t, young); d != 0 {
			t.Errorf("none: %v", d)
		}
	})
}

func TestNetworkGrows(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.echo("10.0.0.1")
		outside := l.echo("10.0.0.200")
		c, err := outside.DialContext(t.Context(), "tcp", "10.0.0.1:7")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		defer l.disturb(cloud.Disturbance{Selector: geo, Network: &cloud.NetworkChaos{Delay: 100 * time.Millisecond}, Schedule: cloud.Schedule{Ramp: 50 * time.Second}})()
		for _, want := range []time.Duration{2, 52, 100} {
			if d := roundTrip(t, c); d != want*time.Millisecond {
				t.Errorf("%v, want %d ms", d, want)
			}
			time.Sleep(25 * time.Second)
			synctest.Wait()
		}
	})
}

func TestLinkOf(t *testing.T) {
	full := cloud.NetworkChaos{Loss: 0.4, Corrupt: 0.2, Duplicate: 0.1, Delay: time.Second, Jitter: 100 * time.Millisecond, Bandwidth: 1000, Partition: true}
	want := vnet.Link{Down: true, Loss: 0.2, Corrupt: 0.1, Duplicate: 0.05, Delay: time.Second / 2, Jitter: 50 * time.Millisecond, Bandwidth: 2000}
	if diff := cmp.Diff(want, linkOf(&full, 0.5)); diff != "" {
		t.Error(diff)
	}
}

func TestPodKill(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		stop := l.disturb(cloud.Disturbance{Selector: geo, Pod: &cloud.PodChaos{Action: cloud.PodKill}})
		if diff := cmp.Diff([]string{"db-1"}, l.names()); diff != "" {
			t.Error(diff)
		}
		for _, a := range l.client.Actions() {
			if d, ok := a.(interface {
				GetDeleteOptions() metav1.DeleteOptions
			}); ok {
				if o := d.GetDeleteOptions(); o.GracePeriodSeconds == nil || *o.GracePeriodSeconds != 0 || o.Preconditions == nil {
					t.Errorf("deleted with %+v", o)
				}
			}
		}
		// A successor lives for a moment from when it runs.
		p := l.pod("geo-3", "", "a", "geo")
		p.Status.Phase = "Pending"
		l.update(p)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := len(l.names()); got != 2 {
			t.Errorf("%d pods: one that does not run is killed", got)
		}
		p.Status.Phase = "Running"
		l.update(p)
		time.Sleep(cloud.SuccessorLife - time.Millisecond)
		synctest.Wait()
		if got := len(l.names()); got != 2 {
			t.Errorf("%d pods: it is killed too early", got)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if got := len(l.names()); got != 1 {
			t.Errorf("%d pods: it is not killed", got)
		}
		stop()
		l.pod("geo-4", "", "a", "geo")
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := len(l.names()); got != 2 {
			t.Errorf("%d pods after the end", got)
		}
	})
}

func TestPodKillByTurns(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		defer l.disturb(cloud.Disturbance{Selector: geo, Pod: &cloud.PodChaos{Action: cloud.PodKill}, Schedule: cloud.Schedule{Every: time.Minute, For: time.Second}})()
		l.pod("geo-3", "", "a", "geo")
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if got := len(l.names()); got != 2 {
			t.Errorf("%d pods between two turns", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := len(l.names()); got != 1 {
			t.Errorf("%d pods in the second turn", got)
		}
	})
}

// only returns the effect on the pod geo-1.
func (l *lab) only() cri.Effect { return l.effects()["uid-geo-1"] }

func TestContainerKill(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		defer l.disturb(cloud.Disturbance{Selector: geo, Pod: &cloud.PodChaos{Action: cloud.ContainerKill, Containers: []string{"main"}}})()
		if e := l.only(); !e.Kill || e.Hang || len(e.Containers) != 1 || e.Containers[0] != "main" {
			t.Errorf("%+v", e)
		}
	})
}

func TestIO(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		stop := l.disturb(cloud.Disturbance{Selector: geo, IO: &cloud.IOChaos{Path: "/data/", Methods: []string{"write", "rename"}, Errno: "EIO", Latency: time.Second}})
		for _, c := range []struct {
			method string
			paths  []string
			hit    bool
		}{
			{"write", []string{"/data/db/journal"}, true},
			{"write", []string{"/data"}, true},
			{"write", []string{"/database"}, false},
			{"read", []string{"/data/db/journal"}, false},
			{"rename", []string{"/tmp/x", "/data/x"}, true},
		} {
			wait, errno := l.only().Files(c.method, c.paths...)
			if hit := errno == syscall.EIO && wait == time.Second; hit != c.hit || !c.hit && (errno != 0 || wait != 0) {
				t.Errorf("%s %v: %v, %v", c.method, c.paths, wait, errno)
			}
		}
		stop()
		// Slow, and sometimes.
		defer l.disturb(cloud.Disturbance{Selector: geo, IO: &cloud.IOChaos{Path: "/", Latency: time.Second, Percent: 25}})()
		slow := 0
		for range 1000 {
			wait, errno := l.only().Files("read", "/file")
			if errno != 0 {
				t.Fatal(errno)
			}
			if wait == time.Second {
				slow++
			}
		}
		if slow < 200 || slow > 300 {
			t.Errorf("%d of 1000 calls are slow", slow)
		}
	})
}

func TestKernel(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		for call, hook := range map[string]string{"connect": "connect", "accept": "accept", "send": "write", "recv": "read", "open": "openat", "brk": "mmap", "mmap": "mmap"} {
			stop := l.disturb(cloud.Disturbance{Selector: geo, Kernel: &cloud.KernelChaos{Call: call, Errno: "ENOMEM"}})
			if errno := l.only().Calls(hook); !errors.Is(errno, syscall.ENOMEM) {
				t.Errorf("%s: %v", call, errno)
			}
			if errno := l.only().Calls("bind"); errno != 0 {
				t.Errorf("%s: bind fails with %v", call, errno)
			}
			stop()
		}
		// A tenth of the way a call that is to fail always fails a tenth of the time.
		defer l.disturb(cloud.Disturbance{Selector: geo, Kernel: &cloud.KernelChaos{Call: "connect", Errno: "ENOMEM"}, Schedule: cloud.Schedule{Ramp: 500 * time.Millisecond}})()
		failed := 0
		for range 1000 {
			if l.only().Calls("connect") != 0 {
				failed++
			}
		}
		if failed < 150 || failed > 250 {
			t.Errorf("%d of 1000 calls fail in the first of five steps", failed)
		}
	})
}

// TestOneSeedOneFate: which calls of a pod fail follows from the seed, whatever other pods call.
func TestOneSeedOneFate(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		defer l.disturb(cloud.Disturbance{
			Selector: cloud.Selector{Namespace: "shop", Service: "geo"},
			Kernel:   &cloud.KernelChaos{Call: "connect", Errno: "ENOMEM", Percent: 50},
		})()
		calls := func(seed uint64, noise int) (failed []bool) {
			l.network.Seed(seed)
			for range 60 {
				for range noise {
					l.effects()["uid-geo-2"].Calls("connect")
				}
				failed = append(failed, l.effects()["uid-geo-1"].Calls("connect") != 0)
			}
			return failed
		}
		one := calls(7, 0)
		if got := calls(7, 3); !slices.Equal(got, one) {
			t.Errorf("with one seed:\n%v\n%v", one, got)
		}
		if slices.Equal(calls(8, 0), one) {
			t.Error("with another seed it is the same")
		}
	})
}
