package shell

import (
	"archive/tar"
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/shell/internal/shelltest"
)

func TestFileTools(t *testing.T) {
	runTools(t, []toolTest{
		{cmd: "ls", out: "abc\nblank\ncsv\nd\ndup\nempty\nfruit\njson\nlog\nnonl\nnums\nother\npasswd\ntabs\nwords\n"},
		{cmd: "ls d; ls d/e abc; ls -d d; ls -F d; ls -p d | tail -1", out: "e\none\ntwo\nabc\n\nd/e:\ndeep\nd\ne/\none\ntwo\ntwo\n"},
		{cmd: "ls -R d", out: "d:\ne\none\ntwo\n\nd/e:\ndeep\n"},
		{cmd: "ls nofile", err: "ls: nofile: No such file or directory\n", code: 1},
		{cmd: "ls nofile abc", out: "abc\n", err: "ls: nofile: No such file or directory\n", code: 1},
		{cmd: "touch .h; ls -a | head -3; ls -A | head -1", out: ".\n..\n.h\n.h\n"},
		{cmd: "ls -l abc | cut -c1-50 | tr -s ' ' | cut -d' ' -f1-5", out: "-rw-r--r-- 1 root root 6\n"},
		{cmd: "touch -d '2020-01-02 03:04:05' abc; ls -l abc; ls -ln abc; ls --full-time abc", out: "-rw-r--r--    1 root     root             6 Jan  2  2020 abc\n-rw-r--r--    1 0        0                6 Jan  2  2020 abc\n-rw-r--r--    1 root     root             6 2020-01-02 03:04:05 +0000 abc\n", own: true},
		{cmd: "touch -t 202001010000 abc; touch -t 202101010000 nums; ls -t abc nums; ls -tr abc nums; ls -S abc log; ls -r abc log", out: "nums\nabc\nabc\nnums\nlog\nabc\nlog\nabc\n"},
		{cmd: "ls -lh d | head -1; ls -s abc; ls -1 d | wc -l; ls -C d; ls -m d", out: "total 12.0K\n     4 abc\n3\ne    one  two\ne, one, two\n", own: true},
		{cmd: "ln -s abc link; ls -l link | sed 's/.* link/link/'; ls -F link; readlink link; cat link; ls -L link; [ -L link ] && echo is", out: "link -> abc\nlink@\nabc\na\nb\nc\nlink\nis\n"},
		{cmd: "ls -z 2>&1 | head -1", out: "ls: unrecognized option: z\n", own: true},
		{cmd: "mkdir x; mkdir x/y; ls x; mkdir -p p/q/r; ls p/q; mkdir -p p/q; mkdir -m 700 m; stat -c %a m", out: "y\nr\n700\n"},
		{cmd: "mkdir d", err: "mkdir: can't create directory 'd': File exists\n", code: 1},
		{cmd: "mkdir no/such", err: "mkdir: can't create directory 'no/such': No such file or directory\n", code: 1},
		{cmd: "mkdir x; rmdir x; ls x 2>/dev/null; echo $?; mkdir -p a/b/c; rmdir -p a/b/c; ls -d a 2>/dev/null || echo gone", out: "1\ngone\n", own: true},
		{cmd: "rmdir d", err: "rmdir: 'd': Directory not empty\n", code: 1},
		{cmd: "rm abc; ls abc", err: "ls: abc: No such file or directory\n", code: 1},
		{cmd: "rm nofile", err: "rm: can't remove 'nofile': No such file or directory\n", code: 1},
		{cmd: "rm -f nofile; rm -rf d; ls d 2>/dev/null || echo gone; rm -rf /w/nothing; echo $?", out: "gone\n0\n"},
		{cmd: "rm d", err: "rm: 'd' is a directory\n", code: 1},
		{cmd: "rm -v abc; yes n | rm -i nums 2>/dev/null; ls nums; rm -rf .", out: "removed 'abc'\nnums\n", err: "rm: refusing to remove '.' or '..' directory: skipping '.'\n", code: 1},
		{cmd: "cp abc new; cat new; cp abc nums d; ls d; cp -r d d2; ls d2; cat d2/e/deep", out: "a\nb\nc\nabc\ne\nnums\none\ntwo\nabc\ne\nnums\none\ntwo\ndeep needle\n", own: true},
		{cmd: "cp nofile x", err: "cp: can't stat 'nofile': No such file or directory\n", code: 1},
		{cmd: "cp d x", err: "cp: omitting directory 'd'\n", code: 1},
		{cmd: "cp abc no/such", err: "cp: can't create 'no/such': No such file or directory\n", code: 1},
		{cmd: "cp abc nums other", err: "cp: target 'other' is not a directory\n", code: 1},
		{cmd: "cp -a d/. x; ls x; chmod 600 abc; cp -p abc y; stat -c %a y; cp -v abc z; cp -n nums z; cat z | head -1", out: "e\none\ntwo\n600\n'abc' -> 'z'\na\n"},
		{cmd: "ln -s abc l; cp l copy; [ -L copy ] || echo followed; cp -P l l2; [ -L l2 ] && echo link; cp -a l l3; readlink l3", out: "followed\nlink\nabc\n"},
		{cmd: "cp abc abc", err: "cp: 'abc' and 'abc' are the same file\n", code: 1},
		{cmd: "mv abc x; cat x | head -1; ls abc 2>/dev/null || echo moved; mv x d; ls d; mv d d3; ls d3; mv -v nums n2", out: "a\nmoved\ne\none\ntwo\nx\ne\none\ntwo\nx\n'nums' -> 'n2'\n", own: true},
		{cmd: "mv nofile x", err: "mv: can't rename 'nofile': No such file or directory\n", code: 1},
		{cmd: "mv abc no/such", err: "mv: can't rename 'abc': No such file or directory\n", code: 1},
		{cmd: "ln abc hard; echo z >>hard; tail -1 abc; stat -c %h abc; ln -s /nowhere dang; cat dang 2>&1; ln -sf nums dang; readlink dang", out: "z\n2\ncat: can't open 'dang': No such file or directory\nnums\n", own: true},
		{cmd: "ln -s abc nums", err: "ln: nums: File exists\n", code: 1},
		{cmd: "touch new; stat -c '%n %s %F' new; touch -c no; ls no 2>/dev/null || echo none; touch -r nums new; [ new -nt nums ] || echo same", out: "new 0 regular empty file\nnone\nsame\n"},
		{cmd: "truncate -s 3 abc; cat abc; truncate -s 1K big; wc -c <big; truncate -s +1K big; wc -c <big", out: "a\nb1024\n2048\n"},
		{cmd: "chmod 755 abc; stat -c '%a %A' abc; chmod u-x,g=w abc; stat -c %A abc; chmod +x nums; stat -c %a nums; chmod -R go-rx d; stat -c %a d d/one", out: "755 -rwxr-xr-x\n-rw--w-r-x\n755\n700\n600\n"},
		{cmd: "chmod -x abc; chmod a=r abc; stat -c %a abc; chmod 4755 abc; stat -c %A abc; mkdir s; chmod 1777 s; ls -ld s | cut -c1-10", out: "444\n-rwsr-xr-x\ndrwxrwxrwt\n"},
		{cmd: "chmod foo abc", err: "chmod: invalid mode 'foo'\n", code: 1},
		{cmd: "chmod 644 nofile", err: "chmod: nofile: No such file or directory\n", code: 1},
		{cmd: "chown nobody abc; stat -c '%U %u' abc; chown 12:34 abc; stat -c %u:%g abc; chown :nobody abc; stat -c %G abc; chgrp root abc; stat -c %G abc", out: "nobody 65534\n12:34\nnobody\nroot\n", own: true},
		{cmd: "chown ghost abc", err: "chown: unknown user/group ghost\n", code: 1},
		{cmd: "stat nofile", err: "stat: can't stat 'nofile': No such file or directory\n", code: 1},
		{cmd: "touch -d @0 abc; stat abc | grep -v Device; stat -c '%s %Y %f %%' abc", out: "  File: abc\n  Size: 6         \tBlocks: 8          IO Block: 4096   regular file\nAccess: (0644/-rw-r--r--)  Uid: (    0/    root)   Gid: (    0/    root)\nAccess: 1970-01-01 00:00:00.000000000 +0000\nModify: 1970-01-01 00:00:00.000000000 +0000\nChange: 1970-01-01 00:00:00.000000000 +0000\n6 0 81a4 %\n", own: true},
		{cmd: "du -s d; du d; du -a d | tail -2; du -sh d; du -c abc nums; du nofile", out: "20\td\n8\td/e\n20\td\n4\td/two\n20\td\n20.0K\td\n4\tabc\n4\tnums\n8\ttotal\n", err: "du: nofile: No such file or directory\n", code: 1, own: true},
		{cmd: "df . | head -1; df -h / | tail -1 | tr -s ' ' | cut -d' ' -f1,2,6; df -k | grep -c overlay; mount | cut -d' ' -f1-5", out: "Filesystem            1K-blocks      Used Available Use% Mounted on\noverlay 16.0M /\n1\noverlay on / type overlay\n", own: true},
		{cmd: "find d | sort; find d -type f | wc -l; find d -name 'o*'; find . -maxdepth 1 -name 'a*'; find d -mindepth 2", out: "d\nd/e\nd/e/deep\nd/one\nd/two\n3\nd/one\n./abc\nd/e/deep\n"},
		{cmd: "find d -type f -exec cat {} \\; | sort; find d -type f -exec echo {} + | wc -l; find d -name one -exec echo got {} ';' -print", out: "deep needle\nneedle in one\nneedle two\nnothing\n1\ngot d/one\nd/one\n"},
		{cmd: "find . -size +50c -type f | sort; find . -empty -type f; find d \\( -name one -o -name two \\) | sort; find d ! -name '*e*' -type f", out: "./log\n./empty\nd/one\nd/two\nd/two\n", own: true},
		{cmd: "find d -path '*/e/*'; find d -prune; find d -name e -prune -o -type f -print | sort; find d -iname ONE; find . -newer nofile 2>/dev/null; echo $?", out: "d/e/deep\nd\nd/one\nd/two\nd/one\n1\n"},
		{cmd: "find d -name two -delete; ls d; find d -print0 | tr '\\0' ,; echo; find d -printf '%f %s %y\\n' | sort | head -1; find d -type f -perm 644 | wc -l", out: "e\none\nd,d/e,d/e/deep,d/one,\nd 4096 d\n2\n", own: true},
		{cmd: "touch -d '3 days ago' abc; find . -maxdepth 1 -mtime +1; find . -maxdepth 1 -type f -mmin -5 | wc -l; find . -regex './a.c'; find . -user root -maxdepth 1 -name abc", out: "./abc\n13\n./abc\n./abc\n", own: true},
		{cmd: "find d -name one -ls | awk '{print $3, $NF}'; find d -type f -printf '%P %h %m %u %d %TY\\n' -newermt 2020-01-01 | sort | head -1 | sed 's/2[0-9]*$/Y/'", out: "-rw-r--r-- d/one\ne/deep d/e 644 root 2 Y\n", own: true},
		{cmd: "ln abc h; find . -maxdepth 1 -samefile abc | sort; ln -s abc l; find . -lname abc; find . -maxdepth 1 -type l -printf '%l\\n'; find . -maxdepth 1 -links 2 | sort", out: "./abc\n./h\n./l\nabc\n./abc\n./h\n", own: true},
		{cmd: "find . -regextype posix-extended -regex './(abc|csv)' | sort; find d -group root -name one; find d -xdev -fstype overlay -name two; find d -depth | head -1; find d -name one -print -quit; find abc -size 1; find abc -size -1k; find . -maxdepth 1 -perm -u+w -name abc; find . -perm /111 -type f", out: "./abc\n./csv\nd/one\nd/two\nd/e/deep\nd/one\nabc\n./abc\n", own: true},
		{cmd: "find d -type f -execdir echo {} \\; | sort; yes | find d -name one -ok echo {} \\; 2>/dev/null; find d -name one -exec false \\; -o -name two -print; find d -exec nosuch {} \\; 2>&1 | head -1", out: "./deep\n./one\n./two\nd/one\nd/two\nfind: can't execute 'nosuch': No such file or directory\n", own: true},
		{cmd: "stat -f . | head -1; stat -t abc | cut -d' ' -f1,2; stat -c '%U:%G %i' abc | wc -w; stat --printf '%s\\n' abc", out: "  File: \".\"\nabc 6\n2\n6\n", own: true},
		{cmd: "tar --create --file=l.tar --exclude one d; tar --list --file l.tar; mkdir x; tar --extract --file=l.tar --directory=x --no-same-owner; ls x/d; tar --nope 2>&1 | head -1", out: "d/\nd/e/\nd/e/deep\nd/two\ne\ntwo\ntar: unrecognized option: nope\n", own: true},
		{cmd: "ln -s abc s; ln abc h; tar cf t.tar abc h s; mkdir x; tar xf t.tar -C x; readlink x/s; stat -c %h x/abc; echo abc >names; tar cf - -T names | tar t; tar xf t.tar nope", out: "abc\n2\nabc\n", err: "tar: nope: not found in archive\n", code: 1},
		{cmd: "find nofile", err: "find: nofile: No such file or directory\n", code: 1},
		{cmd: "find . -foo", err: "find: unrecognized: -foo\n", code: 1},
		{cmd: "find . -name", err: "find: -name requires an argument\n", code: 1},
		{cmd: "tree d", out: "d\n|-- e\n|   `-- deep\n|-- one\n`-- two\n\n1 directories, 3 files\n", own: true},
		{cmd: "tar cf a.tar abc d; tar tf a.tar; mkdir x; tar xf a.tar -C x; cat x/d/e/deep; tar -tvf a.tar abc | cut -c1-10", out: "abc\nd/\nd/e/\nd/e/deep\nd/one\nd/two\ndeep needle\n-rw-r--r--\n", own: true},
		{cmd: "tar czf a.tgz d; tar tzf a.tgz | wc -l; mkdir x; tar -xzf a.tgz -C x d/one; ls x/d; tar xOf a.tgz d/one; tar --exclude=e -cf - d | tar tf -; tar xzf a.tgz --strip-components=1 -C x; ls x", out: "5\none\nneedle in one\nd/\nd/one\nd/two\nd\ne\none\ntwo\n", own: true},
		{cmd: "tar cf - d | (mkdir y; tar xmf - -C y); find y -type f | wc -l; tar cvf v.tar abc; tar -cf - -C d one two | tar -tf -", out: "3\nabc\none\ntwo\n"},
		{cmd: "tar xf nofile", err: "tar: can't open 'nofile': No such file or directory\n", code: 1},
		{cmd: "tar cf x.tar nofile", err: "tar: nofile: No such file or directory\n", code: 1},
		{cmd: "tar cf /tmp/x.tar /w/abc; tar tf /tmp/x.tar", out: "w/abc\n", own: true},
		{cmd: "gzip abc; ls abc*; zcat abc.gz; gunzip abc.gz; cat abc | head -1; gzip -k abc; ls abc*; echo hi | gzip -c | gzip -d; gzip -t abc.gz && echo ok", out: "abc.gz\na\nb\nc\na\nabc\nabc.gz\nhi\nok\n"},
		{cmd: "gunzip abc; zcat nums", err: "gunzip: abc: unknown suffix - ignored\nzcat: invalid magic\n", code: 1},
		{cmd: "readlink -f d/../abc; realpath d; ln -s d l; readlink -f l/one; realpath nofile; readlink abc; echo $?", out: "/w/abc\n/w/d\n/w/d/one\n/w/nofile\n1\n", own: true},
		{cmd: "f=$(mktemp); [ -f $f ] && stat -c %a $f; d=$(mktemp -d); [ -d $d ] && echo dir; mktemp -p . x.XXXXXX | cut -c1-4; mktemp -u /tmp/y.XXXXXX | wc -c", out: "600\ndir\n./x.\n14\n"},
		{cmd: "dd if=abc bs=2 count=1 2>/dev/null; dd if=/dev/zero bs=1k count=3 of=z 2>&1 | head -2; wc -c <z; echo xyz | dd bs=1 skip=1 count=1 status=none", out: "a\n3+0 records in\n3+0 records out\n3072\ny"},
		{cmd: "printf abcdef >f; printf XY | dd of=f bs=1 seek=2 conv=notrunc status=none; cat f; dd if=f conv=ucase status=none", out: "abXYefABXYEF"},
		{cmd: "dd if=nofile", err: "dd: can't open 'nofile': No such file or directory\n", code: 1},
		{cmd: "install -m 700 abc bin; stat -c %a bin; install -d p/q; ls -d p/q; unlink bin; ls bin 2>/dev/null || echo gone; sync", out: "700\np/q\ngone\n"},
		{cmd: "cd /w && echo * | wc -w; ls *.nope 2>&1", out: "15\nls: *.nope: No such file or directory\n", own: true, code: 1},
	})
}

