package policy

import (
	"path"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

func TestReadOnlyCommand(t *testing.T) {
	for command, want := range map[string]bool{
		"cat /etc/hosts":                                  true,
		"/bin/ls -l /data":                                true,
		"tar cf - /data":                                  true, // kubectl cp from a pod
		"tar xmf - -C /data":                              false,
		"curl -sS http://geo:8083/health":                 true,
		"curl -s -o /dev/null -w %{http_code} http://geo": true,
		"curl -so /dev/null http://geo":                   true,
		"curl -sXPOST http://geo":                         false,
		"curl -d x http://geo":                            false,
		"curl --data=x http://geo":                        false,
		"curl -o /etc/passwd http://geo":                  false,
		"wget -qO- http://geo":                            true,
		"wget -O - http://geo":                            true,
		"wget --post-data=x http://geo":                   false,
		"find / -name x":                                  true,
		"find / -delete":                                  false,
		"find / -exec rm {} +":                            false,
		"awk {print} /x":                                  true,
		`awk {print>"/x"}`:                                false,
		`awk BEGIN{system("reboot")}`:                     false,
		"env":                                             true,
		"env A=b rm /x":                                   false,
		"rm -rf /":                                        false,
		"redis-cli set a b":                               false,
		"mongosh --eval db.dropDatabase()":                false,
		"sh":                                              false,
		"sh -c|cat /a | grep b; ps aux 2>&1 && ls $HOME":  true,
		"sh -c|cat /a 2>/dev/null | wc -l":                true,
		"sh -c|cat /a > /b":                               false,
		"sh -c|cat /a; rm /b":                             false,
		"sh -c|cat $(rm /b)":                              false,
		"sh -c|cat `rm /b`":                               false,
		"sh -c|$X /b":                                     false,
		"sh -c|printen$X":                                 false,
		"sh -c|ls & rm /b":                                false,
		"sh -c|echo 'a; rm /b'":                           false, // Quotes are not understood.
		"sh -c|ls | xargs rm":                             false,
		"sh -c|":                                          false,
		"bash -x -c ls":                                   false,
		"sh -c|f() { ls; }":                               false,
		"sh -c|alias ls=rm\nls /b":                        false,
		"sh -c|cat /a >/dev/null":                         true,
		"sh -c|cat /a >/dev/nullx":                        false,
	} {
		words := strings.Fields(command)
		if shell, script, ok := strings.Cut(command, "|"); ok && strings.HasPrefix(command, "sh -c|") {
			words = append(strings.Fields(shell), script)
		}
		if got := ReadOnly(words); got != want {
			t.Errorf("%s: %v", command, got)
		}
	}
	if ReadOnly(nil) {
		t.Error("no command is read only")
	}
}

// FuzzReadOnlyScript holds scripts that are called read only against what a shell understands of them: plain calls of
// programs that read, and redirections to nowhere.
func FuzzReadOnlyScript(f *testing.F) {
	for _, s := range []string{"cat /a | grep b", "ls; ps 2>&1", `c"at" /x`, "echo a\nrm b", "a=b cat", "cat /a >/dev/null", "echo ~ [", "ls #\nrm"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, script string) {
		if !readOnlyScript(script) {
			return
		}
		file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(script), "")
		if err != nil {
			return // A shell would not run it.
		}
		syntax.Walk(file, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.FuncDecl, *syntax.Subshell, *syntax.Block:
				t.Errorf("%q has %T", script, n)
			case *syntax.Redirect:
				target := ""
				if n.Word != nil {
					target = n.Word.Lit()
				}
				if target != "/dev/null" && target != "1" {
					t.Errorf("%q redirects to %q", script, target)
				}
			case *syntax.CallExpr:
				if len(n.Args) == 0 {
					return true
				}
				name := path.Base(plainWord(n.Args[0]))
				shells := []string{"sh", "ash", "bash", "dash", "env", "tar"}
				if _, searches := searchers[name]; !searches && !slices.Contains(readers, name) && !slices.Contains(shells, name) {
					t.Errorf("%q calls %q", script, name)
				}
			}
			return true
		})
	})
}

// plainWord is a word without its quotes.
func plainWord(w *syntax.Word) string {
	var b strings.Builder
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Lit:
			b.WriteString(n.Value)
		case *syntax.SglQuoted:
			b.WriteString(n.Value)
		case *syntax.ParamExp:
			b.WriteString("$")
			return false
		}
		return true
	})
	return b.String()
}
