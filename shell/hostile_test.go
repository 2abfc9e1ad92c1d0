package shell

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/shelltest"
)

// deep is a nesting that no parser has the stack for.
const deep = 1_000_000

// deepInput is how much of a script a shell is given to read, which it does byte by byte.
const deepInput = 200_000

func nested(open, inner, shut string) string {
	return strings.Repeat(open, deep) + inner + strings.Repeat(shut, deep)
}

// deepScripts are what a shell reads by calling itself for each level, or would walk so.
var deepScripts = map[string]string{
	"parentheses":        nested("(", "echo", ")"),
	"blocks":             nested("{ ", "echo;", " }"),
	"substitution":       "echo " + nested("$(", "echo", ")"),
	"quoted":             "echo " + nested(`"$(`, "echo", `)"`),
	"backquotes":         "echo " + strings.Repeat("`", deep/10),
	"defaults":           "echo " + nested("${a:-", "x", "}"),
	"arithmetic":         "echo $((" + nested("(", "1", ")") + "))",
	"arithmetic command": "((" + nested("(", "1", ")") + "))",
	"minus":              "echo $((" + strings.Repeat("- ", deep) + "1))",
	"not":                "echo $((" + strings.Repeat("!", deep) + "1))",
	"sum":                "echo $((1" + strings.Repeat("+1", deep) + "))",
	"power":              "echo $((1" + strings.Repeat("**1", deep) + "))",
	"question":           "echo $((1" + strings.Repeat("?1:1", deep) + "))",
	"assignment":         "echo $((a" + strings.Repeat("=a", deep) + "))",
	"index":              "echo $((" + nested("a[", "1", "]") + "))",
	"not in test":        "[[ " + strings.Repeat("! ", deep) + "a ]]",
	"group in test":      "[[ " + nested("( ", "a", " )") + " ]]",
	"and in test":        "[[ a" + strings.Repeat(" && a", deep) + " ]]",
	"and":                "true" + strings.Repeat(" && true", deep),
	"pipe":               "true" + strings.Repeat(" | true", deep),
	"bang":               strings.Repeat("! ", deep) + "true",
	"if":                 nested("if true; then ", "echo", "; fi"),
	"elif":               "if false; then a; " + strings.Repeat("elif false; then a; ", deep/10) + "fi",
	"while":              nested("while false; do ", "echo", "; done"),
	"case":               nested("case a in a) ", "echo", ";; esac"),
	"function":           strings.Repeat("a() ", deep) + "{ echo; }",
	"time":               strings.Repeat("time ", deep) + "true",
	"process":            "cat " + nested("<(", "echo", ")"),
	"here-string":        nested("cat <<<$(", "echo", ")"),
	"array":              nested("a=(", "x", ")"),
	"braces":             "echo " + nested("{a,", "a", "}"),
	"extended pattern":   "shopt -s extglob; case a in " + nested("@(", "a", ")") + ") ;; esac",
	"trimmed":            "shopt -s extglob; x=a; echo ${x#" + nested("@(", "a", ")") + "}",
	"let":                "let 'a=" + nested("(", "1", ")") + "'",
	"eval":               "eval '" + nested("(", "echo", ")") + "'",
	"text of a variable": "x='" + nested("(", "1", ")") + "'; echo $((x)); [[ $x -eq 1 ]]; declare -i y; y=$x; a[$x]=1",
	"alias":              "shopt -s expand_aliases; alias a='" + nested("(", "echo", ")") + "'\na\n",
	"trap":               "trap '" + nested("(", "echo", ")") + "' EXIT",
	"jobs":               nested("(", "echo", ")") + " & wait",
}

// TestDeepScripts wants an answer to each, as a command, as a file and as input. That the test goes on
// is the point: a stack that is used up ends the process, and nothing can recover from it.
func TestDeepScripts(t *testing.T) {
	for name, script := range deepScripts {
		t.Run(name, func(t *testing.T) {
			m := shelltest.New(t, Tools())
			unharmed(t, "command", m.Run("bash", "-c", script))
			unharmed(t, "input", m.RunWith(script[:min(len(script), deepInput)]+"\n", "sh"))
		})
	}
}

