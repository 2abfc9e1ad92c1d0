package aci

import "testing"

func TestTold(t *testing.T) {
	for _, tt := range []struct{ response, said, call string }{
		{"Thought: pods?\nAction:\n```\nexec_shell(\"kubectl get pods\")\n```", "pods?", "$ kubectl get pods"},
		{"```\nexec_shell(command=\"ls\", timeout=5)\n```", "", "$ ls"},
		{"I give up.", "I give up.", ""},
		{"```\nsubmit([\"geo\", \"rate\"])\n```", "", `submit(["geo","rate"])`},
		{"```\nget_logs(\"ns\", tail=3, service=\"geo\")\n```", "", `get_logs("ns", service="geo", tail=3)`},
	} {
		if said, call := Told(tt.response); said != tt.said || call != tt.call {
			t.Errorf("%q: %q, %q", tt.response, said, call)
		}
	}
}
