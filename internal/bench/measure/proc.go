package measure

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of CPU times in /proc. The kernel fixes it for programs, whatever its own
// timer does.
const clockTick = 10 * time.Millisecond

// Memory is what a process occupies, in bytes.
type Memory struct {
	Resident int64 // VmRSS: what of it is in memory
	Private  int64 // RssAnon: the part that no file backs
	Share    int64 // PSS: private pages plus its share of those that others map too
}

// MemoryOf reads the memory of a process.
func MemoryOf(pid int) (Memory, error) {
	status, err := os.ReadFile(procFile(pid, "status"))
	if err != nil {
		return Memory{}, err
	}
	rollup, err := os.ReadFile(procFile(pid, "smaps_rollup"))
	if err != nil {
		return Memory{}, err
	}
	return parseMemory(string(status), string(rollup))
}

func parseMemory(status, rollup string) (m Memory, err error) {
	var errs [3]error
	m.Resident, errs[0] = kilobytes(status, "VmRSS")
	m.Private, errs[1] = kilobytes(status, "RssAnon")
	m.Share, errs[2] = kilobytes(rollup, "Pss")
	return m, errors.Join(errs[:]...)
}

// kilobytes finds a "Name:  123 kB" line and returns bytes.
func kilobytes(text, name string) (int64, error) {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("no %s in what the kernel says", name)
}

// CPUOf reads the CPU time that a process has used, without its children's.
func CPUOf(pid int) (time.Duration, error) {
	b, err := os.ReadFile(procFile(pid, "stat"))
	if err != nil {
		return 0, err
	}
	return parseCPU(string(b))
}

// parseCPU reads fields 14 and 15 of a stat file. The second field, the name, may contain spaces and
// parentheses.
func parseCPU(stat string) (time.Duration, error) {
	rest := stat[strings.LastIndexByte(stat, ')')+1:]
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("cannot read CPU time from %q", stat)
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * clockTick, errors.Join(err1, err2)
}

func procFile(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}

// Machine is what the figures depend on.
type Machine struct {
	CPU       string
	Memory    int64 // in bytes
	Available int64 // of it, at the moment
	Load      string
}

// ThisMachine reads what /proc knows. What it does not is left empty.
func ThisMachine() Machine {
	read := func(name string) string {
		b, err := os.ReadFile("/proc/" + name)
		if err != nil {
			return ""
		}
		return string(b)
	}
	return parseMachine(read("cpuinfo"), read("meminfo"), read("loadavg"))
}

func parseMachine(cpuinfo, meminfo, loadavg string) (m Machine) {
	for line := range strings.Lines(cpuinfo) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	m.Memory, _ = kilobytes(meminfo, "MemTotal")
	m.Available, _ = kilobytes(meminfo, "MemAvailable")
	if f := strings.Fields(loadavg); len(f) >= 3 {
		m.Load = strings.Join(f[:3], " ")
	}
	return m
}
