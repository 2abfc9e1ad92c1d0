package shell

import (
	"regexp"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/shell/internal/shelltest"
)

func TestScriptTools(t *testing.T) {
	runTools(t, []toolTest{
		{cmd: "echo a b; echo -n a; echo -e 'x\\ty\\101'; echo -E 'a\\n'; echo -e 'no\\c more'; echo -x; echo", out: "a b\nax\ty\\101\na\\n\nno-x\n\n", own: true},
		{cmd: "printf '%s-%d|%5.1f|%x\\n' a 42 3.14159 255; printf '%s\\n' a b c; printf '%05d %-4s|\\n' 42 ab; printf '%%|%c|%o\\n' xyz 8", out: "a-42|  3.1|ff\na\nb\nc\n00042 ab  |\n%|x|10\n"},
		{cmd: "printf 'a\\tb\\n\\x41\\101'; printf '%b' 'x\\ny\\n'; printf '%q\\n' 'a b'; printf '%d\\n' \"'A\" 0x10 010; printf '%s'; printf '%*d|%.2s\\n' 5 7 abc", out: "a\tb\nAAx\ny\na\\ b\n65\n16\n8\n    7|ab\n", own: true},
		{cmd: "printf '%d\\n' abc; echo $?", out: "0\n1\n", err: "printf: invalid number 'abc'\n"},
		{cmd: "printf '%(%Y-%m-%d)T\\n' 0; printf '%u %i %e\\n' 3 -4 12345.678", out: "1970-01-01\n3 -4 1.234568e+04\n"},
		{cmd: "test -f abc && echo f; [ -d d ] && echo d; [ -e nofile ] || echo none; [ -s empty ] || echo empty; [ a = a ] && [ a != b ] && echo str; [ 2 -lt 10 ] && echo num", out: "f\nd\nnone\nempty\nstr\nnum\n"},
		{cmd: "[ -n '' ] || echo n; [ -z '' ] && echo z; [ ! -f abc ] || echo not; [ -f abc -a -d d ] && echo and; [ -f no -o -d d ] && echo or; [ '(' a = b ')' -o c ] && echo paren; [ = ] && echo one; [ ! ] && echo bang; [ -f ] && echo dash", out: "n\nz\nnot\nand\nor\nparen\none\nbang\ndash\n"},
		{cmd: "[ x -eq 1 ]", err: "[: x: bad number\n", code: 2},
		{cmd: "[ a b ]", err: "[: b: unknown operand\n", code: 2},
		{cmd: "[ a = a", err: "[: missing ]\n", code: 2},
		{cmd: "expr 1 + 2; expr 7 \\* 3 - 1; expr 10 / 3; expr 10 % 3; expr abc : 'a\\(.*\\)'; expr length hello; expr substr hello 2 3; expr index hello l; expr 3 '>' 2; expr a = b; echo $?", out: "3\n20\n3\n1\nbc\n5\nell\n3\n1\n0\n1\n"},
		{cmd: "expr 1 +", err: "expr: syntax error\n", code: 2},
		{cmd: "expr a + 1", err: "expr: non-numeric argument\n", code: 2},
		{cmd: "seq 3; seq 2 4; seq 1 2 5; seq 3 -1 1; seq -w 8 10; seq -s, 3; seq 0.5 0.5 1.5; seq 5 1", out: "1\n2\n3\n2\n3\n4\n1\n3\n5\n3\n2\n1\n08\n09\n10\n1,2,3\n0.5\n1.0\n1.5\n"},
		{cmd: "seq x", err: "seq: invalid number 'x'\n", code: 1},
		{cmd: "sleep 0.01; sleep 0; usleep 10; sleep x", err: "sleep: invalid number 'x'\n", code: 1},
		{cmd: "env -i A=1 B=2 env; A=5 env | grep ^A=; env -u HOME sh -c 'echo \".$HOME\"'; env X=1 sh -c 'echo $X'; printenv HOME; printenv NOPE; echo $?", out: "A=1\nB=2\nA=5\n.\n1\n/root\n1\n", own: true},
		{cmd: "env nosuch", err: "env: can't execute 'nosuch': No such file or directory\n", code: 127},
		{cmd: "basename /a/b/c.txt; basename /a/b/c.txt .txt; basename a/; dirname /a/b/c; dirname a; dirname /a; dirname /; dirname a/b/; basename -a x/1 y/2; basename -s .c a.c", out: "c.txt\nc\na\n/a/b\n.\n/\n/\na\n1\n2\na\n"},
		{cmd: "pwd; cd d; /bin/pwd; which sh nosuch; echo $?", out: "/w\n/w/d\n/bin/sh\n1\n", own: true},
		{cmd: "true; echo $?; false; echo $?; yes hi | head -2", out: "0\n1\nhi\nhi\n"},
		{cmd: "timeout 0.05 sleep 5; echo $?; timeout 5 echo in time; timeout -s KILL 0.05 sleep 5; echo $?; timeout 1 sh -c 'exit 3'; echo $?", out: "124\nin time\n137\n3\n"},
		{cmd: "timeout 1 nosuch", err: "timeout: can't execute 'nosuch': No such file or directory\n", code: 127},
		{cmd: "echo a b c | xargs; printf 'a\\nb\\n' | xargs -n1 echo got; printf '1\\n2\\n' | xargs -I{} echo '<{}>'; printf 'x\\0y z\\0' | xargs -0 -n1 echo; echo | xargs -r echo none; echo \"'a b' c\" | xargs -n1 echo", out: "a b c\ngot a\ngot b\n<1>\n<2>\nx\ny z\na b\nc\n"},
		{cmd: "seq 4 | xargs -P2 -n1 echo | sort; echo a | xargs sh -c 'exit 3'; echo $?; echo a | xargs nosuch; echo $?; ls d | xargs -t echo 2>&1; printf 'a,b' | xargs -d, echo", out: "1\n2\n3\n4\n123\n127\necho e one two\ne one two\na b\n", err: "xargs: can't execute 'nosuch': No such file or directory\n"},
		{cmd: "nohup echo x; nice echo y; nice -n 5 echo z", out: "x\ny\nz\n"},
		{cmd: "find d -type f | sort | xargs cat | wc -l; find d -name '*e*' -print0 | xargs -0 ls -d | sort", out: "4\nd/e\nd/e/deep\nd/one\n"},
	})
}

