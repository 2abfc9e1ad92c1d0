package kit

import (
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestHostList shows that a process sees the others of its container.
func TestHostList(t *testing.T) {
	env, _, _ := testEnv(t)
	env.Vars[hostProgram] = "wait"
	out := make(lines, 8)
	env.Stdout = out
	child, err := env.Procs.Start(t.Context(), env.Child(os.Args[0], "with (an) argument", ""))
	if err != nil {
		t.Fatal(err)
	}
	<-out
	list := env.Procs.List()
	i := slices.IndexFunc(list, func(p ProcessInfo) bool { return p.PID == child.PID() })
	if i < 0 {
		t.Fatalf("the child is not among %d processes", len(list))
	}
	p := list[i]
	if p.Parent != os.Getpid() || strings.Join(p.Args[1:], "|") != "with (an) argument|" || p.User.UID != os.Getuid() ||
		p.Memory < 1<<20 || p.Started.Before(time.Now().Add(-time.Hour)) || p.Started.After(time.Now().Add(time.Hour)) {
		t.Errorf("%+v", p)
	}
	if !slices.IsSortedFunc(list, func(a, b ProcessInfo) int { return a.PID - b.PID }) {
		t.Error("the list is not sorted")
	}
}

func TestHostSockets(t *testing.T) {
	env, _, _ := testEnv(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer packets.Close()
	list := env.Net.(SocketLister).Sockets()
	for _, want := range []Socket{
		{"tcp", ln.Addr(), nil, "LISTEN"},
		{"tcp", conn.LocalAddr(), ln.Addr(), "ESTABLISHED"},
		{"udp", packets.LocalAddr(), nil, ""},
	} {
		if !slices.ContainsFunc(list, func(s Socket) bool {
			return s.Network == want.Network && s.State == want.State && s.Local.String() == want.Local.String() &&
				(s.Remote == nil) == (want.Remote == nil) && (s.Remote == nil || s.Remote.String() == want.Remote.String())
		}) {
			t.Errorf("no %v among %v", want, list)
		}
	}
}

func TestParseSocket(t *testing.T) {
	for line, want := range map[string]string{
		"  sl  local_address rem_address   st tx_queue rx_queue":                               "",
		"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00":                         "127.0.0.1:8080  LISTEN",
		"   1: 0100007F:1F90 0200007F:0050 08 00000000:00000000 00:00":                         "127.0.0.1:8080 127.0.0.2:80 CLOSE_WAIT",
		"   2: 00000000000000000000000001000000:0035 00000000000000000000000000000000:0000 0A": "[::1]:53  LISTEN",
		"   3: 0100007F:1F90 00000000:0000 FF":                                                 "127.0.0.1:8080  ",
		"   4: 0100007:1F90 00000000:0000 0A":                                                  "",
		"   5: :1F90 :0000 0A":                                                                 "",
		"   6: 0100007F 00000000 0A":                                                           "",
		"   7: 0100007F:FFFFFF 00000000:0 0A":                                                  "",
		"":                                                                                     "",
	} {
		got := ""
		if s, ok := parseSocket("tcp", line); ok {
			remote := ""
			if s.Remote != nil {
				remote = s.Remote.String()
			}
			got = s.Local.String() + " " + remote + " " + s.State
		}
		if got != want {
			t.Errorf("%q is %q, not %q", line, got, want)
		}
	}
}

func TestHostMemoryInfo(t *testing.T) {
	env, _, _ := testEnv(t)
	if info := env.Memory.Info(); info.Total < 1<<20 || info.Limit > info.Total || info.Used < 0 {
		t.Errorf("%+v", info)
	}
	if info := env.CPU.Info(); info.Cores < 1 || info.Used <= 0 {
		t.Errorf("%+v", info)
	}
}
