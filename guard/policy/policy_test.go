package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		change Change
		want   Risk
	}{
		{Change{Verb: "patch", Resource: "deployments", Namespace: "shop", Name: "geo"}, Low},
		{Change{Verb: "update", Resource: "deployments", Subresource: "scale", Namespace: "shop", Name: "geo"}, Low},
		{Change{Verb: "create", Resource: "configmaps", Namespace: "shop"}, Low},
		{Change{Verb: "create", Resource: "pods", Namespace: "shop"}, Medium},
		{Change{Verb: "delete", Resource: "pods", Namespace: "shop", Name: "geo-1"}, Medium},
		{Change{Verb: "create", Resource: "pods", Subresource: "eviction", Namespace: "shop", Name: "geo-1"}, Medium},
		{Change{Verb: "patch", Resource: "nodes", Name: "worker-1"}, Medium},
		{Change{Verb: "delete", Resource: "deployments", Namespace: "shop", Name: "geo"}, High},
		{Change{Verb: "deletecollection", Resource: "pods", Namespace: "shop"}, High},
		{Change{Verb: "create", Resource: "rolebindings", Namespace: "shop"}, High},
		{Change{Verb: "create", Resource: "serviceaccounts", Subresource: "token", Namespace: "shop"}, High},
		{Change{Verb: "delete", Resource: "persistentvolumeclaims", Namespace: "shop", Name: "geo"}, Irreversible},
		{Change{Verb: "delete", Resource: "namespaces", Name: "shop"}, Irreversible},
		{Change{Verb: "delete", Resource: "namespaces", Name: "shop", DryRun: true}, None},
		{Change{Verb: "connect", Resource: "pods", Subresource: "exec", Command: []string{"/bin/cat", "/etc/hosts"}}, None},
		{Change{Verb: "connect", Resource: "pods", Subresource: "exec", Command: []string{"sh", "-c", "cat x"}}, None},
		{Change{Verb: "connect", Resource: "pods", Subresource: "exec", Command: []string{"sh", "-c", "rm x"}}, Irreversible},
		{Change{Verb: "connect", Resource: "pods", Subresource: "exec"}, Irreversible},
		{Change{Verb: "connect", Resource: "pods", Subresource: "portforward"}, Irreversible},
	} {
		if got, why := Classify(c.change); got != c.want || why == "" {
			t.Errorf("%v: %s (%s), want %s", c.change, got, why, c.want)
		}
	}
}