func TestSystemTools(t *testing.T) {
	runTools(t, []toolTest{
		{cmd: "id; id -u; id -un; whoami; groups; id nobody", out: "uid=0(root) gid=0(root) groups=0(root)\n0\nroot\nroot\nroot\nuid=65534(nobody) gid=65534(nobody) groups=65534(nobody)\n", own: true},
		{cmd: "id ghost", err: "id: unknown user ghost\n", code: 1},
		{cmd: "hostname; hostname -i; uname; uname -n; uname -m; arch; nproc", out: "box\n10.244.0.5\nLinux\nbox\nx86_64\nx86_64\n4\n", own: true},
		{cmd: "hostname x", err: "hostname: sethostname: Operation not permitted\n", code: 1},
		{cmd: "date -u -d @0; date -u -d '2024-03-05 06:07:08' '+%Y%m%d-%H%M%S %a %j %s %%'; date -u -d @86400 -Iseconds; date -u -d @0 -R; date -d '1970-01-02 UTC' +%s", out: "Thu Jan  1 00:00:00 UTC 1970\n20240305-060708 Tue 065 1709618828 %\n1970-01-02T00:00:00+00:00\nThu, 01 Jan 1970 00:00:00 +0000\n86400\n"},
		{cmd: "[ $(date +%s) -gt 1700000000 ] && echo now; [ $(($(date +%s) - $(date -d '1 hour ago' +%s))) -eq 3600 ] && echo ago; TZ=CET-1 date -d @0 '+%H %Z'; touch -d @60 f; date -u -r f +%s", out: "now\nago\n01 CET\n60\n"},
		{cmd: "date -d nonsense", err: "date: invalid date 'nonsense'\n", code: 1},
		{cmd: "free -m; free | head -1", out: "             total        used        free      shared  buff/cache   available\nMem:          8192         128        8064           0           0        8064\nSwap:            0           0           0\n             total        used        free      shared  buff/cache   available\n", own: true},
		{cmd: "mount -t nosuch; mount -t $(mount | head -1 | cut -d' ' -f5) | grep -c ' on / '", out: "1\n"},
		{cmd: "dmesg", err: "dmesg: klogctl: Operation not permitted\n", code: 1},
		{cmd: "vi abc", err: "vi: there is no full-screen editor here; use sed -i 's/old/new/' FILE, or cat >FILE <<'EOF'\n", code: 1},
		{cmd: "tty; clear | od -c | head -1", out: "not a tty\n0000000 033   [   H 033   [   J\n"},
		{cmd: "top -b -n1 | sed -n 4p; uptime | grep -c 'load average'", out: "  PID  PPID USER     STAT   VSZ %VSZ CPU %CPU COMMAND\n1\n", own: true},
		{cmd: "kill -l | head -2; kill -l 15; kill -l KILL; /bin/kill 99999", out: " 1) HUP\n 2) INT\nTERM\n9\n", err: "kill: can't kill pid 99999: No such process\n", code: 1},
		{cmd: "sleep 100 & pgrep sleep >/dev/null && echo found; pkill sleep; wait; pgrep sleep || echo gone", out: "found\ngone\n"},
		{cmd: "sleep 100 & sleep 100 & pgrep -c sleep; pkill -9 '^sleep'; wait; killall sleep; echo $?", out: "2\n1\n", err: "killall: sleep: no process killed\n"},
		{cmd: "sleep 101 & pgrep -a sleep | cut -d' ' -f2-; pidof sleep | wc -w; pgrep -x slee; echo $?; killall sleep; wait", out: "sleep 101\n1\n1\n"},
	})
}