// TestPermissions runs as somebody who is not root.
func TestPermissions(t *testing.T) {
	m := shelltest.New(t, Tools())
	m.Write("/etc/secret", "x\n")
	m.FS().Chmod("/etc/secret", 0o600)
	m.User.UID, m.User.GID = 1000, 1000
	for _, tt := range []struct{ cmd, err string }{
		{"cat /etc/secret", "cat: can't open '/etc/secret': Permission denied\n"},
		{"echo x >/etc/passwd", "sh: can't create /etc/passwd: Permission denied\n"},
		{"rm /etc/secret", "rm: can't remove '/etc/secret': Permission denied\n"},
		{"mkdir /x", "mkdir: can't create directory '/x': Permission denied\n"},
		{"chmod 777 /etc/secret", "chmod: /etc/secret: Operation not permitted\n"},
		{"[ -r /etc/secret ]", ""},
	} {
		got := m.Run("sh", "-c", tt.cmd)
		if got.Code != 1 || got.Stderr != tt.err {
			t.Errorf("%s: exit code %d, stderr %q", tt.cmd, got.Code, got.Stderr)
		}
	}
}

// TestKubectlCopy does what kubectl cp does, in both directions.
func TestKubectlCopy(t *testing.T) {
	m := shelltest.New(t, Tools())
	m.Write("/data/dir/file", "content\n")
	out := m.Run("tar", "cf", "-", "/data/dir")
	if out.Code != 0 {
		t.Fatalf("tar: %+v", out)
	}
	r := tar.NewReader(strings.NewReader(out.Stdout))
	var names []string
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
	if got := strings.Join(names, " "); got != "data/dir/ data/dir/file" {
		t.Errorf("the archive has %s", got)
	}

	var b bytes.Buffer
	w := tar.NewWriter(&b)
	w.WriteHeader(&tar.Header{Name: "sent", Typeflag: tar.TypeReg, Mode: 0o640, Size: 3})
	io.WriteString(w, "hi\n")
	w.Close()
	for _, args := range [][]string{{"tar", "-xmf", "-", "-C", "/tmp"}, {"tar", "xmf", "-", "-C", "/tmp"}} {
		if got := m.RunWith(b.String(), args...); got.Code != 0 || got.Stderr != "" {
			t.Errorf("%v: %+v", args, got)
		}
		if got := m.Read("/tmp/sent"); got != "hi\n" {
			t.Errorf("%v: the file has %q", args, got)
		}
	}
}

func TestDiskFull(t *testing.T) {
	m := shelltest.New(t, Tools())
	got := m.Run("sh", "-c", "dd if=/dev/zero of=/tmp/big bs=1M count=2000 2>&1 | head -1; echo more >/tmp/x; cat /tmp/big > /tmp/y")
	if !strings.Contains(got.Stdout, "No space left on device") || !strings.Contains(got.Stderr, "write error: No space left on device") {
		t.Errorf("%+v", got)
	}
}