// What the policies that are built in say about the same changes.
func TestBuiltin(t *testing.T) {
	for _, c := range []struct {
		change                          Change
		observe, careful, sre, anything Do
	}{
		{Change{Verb: "patch", Resource: "deployments", Namespace: "shop", Name: "geo"}, Deny, Allow, Allow, Allow},
		{Change{Verb: "patch", Resource: "deployments", Namespace: "observe", Name: "geo"}, Deny, Ask, Allow, Allow},
		{Change{Verb: "patch", Resource: "nodes", Name: "worker-1"}, Deny, Ask, Allow, Allow},
		{Change{Verb: "delete", Resource: "deployments", Namespace: "shop", Name: "geo"}, Deny, Ask, Allow, Allow},
		{Change{Verb: "delete", Resource: "namespaces", Name: "shop"}, Deny, Deny, Ask, Allow},
		{Change{Verb: "deletecollection", Resource: "pods", Namespace: "shop"}, Deny, Ask, Ask, Allow},
		{Change{Verb: "create", Resource: "clusterrolebindings"}, Deny, Ask, Ask, Allow},
		{
			Change{Verb: "connect", Resource: "pods", Subresource: "exec", Namespace: "shop", Command: []string{"ls"}},
			Allow,
			Allow, Allow, Allow,
		},
		{
			Change{Verb: "connect", Resource: "pods", Subresource: "exec", Namespace: "shop", Command: []string{"sh"}},
			Deny, Deny,
			Allow, Allow,
		},
		{Change{Verb: "delete", Resource: "namespaces", Name: "shop", DryRun: true}, Allow, Allow, Allow, Allow},
	} {
		for name, want := range map[string]Do{
			"observe": c.observe, "careful": c.careful, "sre": c.sre, "anything": c.anything,
		} {
			p, err := Find(name)
			if err != nil {
				t.Fatal(err)
			}
			if d := p.Decide(c.change, "shop"); d.Do != want || d.Because == "" {
				t.Errorf("%s about %v: %+v, want %s", name, c.change, d, want)
			}
		}
	}
	for _, name := range Names() {
		p, err := Find(name)
		if err != nil || p.Name != name || p.Doc == "" {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

func TestRules(t *testing.T) {
	p, err := Parse("p.yaml", []byte(`
name: mine
approval: auto
rules:
- names: [geo-*]
  verbs: [delete]
  do: deny
  because: not those
- commands: ["mongo* --eval *", ls]
  do: ask
- kinds: [pods]
  do: allow
`))
	if err != nil {
		t.Fatal(err)
	}
	exec := func(command ...string) Change {
		return Change{Verb: "connect", Resource: "pods", Subresource: "exec", Command: command}
	}
	for _, c := range []struct {
		change Change
		want   Do
	}{
		{Change{Verb: "delete", Resource: "pods", Name: "geo-1"}, Deny},
		{Change{Verb: "delete", Resource: "pods", Name: "geo"}, Allow},
		{exec("mongosh", "--eval", "db.stats()"), Allow}, // It asks, and the answer is given beforehand.
		{exec("mongosh"), Deny},
		{exec("ls", "-l"), Deny},
		{Change{Verb: "patch", Resource: "services"}, Deny},
	} {
		if d := p.Decide(c.change, "shop"); d.Do != c.want {
			t.Errorf("%v: %+v, want %s", c.change, d, c.want)
		}
	}
	if d := p.Decide(Change{Verb: "delete", Resource: "pods", Name: "geo-1"}, ""); !strings.HasSuffix(d.Because, "; not those") {
		t.Errorf("%q", d.Because)
	}
	if p.Approval = ApproveDeny; p.Decide(exec("ls"), "").Do != Deny {
		t.Error("approval deny does not deny")
	}
	if p.Approval = ""; p.Decide(exec("ls"), "").Do != Ask {
		t.Error("without approval nobody is asked")
	}
}

// Every mistake in a document is told, with its line and the nearest word.
func TestMistakes(t *testing.T) {
	_, err := Parse("p.yaml", []byte(`name: x
otherwise: maybe
rules:
- verbs: [delte]
  do: alow
- risk: [hihg]
  do: deny
`))
	want := `p.yaml:2: there is no otherwise "maybe"; known are allow, ask, deny
p.yaml:4: there is no verb "delte"; did you mean "delete"?
p.yaml:5: there is no do "alow"; did you mean "allow"?
p.yaml:6: there is no risk "hihg"; did you mean "high"?`
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Error(diff)
	}
	for text, want := range map[string]string{
		"name: x\nirreversible_in_transactions: ask\n": `p.yaml:2: there is no irreversible_in_transactions "ask"`,
		"name: x\nseverity: {users: -1}\n":             "p.yaml:2: severity needs weights of 0 or more",
		"name: x\nseverity: {alerts: 1}\n":             "p.yaml:2: severity needs weights of 0 or more",
		"name: x\nrule: []\n":                          `p.yaml:2: unknown field "rule"; did you mean "rules"?`, "rules: []": "p.yaml: there is no name",
	} {
		if _, err := Parse("p.yaml", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := Find("carefull"); err == nil || !strings.Contains(err.Error(), "observe, careful, sre, anything") {
		t.Errorf("%v", err)
	}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true},
		{"*", "", true},
		{"a", "a", true},
		{"a", "ab", false},
		{"a*", "ab", true},
		{"*b", "ab", true},
		{"a*c", "abc", true},
		{"a*c", "ac", true},
		{"a*a", "a", false},
		{"a*b*c", "axbxc", true},
		{"a*b*c", "acb", false},
	} {
		if got := match(c.pattern, c.text); got != c.want {
			t.Errorf("%q, %q: %v", c.pattern, c.text, got)
		}
	}
}