func TestPs(t *testing.T) {
	m := shelltest.New(t, Tools())
	m.Procs.SetNext(1)
	clock := regexp.MustCompile(`\d\d:\d\d`)
	for _, tt := range []struct{ cmd, want string }{
		{"ps; exit", "  PID USER      TIME COMMAND\n    1 root      0:00 sh -c ps; exit\n    2 root      0:00 ps\n"},
		{"ps aux; exit", "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND\nroot           1  0.0  1.6 131072 131072 ?        Ss   NN:NN   0:00 sh -c ps aux; exit\nroot           2  0.0  0.0      0     0 ?        R    NN:NN   0:00 ps aux\n"},
		{"ps -ef; exit", "UID          PID    PPID  C STIME TTY          TIME CMD\nroot           1       0  0 NN:NN ?        00:00:00 sh -c ps -ef; exit\nroot           2       1  0 NN:NN ?        00:00:00 ps -ef\n"},
		{"ps -o pid,ppid,comm; exit", "  PID  PPID COMMAND\n    1     0 sh\n    2     1 ps\n"},
		{"ps -p 1 -o args=; exit", "sh -c ps -p 1 -o args=; exit\n"},
		{"ps -o pid= -o user=WHO; exit", "      WHO\n    1 root\n    2 root\n"},
	} {
		m.Procs.SetNext(1)
		got := m.Run("sh", "-c", tt.cmd)
		text := strings.ReplaceAll(clock.ReplaceAllString(got.Stdout, "NN:NN"), "NN:NN:00", "00:00:00")
		if text != tt.want || got.Stderr != "" {
			t.Errorf("%s:\n%s%s\nwant:\n%s", tt.cmd, text, got.Stderr, tt.want)
		}
	}
	if got := m.Run("ps", "-o", "nope"); got.Code != 1 || !strings.HasPrefix(got.Stderr, "ps: bad -o argument 'nope'\n") {
		t.Errorf("%+v", got)
	}
}
