package kit

import (
	"cmp"
	"encoding/hex"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ticks is how many parts of a second the kernel counts in /proc, on every architecture there is.
const ticks = 100

// hostList lists the processes that the program sees: in a container, those of the container.
func hostList() []ProcessInfo {
	entries, _ := os.ReadDir("/proc")
	booted := bootTime()
	var list []ProcessInfo
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if p, ok := hostProcessInfo(pid, booted); ok {
				list = append(list, p)
			}
		}
	}
	if len(list) == 0 { // There is no /proc.
		list = append(list, ProcessInfo{PID: os.Getpid(), Parent: os.Getppid(), Args: os.Args})
	}
	slices.SortFunc(list, func(a, b ProcessInfo) int { return cmp.Compare(a.PID, b.PID) })
	return list
}

// bootTime is when the machine was started.
func bootTime() time.Time {
	data, _ := os.ReadFile("/proc/stat")
	for line := range strings.Lines(string(data)) {
		if seconds, ok := strings.CutPrefix(line, "btime "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(seconds), 10, 64)
			return time.Unix(n, 0)
		}
	}
	return time.Time{}
}

// hostProcessInfo reads what /proc has of a process; false if it is gone.
func hostProcessInfo(pid int, booted time.Time) (ProcessInfo, bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return ProcessInfo{}, false
	}
	// The name is in parentheses, and may have any characters in it. After it come the state, field 3, and the others.
	open, end := strings.IndexByte(string(stat), '('), strings.LastIndexByte(string(stat), ')')
	if open < 0 || end < open {
		return ProcessInfo{}, false
	}
	fields := strings.Fields(string(stat[end+1:]))
	field := func(n int) int64 {
		if n-3 >= len(fields) {
			return 0
		}
		v, _ := strconv.ParseInt(fields[n-3], 10, 64)
		return v
	}
	tick := func(n int64) time.Duration { return time.Duration(n) * time.Second / ticks }
	p := ProcessInfo{
		PID: pid, Parent: int(field(4)), CPU: tick(field(14) + field(15)), Started: booted.Add(tick(field(22))),
		Memory: field(24) * int64(os.Getpagesize()),
	}
	if line, _ := os.ReadFile(dir + "/cmdline"); len(line) > 0 {
		p.Args = strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	} else {
		p.Args = []string{"[" + string(stat[open+1:end]) + "]"} // a thread of the kernel, or one that has ended
	}
	if fi, err := os.Stat(dir); err == nil {
		o := hostOwner(fi)
		p.User = User{UID: o.UID, GID: o.GID}
	}
	return p, true
}

// memoryLimits are the files that say how much memory a container may use: of control groups of version 2 and 1.
var memoryLimits = []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}

// hostMemoryInfo is what the machine and the container's control group have. Used is what the program has stated.
func hostMemoryInfo(used int64) MemoryInfo {
	info := MemoryInfo{Used: used}
	data, _ := os.ReadFile("/proc/meminfo")
	if fields := strings.Fields(string(data)); len(fields) > 1 && fields[0] == "MemTotal:" {
		kilobytes, _ := strconv.ParseInt(fields[1], 10, 64)
		info.Total = kilobytes << 10
	}
	// What is more than the machine has is no limit.
	if limit := firstNumber(memoryLimits); limit < info.Total {
		info.Limit = limit
	}
	return info
}

// firstNumber is what the first file says that is there and has a number; 0 if none does.
func firstNumber(files []string) int64 {
	for _, f := range files {
		if data, err := os.ReadFile(f); err == nil {
			n, _ := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
			return n
		}
	}
	return 0
}

// The states of a TCP socket that the kernel numbers from 1.
var tcpStates = []string{
	"ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2", "TIME_WAIT", "CLOSE", "CLOSE_WAIT", "LAST_ACK",
	"LISTEN", "CLOSING",
}

// Sockets implements SocketLister.
func (hostNetwork) Sockets() (list []Socket) {
	for _, network := range []string{"tcp", "udp"} {
		for _, version := range []string{"", "6"} {
			data, _ := os.ReadFile("/proc/net/" + network + version)
			for line := range strings.Lines(string(data)) {
				if s, ok := parseSocket(network, line); ok {
					list = append(list, s)
				}
			}
		}
	}
	return list
}

// parseSocket reads a line of /proc/net/tcp and its like.
func parseSocket(network, line string) (Socket, bool) {
	fields := strings.Fields(line)
	if len(fields) < 4 {
		return Socket{}, false
	}
	local, ok := parseAddr(network, fields[1])
	if !ok { // the title
		return Socket{}, false
	}
	s := Socket{Network: network, Local: local}
	if remote, ok := parseAddr(network, fields[2]); ok && fields[2][strings.IndexByte(fields[2], ':'):] != ":0000" {
		s.Remote = remote
	}
	n, err := strconv.ParseUint(fields[3], 16, 8)
	if err == nil && network == "tcp" && n > 0 && int(n) <= len(tcpStates) {
		s.State = tcpStates[n-1]
	}
	return s, true
}

// parseAddr reads an address: words of the machine's byte order, a colon and a port.
func parseAddr(network, text string) (net.Addr, bool) {
	host, port, ok := strings.Cut(text, ":")
	ip, err := hex.DecodeString(host)
	n, perr := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil || perr != nil || len(ip)%4 != 0 || len(ip) == 0 {
		return nil, false
	}
	for i := 0; i < len(ip); i += 4 { // Images are made for machines that have the low byte first.
		slices.Reverse(ip[i : i+4])
	}
	if network == "udp" {
		return &net.UDPAddr{IP: ip, Port: int(n)}, true
	}
	return &net.TCPAddr{IP: ip, Port: int(n)}, true
}
