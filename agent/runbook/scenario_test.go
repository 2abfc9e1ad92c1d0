package runbook

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
)

// looks are the calls that only look, by a part of them, and the name of the file with what came of
// them.
var looks = []struct{ part, name string }{
	{"# brief KIND", "helpers"},
	{"get_alerts", "alerts"},
	{"get_topology", "topology"},
	{"get_logs", "last-words"},
	{"-o wide", "pods"},
	{"kubectl get pods", "ill-pods"},
	{"kubectl get deployments", "deployments"},
	{"kubectl get services", "services"},
	{"kubectl get replicasets", "history"},
	{"measure ", "metrics"},
	{"kubectl logs", "logs"},
	{"connect ", "connections"},
	{"kubectl get events", "events"},
	{"kubectl get configmap -n", "configuration"},
	{"kubectl get pv", "volumes"},
	{"kubectl wait", "wait"},
}

// TestScenarios goes through incidents that were recorded: files with what each look showed. The
// comment above them has the task, and what the agent changes or submits.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			task, want, _ := strings.Cut(strings.TrimSpace(string(a.Comment)), "\n")
			got := play(t, problem.Task(task), a.Files)
			if want := strings.TrimSpace(want); got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// play returns what the agent changes and submits. A look that is repeated shows the next file of its
// name, or the last again.
func play(t *testing.T, task problem.Task, files []txtar.File) string {
	t.Helper()
	r, err := newRunbook(agent.Briefing{Task: task, Namespace: "n"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.(*runner).Close()
	var did []string
	seen := map[string]int{}
	observation := ""
	for range 40 {
		response, err := r.Act(t.Context(), observation+"\n"+aci.NextAction)
		if err != nil {
			t.Fatal(err)
		}
		call, err := aci.Parse(response)
		if err != nil {
			t.Fatal(err)
		}
		_, text, _ := strings.Cut(response, "```\n")
		text = strings.TrimSuffix(text, "\n```")
		at := slices.IndexFunc(looks, func(l struct{ part, name string }) bool {
			return strings.Contains(text, l.part) && !strings.Contains(text, "kubectl replace") && !strings.Contains(text, "kubectl patch")
		})
		if at < 0 {
			did = append(did, text)
			observation = ""
		} else {
			observation = show(files, looks[at].name, seen)
		}
		if call.Name == "submit" {
			return strings.Join(did, "\n")
		}
	}
	t.Fatal("no submission")
	return ""
}

func show(files []txtar.File, name string, seen map[string]int) string {
	var list []string
	for _, f := range files {
		if f.Name == name {
			list = append(list, string(f.Data))
		}
	}
	if len(list) == 0 {
		return ""
	}
	n := min(seen[name], len(list)-1)
	seen[name]++
	return list[n]
}