// unharmed checks that a program ended by itself.
func unharmed(t *testing.T, what string, r shelltest.Result) {
	t.Helper()
	if r.Code == kit.ExitPanic && strings.Contains(r.Stderr, "panic:") || r.Code > 128 {
		t.Errorf("%s: code %d, %.500s", what, r.Code, r.Stderr)
	}
}

// TestDeepArguments gives tools expressions that nest deep, as arguments and in files.
func TestDeepArguments(t *testing.T) {
	repeat := func(args ...string) func(before, after []string) []string {
		return func(before, after []string) []string {
			list := before
			for range deep {
				list = append(list, args...)
			}
			return append(list, after...)
		}
	}
	for name, args := range map[string][]string{
		"awk parentheses":   {"awk", "BEGIN { print " + nested("(", "1", ")") + " }"},
		"awk not":           {"awk", "BEGIN { print " + strings.Repeat("!", deep) + "1 }"},
		"awk fields":        {"awk", "BEGIN { print " + strings.Repeat("$", deep) + "1 }"},
		"awk minus":         {"awk", "BEGIN { print " + strings.Repeat("- ", deep) + "1 }"},
		"awk sum":           {"awk", "BEGIN { print 1" + strings.Repeat("+1", 60_000) + " }"},
		"awk power":         {"awk", "BEGIN { print 1" + strings.Repeat("^1", 60_000) + " }"},
		"awk strings":       {"awk", "BEGIN { print " + strings.Repeat("1 ", 60_000) + " }"},
		"awk assignment":    {"awk", "BEGIN { a" + strings.Repeat("=a", 60_000) + " }"},
		"awk question":      {"awk", "BEGIN { print 1" + strings.Repeat("?1:1", 30_000) + " }"},
		"awk if":            {"awk", "BEGIN { " + strings.Repeat("if(1)", 25_000) + "print }"},
		"awk else":          {"awk", "BEGIN { " + strings.Repeat("if(1);else ", 11_000) + "print }"},
		"awk for":           {"awk", "BEGIN { " + strings.Repeat("for(;;)", 18_000) + "exit }"},
		"awk blocks":        {"awk", "BEGIN " + nested("{", "print", "}")},
		"awk expression":    {"awk", "/" + nested("(", "a", ")") + "/"},
		"awk text":          {"awk", `BEGIN { for (i = 0; i < 20; i++) s = s "(((((((((((((((((((((((((((((((((((((((("; for (i = 0; i < 11; i++) s = s s; x ~ s }`},
		"awk recursion":     {"awk", "function f(n) { return f(n+1)+1 } BEGIN { print f(0) }"},
		"sed blocks":        {"sed", nested("{", "p", "}")},
		"sed expression":    {"sed", "-E", "s/" + nested("(", "a", ")") + "//"},
		"sed stars":         {"sed", "s/a" + strings.Repeat("*", deep) + "//"},
		"grep":              {"grep", "-E", nested("(", "a", ")")},
		"grep basic":        {"grep", nested(`\(`, "a", `\)`)},
		"grep perl":         {"grep", "-P", nested("(?=", "a", ")")},
		"grep atomic":       {"grep", "-P", nested("(?>", "a", ")")},
		"grep stars":        {"grep", "-E", "a" + strings.Repeat("*", deep)},
		"grep intervals":    {"grep", "-E", "a" + strings.Repeat("{1}", deep)},
		"grep alternatives": {"grep", "-E", "a" + strings.Repeat("|a", deep)},
		"grep lazy":         {"grep", "-P", "(?<!x)" + strings.Repeat("a*?", 10_000) + `\1`},
		"expr":              repeat("(")([]string{"expr"}, []string{"1"}),
		"expr or":           repeat("|", "0")([]string{"expr", "0"}, nil),
		"test group":        repeat("(")([]string{"test"}, []string{"a", "b", "c"}),
		"test not":          repeat("!")([]string{"test"}, []string{"a"}),
		"[ not":             repeat("!")([]string{"["}, []string{"a", "]"}),
		"test and":          repeat("-a", "x")([]string{"test", "x"}, nil),
		"find group":        repeat("(")([]string{"find", "/"}, nil),
		"find not":          repeat("!")([]string{"find", "/"}, []string{"-name", "x"}),
		"find comma":        repeat(",", "-true")([]string{"find", "/", "-true"}, nil),
		"find or":           repeat("-o", "-true")([]string{"find", "/", "-true"}, nil),
		"find regex":        {"find", "/", "-regex", nested(`\(`, "a", `\)`)},
		"find name":         {"find", "/", "-name", nested("@(", "a", ")")},
		"find not name":     {"find", "/", "-name", strings.Repeat("!(a", 40) + strings.Repeat(")", 40)},
		"printf":            {"printf", strings.Repeat("%d", deep)},
		"jq parentheses":    {"jq", "-n", nested("(", "1", ")")},
		"jq arrays":         {"jq", "-n", nested("[", "1", "]")},
		"jq minus":          {"jq", "-n", strings.Repeat("-", deep) + "1"},
		"jq pipe":           {"jq", "-n", "1" + strings.Repeat("|.", 60_000)},
		"jq sum":            {"jq", "-n", "1" + strings.Repeat("+1", 60_000)},
		"jq try":            {"jq", "-n", strings.Repeat("try ", 30_000) + "1"},
		"jq if":             {"jq", "-n", strings.Repeat("if ", 40_000)},
		"jq def":            {"jq", "-n", strings.Repeat("def f:", 20_000)},
		"jq strings":        {"jq", "-n", strings.Repeat(`"\(`, 40_000)},
		"jq deep value":     {"jq", "-n", "reduce range(100000) as $i (0; [.])"},
		"jq arguments":      {"jq", "-n", "--argjson", "a", nested("[", "1", "]"), "$a"},
		"curl globs":        {"curl", nested("{", "a", "}")},
		"date":              {"date", "+" + strings.Repeat("%", deep)},
		"tr":                {"tr", nested("[", "a", "]"), "b"},
		"sort":              {"sort", "-k" + strings.Repeat("1,", deep)},
	} {
		t.Run(name, func(t *testing.T) {
			m := shelltest.New(t, Workstation())
			unharmed(t, "argument", m.RunWith("a\n"+strings.Repeat("a", 3000)+"\n", args...))
			for option, tool := range map[string]string{"-f": "awk sed grep jq"} {
				if strings.Contains(tool, args[0]) && len(args) > 1 {
					m.Write("/tmp/program", args[len(args)-1])
					unharmed(t, "file", m.RunWith("a\n", args[0], option, "/tmp/program"))
				}
			}
		})
	}
	t.Run("jq input", func(t *testing.T) {
		unharmed(t, "input", shelltest.New(t, Workstation()).RunWith(nested("[", "1", "]"), "jq", "."))
	})
}

