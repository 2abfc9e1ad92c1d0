package tool

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/kit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOptions(t *testing.T) {
	for _, tt := range []struct {
		name, declaration string
		inOrder           bool
		digits            string
		args              string
		want, operands    string
		err               string
	}{
		{name: "cluster", declaration: "a b c", args: "-ab x -c", want: "a= b= c=", operands: "x"},
		{name: "value apart", declaration: "n:", args: "-n 5", want: "n=5"},
		{name: "value attached", declaration: "n:", args: "-n5", want: "n=5"},
		{name: "value at the end of a cluster", declaration: "x f:", args: "-xf a.tar", want: "x= f=a.tar"},
		{name: "long", declaration: "n:,lines q,quiet,silent", args: "--lines=3 --silent", want: "n=3 q="},
		{name: "long with value apart", declaration: "n:,lines", args: "--lines 3", want: "n=3"},
		{name: "long abbreviated", declaration: "n:,lines", args: "--li=3", want: "n=3"},
		{name: "long ambiguous", declaration: "a,color b,count", args: "--co", err: "option is ambiguous: co"},
		{name: "optional value", declaration: "i::,in-place", args: "-i.bak -i --in-place=x", want: "i=.bak i= i=x"},
		{name: "number", declaration: "n:", digits: "n", args: "-5", want: "n=5"},
		{name: "minus is an operand", declaration: "a", args: "- -a", want: "a=", operands: "-"},
		{name: "end of options", declaration: "a", args: "-- -a", operands: "-a"},
		{name: "in order", declaration: "a", inOrder: true, args: "-a cmd -b", want: "a=", operands: "cmd -b"},
		{name: "unknown", declaration: "a", args: "-z", err: "unrecognized option: z"},
		{name: "unknown long", declaration: "a", args: "--zap", err: "unrecognized option: zap"},
		{name: "no value", declaration: "n:", args: "-n", err: "option requires an argument: n"},
		{name: "no long value", declaration: "n:,lines", args: "--lines", err: "option requires an argument: lines"},
		{name: "unwanted value", declaration: "q,quiet", args: "--quiet=1", err: "option does not take an argument: quiet"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := parseGrammar(tt.declaration)
			g.inOrder, g.digits = tt.inOrder, tt.digits
			opts, operands, err := g.parse(strings.Fields(tt.args))
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Fatalf("error %v, want %s", err, tt.err)
				}
				return
			}
			var got []string
			for _, o := range opts.InOrder() {
				got = append(got, o.Name+"="+o.Value)
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.operands, strings.Join(operands, " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzOptions(f *testing.F) {
	f.Add("n:,lines q,quiet i::", "-n 5 --lines=3 -- x")
	f.Fuzz(func(t *testing.T, _, args string) {
		g := parseGrammar("n:,lines q,quiet i::,in-place x")
		g.digits = "n"
		list := strings.Split(args, " ")
		opts, operands, err := g.parse(list)
		if err == nil && len(opts.InOrder())+len(operands) > 2*len(args)+1 {
			t.Fatalf("%q gave more than it had", args)
		}
	})
}

// brokenPipe is an output nobody reads.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func run(ctx context.Context, env *kit.Env, f func(context.Context, *Call) error) (code int, stderr string) {
	var b strings.Builder
	env.Args, env.Stderr = []string{"t"}, &b
	if env.Stdout == nil {
		env.Stdout = &b
	}
	code = kit.Run(ctx, Tool{Name: "t", Run: f}.Program(), env)
	return code, b.String()
}

func TestBrokenPipeEndsATool(t *testing.T) {
	code, stderr := run(t.Context(), &kit.Env{Stdout: brokenPipe{}}, func(_ context.Context, c *Call) error {
		for {
			c.Out.Line("y")
		}
	})
	if code != 141 || stderr != "" {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
}

func TestSignalEndsATool(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(time.Millisecond, func() { cancel(kit.Killed{Signal: syscall.SIGTERM}) })
	code, stderr := run(ctx, &kit.Env{}, func(ctx context.Context, c *Call) error {
		c.Sleep(ctx, time.Hour)
		return nil
	})
	if code != 143 || stderr != "" {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
}

func TestUsage(t *testing.T) {
	var out, errs strings.Builder
	env := &kit.Env{Args: []string{"t", "-z"}, Stdout: &out, Stderr: &errs}
	tool := Tool{Name: "t", Options: "a", Args: "[-a]", Help: "Do things", UsageCode: 2}
	if code := kit.Run(t.Context(), tool.Program(), env); code != 2 {
		t.Errorf("exit code %d", code)
	}
	if want := "t: unrecognized option: z\n" + Version + " multi-call binary.\n\nUsage: t [-a]\n\nDo things\n"; errs.String() != want {
		t.Errorf("got %q", errs.String())
	}
	env.Args[1] = "--help"
	if code := kit.Run(t.Context(), tool.Program(), env); code != 0 || !strings.Contains(out.String(), "Usage: t") {
		t.Errorf("--help: exit code %d, %q", code, out.String())
	}
}

func TestNumbers(t *testing.T) {
	for in, want := range map[string]int64{"10": 10, "1k": 1024, "2K": 2048, "1M": 1 << 20, "3kB": 3000, "1GiB": 1 << 30, "2b": 1024} {
		if got, err := ParseSize(in); err != nil || got != want {
			t.Errorf("size %s: %d, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "x", "1x", "9999999999999999999", "99999999999E"} {
		if got, err := ParseSize(in); err == nil {
			t.Errorf("size %q: %d", in, got)
		}
	}
	for in, want := range map[string]time.Duration{"1": time.Second, ".5": time.Second / 2, "2m": 2 * time.Minute, "1d": 24 * time.Hour} {
		if got, err := ParseDuration(in); err != nil || got != want {
			t.Errorf("duration %s: %v, %v", in, got, err)
		}
	}
	for in, want := range map[int64]string{0: "0", 1023: "1023", 1024: "1.0K", 1536: "1.5K", 10 << 20: "10.0M"} {
		if got := HumanSize(in); got != want {
			t.Errorf("%d is %s, want %s", in, got, want)
		}
	}
}

func TestMeterSavesUp(t *testing.T) {
	cpu := &countingCPU{}
	m := Meter{CPU: cpu}
	for range 1000 {
		m.Spend(t.Context(), 10*time.Microsecond)
	}
	if cpu.calls != 5 || cpu.used != 10*time.Millisecond {
		t.Errorf("%d calls, %v", cpu.calls, cpu.used)
	}
}

type countingCPU struct {
	calls int
	used  time.Duration
}

func (c *countingCPU) Use(_ context.Context, d time.Duration) error {
	c.calls++
	c.used += d
	return nil
}

func (c *countingCPU) Info() kit.CPUInfo { return kit.CPUInfo{} }
