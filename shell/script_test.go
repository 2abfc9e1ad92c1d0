package shell

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/shell/internal/shelltest"
)

// scriptTest is a script and what comes of it.
type scriptTest struct {
	name   string
	script string
	stdin  string
	out    string
	err    string
	code   int
}

func runScripts(t *testing.T, shell string, tests []scriptTest) {
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := shelltest.New(t, Tools())
			got := m.RunWith(tt.stdin, shell, "-c", tt.script)
			want := shelltest.Result{Stdout: tt.out, Stderr: tt.err, Code: tt.code}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n%s", tt.script, diff)
			}
		})
	}
}

func TestLanguage(t *testing.T) {
	runScripts(t, "sh", []scriptTest{
		{name: "echo", script: "echo hello world", out: "hello world\n"},
		{name: "names of variables no script can use", script: `env a-b=1 sh -c 'env | grep a-b; echo ${a-b}'`, out: "a-b=1\nb\n"},
		{name: "variables", script: `a=1 b="x  y"; echo $a "$b" $b ${b}z`, out: "1 x  y x y x yz\n"},
		{name: "defaults", script: `echo ${a:-d} ${a-e} ${b:=f} $b ${b:+g} ${c+h}.`, out: "d e f f g .\n"},
		{name: "default is not evaluated in vain", script: `a=1; echo ${a:-$(echo no >&2)}`, out: "1\n"},
		{name: "trimming", script: `f=/a/b.tar.gz; echo ${f##*/} ${f#*/} ${f%.*} ${f%%.*} ${#f}`, out: "b.tar.gz a/b.tar.gz /a/b.tar /a/b 11\n"},
		{name: "substring and replacement", script: `s=hello; echo ${s:1:3} ${s/l/L} ${s//l/L}`, out: "ell heLlo heLLo\n"},
		{name: "arithmetic", script: `x=5; echo $((x*2+1)) $((x%3)) $((x<<2)) $((x>3?1:0)) $((010))`, out: "11 2 20 1 8\n"},
		{name: "division by zero", script: `echo $((1/0)); echo not`, err: "sh: divide by zero\n", code: 2},
		{name: "arithmetic assignment", script: `i=1; i=$((i+1)); : $((i+=3)); echo $i`, out: "5\n"},
		{name: "command substitution", script: "echo $(echo a; echo b) `echo c`", out: "a b c\n"},
		{name: "substitution keeps inner newlines when quoted", script: `echo "$(printf 'a\nb\n\n')"`, out: "a\nb\n"},
		{name: "if", script: `if false; then echo 1; elif true; then echo 2; else echo 3; fi`, out: "2\n"},
		{name: "for", script: `for i in a "b c" d; do echo "$i"; done`, out: "a\nb c\nd\n"},
		{name: "for over parameters", script: `set -- x y; for i; do echo $i; done`, out: "x\ny\n"},
		{name: "while and break", script: `i=0; while true; do i=$((i+1)); [ $i -eq 2 ] && continue; [ $i -gt 4 ] && break; echo $i; done`, out: "1\n3\n4\n"},
		{name: "until", script: `i=3; until [ $i = 0 ]; do echo $i; i=$((i-1)); done`, out: "3\n2\n1\n"},
		{name: "break of two loops", script: `for a in 1 2; do for b in 1 2; do echo $a$b; break 2; done; done; echo end`, out: "11\nend\n"},
		{name: "continue of two loops", script: `for a in 1 2; do for b in 1 2; do echo $a$b; continue 2; done; done`, out: "11\n21\n"},
		{name: "case", script: `case foo.txt in *.md) echo md;; *.txt|*.log) echo text;; *) echo other;; esac`, out: "text\n"},
		{name: "case with quotes", script: `case '*' in '*') echo star;; *) echo any;; esac`, out: "star\n"},
		{name: "functions", script: `f() { local x=in; echo "$1 $# $x"; return 3; }; x=out; f a b; echo $? $x`, out: "a 2 in\n3 out\n"},
		{name: "recursion", script: `f() { [ $1 -le 1 ] && echo 1 && return; echo $(( $1 * $(f $(($1-1))) )); }; f 5`, out: "120\n"},
		{name: "endless recursion ends", script: `f() { f; }; f`, err: "sh: f: maximum function nesting level exceeded (1000)\n", code: 2},
		{name: "subshell", script: `x=1; (x=2; echo $x; exit 4); echo $x $?`, out: "2\n1 4\n"},
		{name: "group", script: `{ echo a; echo b; } | { read x; read y; echo $y $x; }`, out: "b a\n"},
		{name: "and or", script: `true && echo a || echo b; false && echo c || echo d; ! true || echo e`, out: "a\nd\ne\n"},
		{name: "status", script: `false; echo $?; true; echo $?; (exit 42); echo $?`, out: "1\n0\n42\n"},
		{name: "exit", script: `echo a; exit 3; echo b`, out: "a\n", code: 3},
		{name: "here-document", script: "x=5\nread l <<EOF\nx is $x $((x+1)) $(echo s)\nEOF\necho $l", out: "x is 5 6 s\n"},
		{name: "quoted here-document", script: "while read -r l; do echo \"$l\"; done <<'EOF'\n$x \\n `b`\nEOF", out: "$x \\n `b`\n"},
		{name: "here-document without tabs", script: "while read -r l; do echo \"$l.\"; done <<-EOF\n\t\ta\n\tb\n\tEOF", out: "a.\nb.\n"},
		{name: "read splits", script: "echo 'a b  c d ' | { read x y z; echo \"$x|$y|$z\"; }", out: "a|b|c d\n"},
		{name: "read with IFS", script: "echo 'root:x::0' | { IFS=: read u p g r; echo \"$u|$p|$g|$r\"; }", out: "root|x||0\n"},
		{name: "read raw", script: `printf 'a\\tb\n' | { read -r x; echo "$x"; }; printf 'a\\tb\n' | { read x; echo "$x"; }`, out: "a\\tb\natb\n"},
		{name: "read loop", script: "printf '1 2\\n3 4\\n' | while read a b; do echo $((a+b)); done", out: "3\n7\n"},
		{name: "read without newline", script: "printf 'a\\nb' | while read x || [ -n \"$x\" ]; do echo $x; done", out: "a\nb\n"},
		{name: "redirections", script: `echo a >/tmp/f; echo b >>/tmp/f; while read x; do echo $x; done </tmp/f; echo c 2>&1 >/dev/null`, out: "a\nb\n"},
		{name: "swapped streams", script: `{ echo out; echo err >&2; } 3>&1 1>&2 2>&3 | { read x; echo "got $x"; }`, out: "got err\n", err: "out\n"},
		{name: "exec with redirection", script: `exec >/tmp/o; echo hidden; exec >&2; echo shown`, err: "shown\n"},
		{name: "descriptors", script: `exec 3</etc/hosts; read a b <&3; echo $b; exec 3<&-; read a <&3`, out: "localhost\n", err: "sh: 3: bad file descriptor\n", code: 1},
		{name: "descriptor in a variable", script: `exec {fd}>/tmp/v; echo x >&$fd; exec {fd}>&-; read v </tmp/v; echo $v`, out: "x\n"},
		{name: "cannot create", script: `echo a > /no/such; echo $?`, out: "1\n", err: "sh: can't create /no/such: nonexistent directory\n"},
		{name: "cannot open", script: `read a < /nofile`, err: "sh: can't open /nofile: no such file\n", code: 1},
		{name: "not found", script: `nosuch -x; echo $?`, out: "127\n", err: "sh: nosuch: not found\n"},
		{name: "not found by path", script: `/bin/nosuch`, err: "sh: /bin/nosuch: not found\n", code: 127},
		{name: "not executable", script: `/etc/passwd`, err: "sh: /etc/passwd: Permission denied\n", code: 126},
		{name: "glob", script: `cd /tmp; : >a.x; : >b.x; : >c.y; echo *.x *.z "*.x" [ab].x ?.y`, out: "a.x b.x *.z *.x a.x b.x c.y\n"},
		{name: "no glob", script: `set -f; cd /etc; echo p*d`, out: "p*d\n"},
		{name: "braces are no matter of ash", script: `echo {a,b} {1..3}`, out: "{a,b} {1..3}\n"},
		{name: "tilde", script: `echo ~ ~/x ~root ~nobody ~nosuch "~"`, out: "/root /root/x /root / ~nosuch ~\n"},
		{name: "errexit", script: `set -e; true; false || true; if false; then :; fi; ! true; echo here; false; echo not`, out: "here\n", code: 1},
		{name: "errexit in function", script: `set -e; f() { false; echo not; }; f; echo not`, code: 1},
		{name: "errexit guarded function", script: `set -e; f() { false; echo yes; }; f || true; echo end`, out: "yes\nend\n"},
		{name: "nounset", script: `set -u; echo $nope; echo not`, err: "sh: nope: parameter not set\n", code: 2},
		{name: "nounset with default", script: `set -u; echo ${nope:-ok} ${1-one}`, out: "ok one\n"},
		{name: "required parameter", script: `echo ${X:?must be set}; echo not`, err: "sh: X: must be set\n", code: 2},
		{name: "xtrace", script: `set -x; a=1; echo "b c" $a`, out: "b c 1\n", err: "+ a=1\n+ echo 'b c' 1\n"},
		{name: "pipefail", script: `false | true; echo $?; set -o pipefail; false | true; echo $?`, out: "0\n1\n"},
		{name: "status of assignment", script: `a=$(false); echo $?; local_x=1; echo $?`, out: "1\n0\n"},
		{name: "shift", script: `set -- a b c; shift; echo $1 $#; shift 2; echo $#`, out: "b 2\n0\n"},
		{name: "parameters", script: `set -- "a b" c; printf '<%s>' "$@"; printf '<%s>' "$*"; printf '<%s>' $@; echo`, out: "<a b><c><a b c><a><b><c>\n"},
		{name: "parameters if there are any", script: `f() { echo $#; }; set -- "a b" c; f ${1+"$@"}; set --; f ${1+"$@"}; f ${x:-"a b"} ${x-"$y"}`, out: "2\n0\n2\n"},
		{name: "eval", script: `x='echo $y'; y=5; eval "$x"; eval "z=7"; echo $z`, out: "5\n7\n"},
		{name: "dot", script: `echo 'v=9; echo $1; return 2; echo no' >/tmp/lib; . /tmp/lib arg; echo $v $?`, out: "arg\n9 2\n"},
		{name: "dot of nothing ends ash", script: `. /nofile; echo not`, err: "sh: .: can't open '/nofile': No such file or directory\n", code: 2},
		{name: "alias", script: "alias hi='echo hello'\nhi you", out: "hello you\n"},
		{name: "export", script: `a=1; export a; b=2; export c=3; sh -c 'echo $a,$b,$c'`, out: "1,,3\n"},
		{name: "assignment for one command", script: `a=1 sh -c 'echo $a'; echo ".$a"`, out: "1\n.\n"},
		{name: "unset", script: `a=1; unset a; echo ".$a."; f() { :; }; unset -f f; f`, out: "..\n", err: "sh: f: not found\n", code: 127},
		{name: "readonly", script: `readonly a=1; a=2; echo not`, err: "sh: a: is read only\n", code: 2},
		{name: "getopts", script: `set -- -a -bval -c x rest; while getopts ab:c: o; do echo "$o=$OPTARG"; done; shift $((OPTIND-1)); echo $1`, out: "a=\nb=val\nc=x\nrest\n"},
		{name: "bad option", script: `set -- -z; getopts a o; echo $o`, out: "?\n", err: "sh: getopts: Illegal option -z\n"},
		{name: "command -v", script: `command -v sh; command -v cd; command -v nosuch; echo $?`, out: "/bin/sh\ncd\n127\n"},
		{name: "type", script: `f() { :; }; type sh cd f nosuch`, out: "sh is /bin/sh\ncd is a shell builtin\nf is a function\nnosuch: not found\n", code: 127},
		{name: "cd and pwd", script: `cd /tmp; pwd; cd - ; pwd; cd; pwd; cd /nosuch`, out: "/tmp\n/\n/\n/root\n", err: "sh: cd: can't cd to /nosuch: No such file or directory\n", code: 2},
		{name: "dollar zero and parameters of -c", script: `echo $0`, out: "sh\n"},
		{name: "own process", script: `[ $$ -gt 0 ] && (echo $$) | { read p; [ $p = $$ ] && echo same; }`, out: "same\n"},
		{name: "syntax error", script: "echo a\nif true; then echo b", out: "a\n", err: "sh: syntax error: unexpected end of file (`if` statement must end with `fi`)\n", code: 2},
		{name: "unterminated quote", script: "echo 'a", err: "sh: syntax error: unterminated quoted string\n", code: 2},
		{name: "trap on exit", script: `trap 'echo bye $?' EXIT; echo hi; exit 3`, out: "hi\nbye 3\n", code: 3},
		{name: "trap of a subshell", script: `(trap 'echo sub' EXIT; :); echo main`, out: "sub\nmain\n"},
		{name: "trap is listed and reset", script: `trap 'echo x' TERM; trap; trap - TERM; trap`, out: "trap -- 'echo x' TERM\n"},
		{name: "signal to itself", script: `trap 'echo caught' USR1; kill -USR1 $$; sleep 0.05; echo after`, out: "caught\nafter\n"},
		{name: "background and wait", script: `(sleep 0.02; echo late) & echo now; wait; echo done`, out: "now\nlate\ndone\n"},
		{name: "status of a job", script: `(exit 7) & wait $!; echo $?; wait 99999; echo $?`, out: "7\n127\n"},
		{name: "kill a job", script: `sleep 100 & kill $!; wait $!; echo $?`, out: "143\n"},
		{name: "kill a compound job", script: `(while :; do sleep 0.01; done) & p=$!; kill -9 $p; wait $p; echo $?`, out: "137\n"},
		{name: "a job with a trap", script: `(trap 'echo term; exit 5' TERM; while :; do sleep 0.01; done) & p=$!; sleep 0.05; kill $p; wait $p; echo $?`, out: "term\n5\n"},
		{name: "jobs", script: `sleep 100 & jobs; kill %1; wait %1; echo $?`, out: "[1]+  Running                sleep 100\n143\n"},
		{name: "kill of nobody", script: `kill 99999`, err: "sh: kill: can't kill pid 99999: No such process\n", code: 1},
		{name: "kill -0", script: `sleep 100 & kill -0 $! && echo alive; kill $!`, out: "alive\n"},
		{name: "exec replaces the shell", script: `exec sh -c 'echo replaced; exit 6'; echo not`, out: "replaced\n", code: 6},
		{name: "exec of nothing", script: `exec nosuch; echo not`, err: "sh: nosuch: not found\n", code: 127},
		{name: "script with interpreter", script: `printf '#!/bin/sh\necho "$0 $1"\n' >/tmp/s; /tmp/s; echo $?`, out: "126\n", err: "sh: /tmp/s: Permission denied\n"},
		{name: "broken pipe", script: `while :; do echo y; done | { read a; echo $a; }; echo $?`, out: "y\n0\n"},
		{name: "standard input of a script", script: `read a; echo "<$a>"; read b; echo "<$b>"`, stdin: "1\n2\n", out: "<1>\n<2>\n"},
		{name: "input is shared", script: `read a; sh -c 'read b; echo $b'; read c; echo $a $c`, stdin: "1\n2\n3\n", out: "2\n1 3\n"},
		{name: "no input in the background", script: `sh -c 'read x; echo "<$x>"' & wait`, stdin: "data\n", out: "<>\n"},
		{name: "umask", script: `umask; umask 077; umask; echo x >/tmp/u; stat -c %a /tmp/u`, out: "0022\n0077\n600\n"},
		{name: "comments", script: "# one\necho a # two\n#three", out: "a\n"},
		{name: "line continuation", script: "echo a \\\n b", out: "a b\n"},
		{name: "special variables", script: `f() { echo "$#:$*"; }; f 1 2 3; echo "${#}"`, out: "3:1 2 3\n0\n"},
		{name: "nested quotes", script: `echo "a $(echo "b $(echo "c")")"`, out: "a b c\n"},
		{name: "unquoted null", script: `x=; set -- $x "$x"; echo $#`, out: "1\n"},
		{name: "IFS splitting", script: `IFS=,; x=a,b,,c; set -- $x; echo $#; IFS=' '; echo "$3."`, out: "4\n.\n"},
		{name: "time", script: `time true 2>/dev/null; echo ok`, out: "ok\n", err: "real\t0m 0.00s\nuser\t0m 0.00s\nsys\t0m 0.00s\n"},
		{name: "printf -v", script: `printf -v x '%03d' 7; echo $x`, out: "007\n"},
		{name: "local in nested calls", script: `a() { local v=1; b; echo $v; }; b() { v=2; }; a; echo ".$v"`, out: "2\n.\n"},
		{name: "wait -n", script: `sleep 100 & p=$!; (exit 3) & wait -n; echo $?; kill $p`, out: "3\n"},
		{name: "builtin and unalias", script: `builtin cd /tmp && pwd; builtin nosuch; alias x=y; unalias x; alias; unalias nope`, out: "/tmp\n", err: "sh: builtin: nosuch: not a shell builtin\nsh: unalias: nope not found\n", code: 1},
		{name: "limits and times", script: `ulimit -n; ulimit -a | wc -l; times | wc -l; help | head -1; hash; bg`, out: "1048576\n10\n2\nBuilt-in commands:\n", err: "sh: job control not enabled\n", code: 1},
		{name: "dot in path", script: `mkdir /lib; echo 'echo lib' >/lib/x; PATH=/lib:$PATH; . x`, out: "lib\n"},
		{name: "options are listed", script: `set -e; set -o | grep errexit; set +o | grep -c '^set'; echo $-`, out: "errexit        \ton\n22\nce\n"},
		{name: "variables are listed", script: `a="it's"; set | grep ^a=; export B=1; export -p | grep B=; readonly C; unset -v a; echo ".$a"`, out: "a='it'\"'\"'s'\nexport B='1'\n.\n"},
		{name: "export by name", script: `e=export; $e X=1; sh -c 'echo $X'; command export Y=2; sh -c 'echo $Y'; export -n X; sh -c 'echo ".$X"'; $e 1x=2`, out: "1\n2\n.\n", err: "sh: export: 1x: bad variable name\n", code: 2},
		{name: "trap by number", script: `trap 'echo bye' 0; trap 'echo usr' 10; kill -10 $$; sleep 0.02; trap 10; trap`, out: "usr\ntrap -- 'echo bye' EXIT\nbye\n"},
		{name: "file as substitution", script: `echo content >/tmp/f; x=$(</tmp/f); echo $x; y=$(</nofile)`, out: "content\n", err: "sh: can't open /nofile: no such file\n", code: 1},
		{name: "closed output", script: `echo x >&-; echo $?; echo y`, out: "1\ny\n", err: "echo: write error: Bad file descriptor\n"},
		{name: "noclobber", script: `set -C; echo a >/tmp/n; echo b >/tmp/n; echo c >|/tmp/n; cat /tmp/n`, out: "c\n", err: "sh: can't create /tmp/n: File exists\n"},
		{name: "read and write", script: `echo abc >/tmp/rw; exec 4<>/tmp/rw; read x <&4; echo $x; echo more >&4; cat /tmp/rw`, out: "abc\nabc\nmore\n"},
		{name: "bad descriptors", script: `echo x >&7; echo y 9>&- ; cat <&8`, out: "y\n", err: "sh: 7: bad file descriptor\nsh: 8: bad file descriptor\n", code: 1},
		{name: "bad numbers", script: `f() { return x; }; f; echo $?; shift 5; exit y`, out: "2\n", err: "sh: return: Illegal number: x\nsh: shift: can't shift that many\nsh: exit: Illegal number: y\n", code: 2},
		{name: "illegal options", script: `set -Z; command -z x; read -z; local x`, err: "sh: set: illegal option -Z\nsh: command: Illegal option -z\nsh: read: illegal option -z\nsh: local: not in a function\n", code: 2},
		{name: "quiet getopts", script: `set -- -x -b; while getopts :b: o; do echo "$o $OPTARG"; done`, out: "? x\n: b\n"},
		{name: "getopts wants an argument", script: `set -- -b; getopts b: o; echo $o`, out: "?\n", err: "sh: getopts: No arg for -b option\n"},
		{name: "here-document in a loop", script: "for i in 1 2; do cat <<E\nn$i\nE\ndone", out: "n1\nn2\n"},
		{name: "pipes of functions", script: `up() { tr a-z A-Z; }; echo x | up | { read y; echo "<$y>"; }`, out: "<X>\n"},
		{name: "long pipeline", script: `seq 1000 | sort -rn | head -500 | tail -1 | cat | cat`, out: "501\n"},
		{name: "kill in words", script: `sleep 100 & kill -s KILL $!; wait $!; echo $?; kill -l 137; kill -FOO 1; kill abc`, out: "137\nKILL\n", err: "sh: kill: bad signal name 'FOO'\nsh: kill: bad pid 'abc'\n", code: 1},
		{name: "wait for several", script: `(exit 1) & a=$!; (exit 2) & wait $a $!; echo $?; wait; echo $?`, out: "2\n0\n"},
		{name: "sleep infinity and trap", script: `trap : TERM; sleep infinity & p=$!; (sleep 0.05; kill $$) & wait $p; echo $?; kill $p`, out: "143\n"},
		{name: "dev names", script: `echo out >/dev/stdout; echo err >/dev/stderr; echo in | cat /dev/stdin; echo x | tee /dev/stderr >/dev/null; echo y >/dev/fd/1`, out: "out\nin\ny\n", err: "err\nx\n"},
		{name: "double bracket", script: `[[ abc == a* && 5 -gt 3 ]] && echo y; [[ abc =~ ^a(.)c$ ]] && echo ${BASH_REMATCH[1]}`, out: "y\nb\n"},
	})
}