// TestEndlessRecursion runs what calls itself for ever.
func TestEndlessRecursion(t *testing.T) {
	for name, script := range map[string]string{
		"function":            "f() { f; }; f",
		"two functions":       "f() { g; }; g() { f; }; f",
		"function in a word":  "f() { echo $(f); }; f",
		"deep in a word":      "f() { echo " + strings.Repeat("${a:-", 300) + "$(f)" + strings.Repeat("}", 300) + "; }; f",
		"eval":                `f='eval "$f"'; eval "$f"`,
		"file":                "echo '. /tmp/a' > /tmp/a; . /tmp/a",
		"condition":           "f() { if f; then :; fi; }; f",
		"subshell":            "f() { ( f ); }; f",
		"alias":               "shopt -s expand_aliases; alias a=b; alias b=a\na\n",
		"arithmetic variable": "a=b; b=a; echo $((a)); a='a+1'; echo $((a))",
		"name reference":      "declare -n a=b; declare -n b=a; echo $a; a=1",
		"exit trap":           "trap 'exit' EXIT; exit",
		"error trap":          "trap 'false' ERR; false",
		"indirect":            "a=a; echo ${!a}",
		"script":              "printf '#!/tmp/s\\n' > /tmp/s; chmod +x /tmp/s; /tmp/s",
	} {
		for _, sh := range []string{"sh", "bash"} {
			t.Run(name+"/"+sh, func(t *testing.T) {
				unharmed(t, script, shelltest.New(t, Tools()).Run(sh, "-c", script))
			})
		}
	}
}

