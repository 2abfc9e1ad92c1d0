package cli_test

import (
	"flag"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/aiopslab/aiopslab/test/hostile"
)

var (
	hostileAll  = flag.Bool("hostile", false, "try all of test/hostile, not only the part for every test")
	hostileLab  = flag.String("hostile.lab", "", "try them on this `program`, not on the one under test")
	hostileOnly = flag.String("hostile.class", "", "try only this `class`")
)

// hostileAgent is the agent that tries test/hostile.
func hostileAgent() int {
	if err := hostile.Agent(os.Args[1], os.Args[2], os.Stdin, os.Stdout); err != nil {
		return 1
	}
	return 0
}

// TestHostile tries what an enemy would: a part of test/hostile, or all of it with -hostile.
func TestHostile(t *testing.T) {
	t.Parallel()
	tricks, err := hostile.Tricks()
	if err != nil {
		t.Fatal(err)
	}
	tricks = slices.DeleteFunc(tricks, func(trick *hostile.Trick) bool {
		return !*hostileAll && !trick.Part || *hostileOnly != "" && trick.Class() != *hostileOnly
	})
	program := *hostileLab
	if program == "" {
		if program, err = exec.LookPath("aiopslab"); err != nil {
			t.Fatal(err)
		}
	}
	agent, err := exec.LookPath("hostile-agent")
	if err != nil {
		t.Fatal(err)
	}
	results, err := hostile.Run(t.Context(), hostile.Options{Lab: program, Agent: agent, Dir: t.TempDir(), Progress: func(r hostile.Result) {
		t.Logf("%-8s held %-5v %5d MB  %s: %s", r.Class(), r.Held, r.Peak>>20, r.Name, r.Why)
		if !r.Held {
			t.Fail()
		}
	}}, tricks)
	hostile.Print(os.Stdout, results)
	if err != nil {
		t.Fatal(err)
	}
}
