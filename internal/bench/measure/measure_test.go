package measure

import (
	"debug/elf"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestQuantity(t *testing.T) {
	tests := []struct {
		name             string
		rounds           []float64
		min, p50, p90    float64
		max              float64
		text, spreadText string
	}{
		{"one", []float64{0.25}, 0.25, 0.25, 0.25, 0.25, "0.250 s", ""},
		{"odd", []float64{3, 1, 2}, 1, 2, 3, 3, "2 s", "1..3 /3"},
		// The median of an even number is between two rounds; other percentiles are rounds.
		{"even", []float64{4, 1, 3, 2.5}, 1, 2.75, 4, 4, "2.75 s", "1..4 /4"},
		{"ten", []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 1, 5.5, 9, 10, "5.50 s", "1..10 /10"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := Of("s", tt.rounds...)
			got := []float64{q.Min(), q.Median(), q.Percentile(90), q.Max()}
			if diff := cmp.Diff([]float64{tt.min, tt.p50, tt.p90, tt.max}, got); diff != "" {
				t.Errorf("min, median, p90, max (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{tt.text, tt.spreadText}, []string{q.String(), q.Spread()}); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
		})
	}
	var none Quantity
	if none.Known() || !math.IsNaN(none.Median()) || !math.IsNaN(none.Max()) || none.String() != "" {
		t.Errorf("the zero quantity is %q, median %v", none, none.Median())
	}
	sorted := Of("", 3, 1, 2)
	sorted.Median()
	if diff := cmp.Diff([]float64{3, 1, 2}, sorted.Rounds); diff != "" {
		t.Errorf("Median changes the order of the rounds:\n%s", diff)
	}
}

func TestTable(t *testing.T) {
	var table Table
	for _, r := range []Row{
		{What: "start", Value: Of("s", 0.5, 0.7, 0.6), Stock: Of("s", 3), Target: RatioAtMost(0.3)},
		{What: "slow start", Value: Of("s", 2), Stock: Of("s", 3), Target: RatioAtMost(0.3)},
		{What: "ratio unknown", Value: Of("s", 2), Target: RatioAtMost(0.3)},
		{What: "memory", Value: Of("MB", 219.6), Target: AtMost(220)},
		{What: "environments", Value: Of("", 63), Target: AtLeast(64)},
		{What: "keys", Value: Of("", 0, 0), Target: AtMost(0)},
		{What: "just a figure", Value: Of("µs", 12.34)},
	} {
		table.Add(r)
	}
	const want = `
WHAT           MEDIAN   RANGE /ROUNDS    STOCK  RATIO   TARGET
start          0.600 s  0.500..0.700 /3  3 s    0.200x  <= 0.300x  met
slow start     2 s                       3 s    0.667x  <= 0.300x  missed
ratio unknown  2 s                                      <= 0.300x
memory         220 MB                                   <= 220 MB  met
environments   63                                       >= 64      missed
keys           0        0..0 /2                         <= 0       met
just a figure  12.3 µs
`
	var b strings.Builder
	if _, err := table.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want[1:], b.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestParseMemory(t *testing.T) {
	const status = "Name:\taiopslab\nVmPeak:\t 1800000 kB\nVmRSS:\t  237780 kB\nRssAnon:\t  117032 kB\nRssFile:\t  120748 kB\n"
	const rollup = "00400000-7ffd ---p 00000000 00:00 0   [rollup]\nRss:   237780 kB\nPss:   130001 kB\nPss_Dirty:   117032 kB\n"
	m, err := parseMemory(status, rollup)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Memory{Resident: 237780 << 10, Private: 117032 << 10, Share: 130001 << 10}, m); diff != "" {
		t.Errorf("memory (-want +got):\n%s", diff)
	}
	if _, err := parseMemory("Name:\tkthreadd\n", rollup); err == nil || !strings.Contains(err.Error(), "VmRSS") {
		t.Errorf("of a kernel thread: %v, want an error that names VmRSS", err)
	}
}

func TestParseCPU(t *testing.T) {
	// The name of a process is free text.
	const stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 9000 0 12 0 143 19 7 8 20 0 11 0 12345 1800000000 59445"
	d, err := parseCPU(stat)
	if err != nil || d != 1620*time.Millisecond {
		t.Errorf("CPU %v, %v, want 1.62 s", d, err)
	}
	if _, err := parseCPU("42 (x) S 1"); err == nil {
		t.Error("a short line has no error")
	}
}

func TestParseMachine(t *testing.T) {
	m := parseMachine("processor\t: 0\nmodel name\t: Xeon @ 2.20GHz\n\nprocessor\t: 1\nmodel name\t: other\n",
		"MemTotal:       24600000 kB\nMemFree:  100 kB\nMemAvailable:   20000000 kB\n", "0.22 1.01 1.57 2/195 31986\n")
	want := Machine{CPU: "Xeon @ 2.20GHz", Memory: 24600000 << 10, Available: 20000000 << 10, Load: "0.22 1.01 1.57"}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("machine (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Machine{}, parseMachine("", "", "")); diff != "" {
		t.Errorf("without /proc (-want +got):\n%s", diff)
	}
}

func TestSymbolSizes(t *testing.T) {
	section := func(t elf.SectionType) *elf.Section { return &elf.Section{SectionHeader: elf.SectionHeader{Type: t}} }
	sections := []*elf.Section{section(elf.SHT_NULL), section(elf.SHT_PROGBITS), section(elf.SHT_NOBITS)}
	symbol := func(name string, section elf.SectionIndex, size uint64) elf.Symbol {
		return elf.Symbol{Name: name, Section: section, Size: size}
	}
	got := SymbolSizes([]elf.Symbol{
		symbol("k8s.io/api/core/v1.(*Pod).Marshal", 1, 100),
		symbol("k8s.io/api/core/v1.init.0", 1, 50),
		symbol("type:.eq.k8s.io/api/core/v1.PodSpec", 1, 30),
		symbol("k8s.io/api/core/v1..dict.x[go.shape.int]", 1, 20),
		symbol("runtime.mheap_", 2, 4096), // zeroed, not in the file
		symbol("libc_open", elf.SHN_UNDEF, 8),
		symbol("main.go", elf.SHN_ABS, 8),
		symbol("gopkg.in/yaml%2ev3.Marshal", 1, 7),
		symbol("slices.SortFunc[go.shape.[]k8s.io/api/core/v1.Pod,go.shape.struct { A int }]", 1, 11),
		symbol("runtime.pclntab", 1, 9000),
		symbol("go:string.*", 1, 500),
		symbol("main.main", 1, 13),
	}, sections)
	want := map[string]int64{
		"k8s.io/api/core/v1": 200, "gopkg.in/yaml.v3": 7, "slices": 11, "runtime": 9000, "": 500, "main": 13,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sizes (-want +got):\n%s", diff)
	}
}

func TestActionCPU(t *testing.T) {
	const graph = `[
	{"ID":0,"Mode":"link-install","Package":"example.com/cmd","CmdUser":5},
	{"ID":1,"Mode":"link","Package":"example.com/cmd","CmdReal":9000000000,"CmdUser":7000000000,"CmdSys":1000000000},
	{"ID":2,"Mode":"build","Package":"k8s.io/api/core/v1","CmdUser":2000000000,"CmdSys":500000000},
	{"ID":3,"Mode":"build","Package":"unsafe"},
	{"ID":4,"Mode":"nop","Package":""}
]`
	cpu, err := ActionCPU(strings.NewReader(graph))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]time.Duration{"link": 8 * time.Second, "k8s.io/api/core/v1": 2500 * time.Millisecond}
	if diff := cmp.Diff(want, cpu); diff != "" {
		t.Errorf("CPU (-want +got):\n%s", diff)
	}
	if _, err := ActionCPU(strings.NewReader("no JSON")); err == nil {
		t.Error("what is no JSON has no error")
	}
}

func TestCosts(t *testing.T) {
	modules := map[string]string{"a/x": "a", "a/y": "a", "b": "b"}
	got := Costs(map[string]int64{"a/x": 1, "a/y": 2, "b": 10, "unknown": 99},
		map[string]time.Duration{"a/x": time.Second, "a/y": time.Second}, func(pkg string) string { return modules[pkg] })
	want := []Cost{{Module: "b", Packages: 1, Size: 10}, {Module: "a", Packages: 2, Size: 3, CPU: 2 * time.Second}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("costs (-want +got):\n%s", diff)
	}
}