// TestPatternsThatExplode match within bounds, or not at all.
func TestPatternsThatExplode(t *testing.T) {
	long := strings.Repeat("a", 100_000)
	for _, cmd := range []string{
		`grep -P '^(a+)+$'`, `grep -E '^(a|aa)+\1$'`, `grep '\(a*\)*\1b'`, `grep -P '(a*)*\1b'`,
		`grep -E '` + strings.Repeat("a*", 5000) + `b'`, `grep -E '(a{1,200}){1,5}b'`, `sed -E 's/(a*)*(b)\1/x/g'`,
		`awk '/(a*)*b/'`, `sh -c 'read x; case $x in ` + strings.Repeat("*a", 100) + `*b) ;; esac'`,
		`bash -c 'shopt -s extglob; read x; case $x in !(b)!(b)!(b)!(b)!(b)c) ;; esac'`,
		`bash -c 'read x; [[ $x =~ ^(a+)+b$ ]]'`, `bash -c 'read x; echo ${x//a*a*a*b/} | wc -c'`,
	} {
		t.Run(fmt.Sprintf("%.40s", cmd), func(t *testing.T) {
			unharmed(t, cmd, shelltest.New(t, Tools()).RunWith(long+"\n", "bash", "-c", cmd))
		})
	}
}

// countingCPU is a processor that counts.
type countingCPU struct{ used, burned atomic.Int64 }

func (c *countingCPU) Use(ctx context.Context, d time.Duration) error {
	c.used.Add(int64(d))
	return ctx.Err()
}

func (c *countingCPU) Burn(ctx context.Context, d time.Duration) error {
	c.burned.Add(int64(d))
	return ctx.Err()
}
func (*countingCPU) Info() kit.CPUInfo { return kit.CPUInfo{Cores: 4} }

// TestBusyLoopsUseTime wants every loop to state what it uses, of the model and of the machine, and to
// end when it is killed.
func TestBusyLoopsUseTime(t *testing.T) {
	for name, args := range map[string][]string{
		"shell":    {"sh", "-c", "while :; do :; done"},
		"awk":      {"awk", "BEGIN { while (1) i++ }"},
		"awk pipe": {"sh", "-c", "awk 'BEGIN { for (;;) { if (i++ < 0) print } }' | cat"},
		"yes":      {"sh", "-c", "yes > /dev/null"},
		"sed":      {"sh", "-c", "echo a | sed ':a; s/a/a/; ta'"},
	} {
		t.Run(name, func(t *testing.T) {
			cpu := &countingCPU{}
			m := shelltest.New(t, Tools())
			m.CPU = cpu
			p, err := m.Procs.Start(context.Background(), m.Env(args...))
			if err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(shelltest.Patience); cpu.used.Load() == 0 || cpu.burned.Load() == 0; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("used %v, burned %v", time.Duration(cpu.used.Load()), time.Duration(cpu.burned.Load()))
				}
			}
			if err := m.Procs.Signal(p.PID(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if code := p.Wait(); code != 137 {
				t.Errorf("code %d, want 137", code)
			}
		})
	}
}
