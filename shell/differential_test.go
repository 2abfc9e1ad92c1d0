package shell

import (
	"bytes"
	"os/exec"
	"syscall"
	"testing"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/shelltest"
)

// differential are scripts that must do under our bash what they do under the real one. They use
// nothing of the machine but the shell itself and tools that are alike everywhere.
var differential = []string{
	// Words.
	`x='a b'; set -- $x "$x"; echo $#; for w; do echo "<$w>"; done`,
	`IFS=:; x=a:b::c; set -- $x; echo $#; printf '[%s]' "$@"; echo "$*"`,
	`set -- "a b" c; printf '[%s]' $@ "$@" $* "$*"; echo`,
	`x=; echo "${x:-d}${x-e}${y-f}${y:+g}${x+h}"; echo ${z:=i} $z`,
	`f=/a/b.tar.gz; echo ${f##*/} ${f%.*} ${f%%.*} ${f#/} ${f/a/x} ${f//./_} ${#f}`,
	`s=hello; echo ${s:1} ${s:1:2} ${s: -3:2} ${s/l/L}`,
	`echo {a,b{1,2},c}x {1..10..3} {c..a} {01..03} {}`,
	`echo "a\"b\$c\\d" 'e\f' g\ h $'i\x41\n' "$(echo "nested $(echo deep)")"`,
	`echo $((1+2*3)) $((2**8%7)) $((5>3?10:20)) $((0x1f)) $((010)) $((-5/2)) $((i+=3)) $i`,
	`a=5; echo $((a++ + ++a)) $a $((a<<2|1)) $((~a)) $((!a)) $((a,1))`,
	`unset x; echo "${x:-$(echo sub)}"; echo ${x:-$(echo a b)} "${x:-a  b}"`,
	// Pipes and redirections.
	`printf '3\n1\n2\n' | sort | head -2 | tail -1`,
	`false | true; echo $?; true | false; echo $? ${PIPESTATUS[0]}`,
	`set -o pipefail; false | true; echo $?; (exit 3) | (exit 4) | true; echo $?`,
	`! true; echo $?; ! false | true; echo $?`,
	`{ echo out; echo err >&2; } 2>&1 >/dev/null | cat`,
	`exec 3>&1; { echo a >&3; echo b; } >/dev/null; exec 3>&-; echo c`,
	`echo x | while read l; do v=$l; done; echo "<$v>"`,
	`printf 'a b c\nd e\n' | while read x y; do echo "$y/$x"; done`,
	`printf 'no newline' | { read x; echo "$? $x"; }; printf 'a\\b\n' | { read x; echo $x; }; printf 'a\\b\n' | { read -r x; echo "$x"; }`,
	`IFS=, read -r a b c <<<"1,2,3,4"; echo "$a|$b|$c"`,
	"cat <<E\n$((1+1)) `echo sub` \\$x\nE",
	"cat <<'E'\n$((1+1)) `echo sub` \\$x\nE",
	"cat <<-E\n\t\tindented\n\tE\necho after",
	"cat <<A; cat <<B\na\nA\nb\nB",
	"cat <<A; echo x; cat <<B; echo y\na\nA\nB\necho z",
	"{ cat <<A; } | tr a b; echo x\na\nA\nfor i in 1 2; do cat <<E; done; echo end\n$i\nE\n",
	"cat <<E; echo after\nE\necho next; (exit 3); echo $?",
	"cat <<E; echo ran\nx\nE\nif; echo not",
	"while read l; do echo \"> $l\"; done <<E\none\ntwo\nE",
	"x=$(cat <<E\nin a substitution\nE\n); echo \"$x\"",
	// Control.
	`for i in 1 2 3 4; do [ $i = 2 ] && continue; [ $i = 4 ] && break; echo $i; done; echo end`,
	`for i in 1 2; do for j in a b; do [ $j = b ] && continue 2; echo $i$j; done; done`,
	`i=0; while [ $i -lt 3 ]; do i=$((i+1)); done; until [ $i -eq 0 ]; do i=$((i-1)); done; echo $i`,
	`for ((i=0;i<3;i++)); do echo -n $i; done; echo; for x in; do echo never; done; echo $?`,
	`case foo.txt in *.md|*.rst) echo doc;; *.txt) echo text;; *) echo other;; esac`,
	`case x in y) ;; esac; echo $?; case "" in "") echo empty;; esac; case '*' in \*) echo star;; esac`,
	`if false; then echo a; elif (exit 7); then echo b; else echo "c $?"; fi; if false; then :; fi; echo $?`,
	`f() { echo "$# $1"; shift; return 5; }; f a b; echo "$? $#"; g() { f "$@" && echo no || echo "or $?"; }; g x`,
	`f() { local x=in; g; }; g() { echo $x; x=changed; }; x=out; f; echo $x`,
	`f() { [ $1 -le 1 ] && echo 1 && return; echo $(( $1 * $(f $(($1-1))) )); }; f 6`,
	`(x=sub; exit 3); echo "$? ${x-unset}"; { y=group; }; echo $y`,
	`true && false || echo or; false && echo and; echo $?; true || echo no; echo $?`,
	`eval 'a=1; b=$a'; echo $b; x=y y=z; eval echo \$$x; eval; echo $?`,
	`set -e; f() { false; echo "still in f"; }; f || echo caught; if f; then echo ok; fi; false; echo never`,
	`set -e; (false; echo not); echo not either`,
	`set -e; x=$(false) || echo "assignment $?"; y=$(exit 3); echo not`,
	`set -u; echo ${nope-default}; echo $nope; echo not`,
	`set -x; echo traced 2>/dev/null; { set +x; } 2>/dev/null; echo plain`,
	// Exit codes.
	`exit 300`, `exit -1`, `false; exit`, `(exit 9)`, `nosuchcommand 2>/dev/null`, `/etc 2>/dev/null`, `return 3 2>/dev/null; echo $?`,
	`kill -9 $$`, `kill -TERM $$`, `bash -c 'kill -INT $$'; echo $?`, `sh -c 'exit 4'; echo $?`,
	`cd /nosuchdir 2>/dev/null; echo $?; test 1 -eq 2; echo $?; test 1 -eq 2>/dev/null; echo $?; [ a = a; ] 2>/dev/null; echo $?`,
	`readonly r=1; (r=2) 2>/dev/null; echo $?; unset r 2>/dev/null; echo $? $r`,
	`x=1 true; echo "<$x>"; x=2 :; echo "<$x>"; export z=3; bash -c 'echo $z'; w=4 bash -c 'echo $w'`,
	// Traps and jobs.
	`trap 'echo exit $?' EXIT; exit 3`,
	`trap 'echo exit' EXIT; (exit 2); echo "in $?"; trap - EXIT; echo done`,
	`trap 'echo usr1' USR1; kill -USR1 $$; echo after; trap -p USR1; trap '' TERM; kill $$; echo survived`,
	`trap 'echo err' ERR; false; false || true; if false; then :; fi; ! true; echo end`,
	`trap 'echo term; exit 5' TERM; kill $$; echo not`,
	`(trap 'echo sub' EXIT; exit 1); echo $?`,
	`sleep 0.01 & wait $!; echo $?; (exit 6) & wait $!; echo $?; wait; echo $?; wait 999999 2>/dev/null; echo $?`,
	`(exit 1) & a=$!; (exit 2) & b=$!; wait $b; echo $?; wait $a; echo $?`,
	`sleep 100 & kill $!; wait $! 2>/dev/null; echo $?`,
	`{ sleep 0.01; echo bg; } & wait; echo fg; jobs; echo "${!:+pid}"`,
	// A job that writes elsewhere does not hold up who reads.
	`x=$(sleep 20 >/dev/null & echo $!); kill $x && echo killed; x=$({ exec sleep 20; } >/dev/null 2>&1 & echo $!); kill $x && echo killed`,
	// Arrays and conditions.
	`a=(1 "2 3" 4); a[5]=x; echo ${#a[@]} ${!a[@]} "${a[1]}" "${a[@]:1:2}"; unset 'a[0]'; echo "${a[@]}"; a=("${a[@]/x/y}"); echo ${a[-1]}`,
	`declare -A m=([k]=v [k2]="v 2"); echo ${m[k2]} ${#m[@]}; [[ -v m[k] ]] && echo has; [[ -v m[z] ]] || echo lacks; unset 'm[k]'; echo ${!m[@]}`,
	`[[ abc == a?c && ! abc == "a?c" && abc =~ b(.)$ ]]; echo $? ${BASH_REMATCH[1]}; [[ xyz =~ (x)(.) ]]; echo ${BASH_REMATCH[0]} ${BASH_REMATCH[2]} ${#BASH_REMATCH[@]}; [[ 10 -gt 9 && "10" < "9" ]]; echo $?`,
	`for a in 0 1; do for b in 0 1; do for c in 0 1; do
		[[ $a == 1 && $b == 1 || $c == 1 ]] && echo -n 1; [[ $a == 1 || $b == 1 && $c == 1 ]] && echo -n 2; [[ ! $a == 1 && $b == 1 ]] && echo -n 3
		[[ ! ( $a == 1 || $b == 1 ) || $c == 1 && ! $a == 1 ]] && echo -n 4; [[ $a == 1 && ( $b == 1 || $c == 1 ) ]] && echo -n 5; echo; done; done; done`,
	`[ -n "" -o 1 = 1 ]; echo $?; [ ! -d / ]; echo $?; [ "a" \< "b" ]; echo $?; [ ]; echo $?; [ x ]; echo $?`,
	`printf '%5s|%-5s|%05d|%x|%c|%.2f|%%|%b\n' a b 42 255 xyz 3.14159 'c\td'; printf '%s-%s\n' 1 2 3; printf '%d\n' 0x10 "'A"`,
	`read -a w <<<"p q r"; echo ${w[1]} ${#w[@]}; mapfile -t l <<<$'x\ny'; echo ${l[1]}; getopts ab: o -b v; echo $o $OPTARG $OPTIND`,
	`echo -e 'a\tb\c'; echo; echo -n x; echo -E 'a\tb'; echo --; echo -nn; type -t if cd echo nosuch; command -v cd`,
	`shift 2>/dev/null; echo $?; set a b c; shift 2; echo $1; shift 5; echo "$? $1"; set --; echo $#`,
	`f() { echo ${FUNCNAME[0]} $LINENO; }; f; unset -f f; f 2>/dev/null; echo $?; alias x=y; unalias x; echo $?`,
	`let 'a=1' 'b=0'; echo $?; ((b)); echo $?; ((a)) && echo yes; echo $((10#08)); let c=a+2 d=c*2; echo $c $d`,
	"shopt -s extglob\n" + `case foo in !(bar)) echo not bar;; esac; shopt -s nocasematch; [[ A == a ]] && echo same`,
}

func TestDifferential(t *testing.T) {
	real, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash to compare with")
	}
	for _, script := range differential {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), real, "-c", script)
			cmd.Dir, cmd.Env = t.TempDir(), []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
			var out bytes.Buffer
			cmd.Stdout = &out
			cmd.Run() // The exit code says it all.
			want := cmd.ProcessState.ExitCode()
			if s := cmd.ProcessState.Sys().(syscall.WaitStatus); s.Signaled() {
				want = kit.ExitSignal + int(s.Signal())
			}

			m := shelltest.New(t, Tools())
			env := m.Env("bash", "-c", script)
			p, err := m.Procs.Start(t.Context(), env)
			if err != nil {
				t.Fatal(err)
			}
			code := p.Wait()
			if got := env.Stdout.(*shelltest.Buffer).String(); got != out.String() || code != want {
				t.Errorf("exit %d, %q; bash: exit %d, %q\n%s", code, got, want, out.String(), env.Stderr)
			}
		})
	}
}
