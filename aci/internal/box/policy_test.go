package box

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPolicy(t *testing.T) {
	for _, tt := range []struct {
		command string
		args    string // what is run; "" if it is the command itself
		refuse  string // part of the reply if it is refused
		note    string // part of the note
	}{
		{command: "kubectl get pods -n shop"},
		{command: "kubectl edit svc user-service", refuse: "Error: Cannot use `kubectl edit`. Use `kubectl patch` instead."},
		{command: "kubectl -n shop edit deployment geo", refuse: "Use `kubectl patch` instead."},
		{command: "kubectl --namespace shop --v 3 edit cm x", refuse: "Use `kubectl patch` instead."},
		{command: "/usr/bin/kubectl edit svc x", refuse: "Use `kubectl patch` instead."},
		{command: "kubectl get svc edit"},
		{command: "kubectl describe cm kubectl-edit"},
		{command: "kubectl annotate pod x note=edit"},
		{command: "kubectl port-forward svc/geo 80", refuse: "Error: Cannot use `kubectl port-forward` because it is an interactive command."},
		{command: "kubectl -n shop port-forward pod/x 1:2", refuse: "curl http://SERVICE.NAMESPACE:PORT"},
		{command: "kubectl proxy --port 8001", refuse: "kubectl get --raw"},
		{command: "kubectl attach -it x", refuse: "kubectl logs"},
		{command: "kubectl diff -f x.yaml", refuse: "--dry-run=server"},
		{command: "kubectl create deployment x --image y --edit", refuse: "kubectl apply -f FILE"},
		{command: "kubectl logs -f geo", args: "kubectl logs geo", note: "Cannot use `kubectl logs -f`, which never ends; `kubectl logs` was used instead."},
		{command: "kubectl -n x logs -f geo", args: "kubectl -n x logs geo", note: "kubectl logs"},
		{command: "kubectl logs geo --follow --tail=5", args: "kubectl logs geo --tail=5", note: "kubectl logs"},
		{command: "kubectl logs geo --follow=false"},
		{command: "kubectl logs -fl app=geo", args: "kubectl logs -l app=geo", note: "kubectl logs"},
		{command: "kubectl logs -pf geo", args: "kubectl logs -p geo", note: "kubectl logs"},
		{command: "kubectl logs -nfoo geo"},
		{command: "kubectl get pods -w", args: "kubectl get pods", note: "kubectl get -w"},
		{command: "kubectl get pods -Aw", args: "kubectl get pods -A", note: "kubectl get -w"},
		{command: "kubectl get pods --watch", args: "kubectl get pods", note: "kubectl get -w"},
		{command: "kubectl get pods -o wide -owide"},
		{command: "kubectl events --watch", args: "kubectl events", note: "kubectl events -w"},
		{command: "kubectl exec -it geo -- sh -c ls", args: "kubectl exec -i geo -- sh -c ls", note: "no terminal"},
		{command: "kubectl exec -ti geo -- top -t", args: "kubectl exec -i geo -- top -t", note: "no terminal"},
		{command: "kubectl exec --stdin --tty geo -- ls", args: "kubectl exec --stdin geo -- ls", note: "no terminal"},
		{command: "kubectl exec geo -- watch -t ls"},
		{command: "kubectl run x --rm -it --image=busybox -- ls", args: "kubectl run x --rm -i --image=busybox -- ls", note: "no terminal"},
		{command: "kubectl rollout status deployment/geo", args: "kubectl rollout status --timeout=28s deployment/geo"},
		{command: "kubectl rollout status deployment/geo --timeout=5s"},
		{command: "kubectl rollout restart deployment/geo"},
		{command: "docker logs -f x", refuse: "Error: Cannot use `docker logs -f`. Use `docker logs` instead."},
		{command: "docker ps", refuse: "kubectl logs"},
		{command: "watch kubectl get pods", refuse: "never ends"},
		{command: "top", refuse: "kubectl top pods"},
		{command: "vim x", refuse: "sed -i"},
		{command: "ssh node-1", refuse: "kubectl exec"},
		{command: "sleep 5"},
		{command: "sleep 600", refuse: "timeout="},
		{command: "sleep 1m", refuse: "Cannot sleep for 1m0s"},
		{command: "sleep infinity", refuse: "timeout="},
		{command: "tail -f x", args: "tail x", note: "tail -f"},
		{command: "tail -fn 5 x", args: "tail -n 5 x", note: "tail -f"},
		{command: "tail -n 5 x"},
		{command: "ping geo", args: "ping -c 4 geo", note: "-c 4"},
		{command: "ping -c 2 geo"},
		{command: "kubectl config set-credentials me --exec-command=/bin/sh", refuse: "--token=TOKEN"},
		{command: "kubectl config set-credentials me --auth-provider oidc", refuse: "--token=TOKEN"},
		{command: "kubectl config set-credentials me --token=x"},
		{command: "helm plugin install x", refuse: "no plugins"},
		{command: "helm upgrade x y --post-renderer z", refuse: "helm template"},
		{command: "helm list -A"},
		{command: "python3 -c pass", refuse: "jq"},
		{command: "less x"},
	} {
		args := strings.Fields(tt.command)
		v := judge(args, 30*time.Second)
		if tt.refuse != "" {
			if !strings.Contains(v.refuse, tt.refuse) || !strings.HasPrefix(v.refuse, "Error: ") {
				t.Errorf("%s: %+v", tt.command, v)
			}
			continue
		}
		want := args
		if tt.args != "" {
			want = strings.Fields(tt.args)
		}
		if v.refuse != "" || !slices.Equal(v.args, want) || !strings.Contains(v.note, tt.note) || (v.note == "") != (tt.note == "") {
			t.Errorf("%s: %+v", tt.command, v)
		}
	}
}

// The policy sees commands as they run, whoever runs them.
func TestPolicyCannotBeHidden(t *testing.T) {
	b := newTestBox(t)
	for _, command := range []string{
		"kubectl  'ed'it svc x", "v=edit; kubectl $v svc x", "k=kubectl; $k -n shop edit svc x", "echo edit svc x | xargs kubectl",
		"sh -c 'kubectl edit svc x'", "eval kubectl edit svc x", "kubectl $(echo edit) svc x", "timeout 5 kubectl edit svc x", "env A=1 kubectl edit svc x",
		"f() { command kubectl edit svc x; }; f", "sudo kubectl edit svc x", "/bin/kubectl edit svc x", "echo 'kubectl edit svc x' > s; bash s",
		"find /etc/hosts -exec kubectl edit {} +", "true && ! { kubectl edit svc x; } || kubectl edit svc x",
	} {
		o := run(t, b, command)
		if !strings.Contains(o.Output, "Use `kubectl patch` instead.") {
			t.Errorf("%s: %+v", command, o)
		}
	}
	if o := run(t, b, "kubectl logs -f geo"); o.Output != "Note: Cannot use `kubectl logs -f`, which never ends; `kubectl logs` was used instead.\nkubectl logs geo\n" {
		t.Errorf("%q", o.Output)
	}
	// What is no command is not judged.
	if o := run(t, b, "echo kubectl edit; grep 'kubectl port-forward' /etc/hosts; kubectl annotate svc edit"); strings.Contains(o.Output, "Error") {
		t.Errorf("%q", o.Output)
	}
	if o := run(t, b, "docker ps || echo $?"); !strings.HasSuffix(o.Output, "\n1\n") {
		t.Errorf("%q", o.Output)
	}
}

func TestPaths(t *testing.T) {
	for _, tt := range []struct{ cwd, command, want string }{
		{"/root", "kubectl apply -f x.yaml", ""},
		{"/root", "kubectl apply -f /tmp/x.yaml", "kubectl apply -f @/tmp/x.yaml"},
		{"/root", "kubectl apply -f/tmp/x.yaml", "kubectl apply -f@/tmp/x.yaml"},
		{"/root", "kubectl apply -f=/tmp/x.yaml --dry-run=server", "kubectl apply -f=@/tmp/x.yaml --dry-run=server"},
		{"/root", "kubectl apply --filename=/tmp/x.yaml,/tmp/y.yaml", "kubectl apply --filename=@/tmp/x.yaml,@/tmp/y.yaml"},
		{"/tmp", "kubectl apply -f ../a/x.yaml", "kubectl apply -f @/a/x.yaml"},
		{"/tmp", "kubectl apply -f ../../../../etc/passwd", "kubectl apply -f @/etc/passwd"},
		{"/tmp", "kubectl apply -f - -n x", ""},
		{"/tmp", "kubectl apply -f /dev/stdin", "kubectl apply -f -"},
		{"/tmp", "kubectl apply -f https://example.com/x.yaml", ""},
		{"/tmp", "kubectl logs -f /x", ""},
		{"/tmp", "kubectl apply -k /k", "kubectl apply -k @/k"},
		{"/tmp", "kubectl kustomize /k", "kubectl kustomize @/k"},
		{"/tmp", "kubectl create cm x --from-file=key=/f --from-file /g --from-literal=a=/b", "kubectl create cm x --from-file=key=@/f --from-file @/g --from-literal=a=/b"},
		{"/tmp", "kubectl create cm x --from-env-file=/f", "kubectl create cm x --from-env-file=@/f"},
		{"/tmp", "kubectl patch svc x --patch-file /f -p /json", "kubectl patch svc x --patch-file @/f -p /json"},
		{"/tmp", "kubectl cp /tmp/x shop/geo-1:/tmp/y -c geo", "kubectl cp @/tmp/x shop/geo-1:/tmp/y -c geo"},
		{"/tmp", "kubectl cp geo-1:/tmp/y /out/", "kubectl cp geo-1:/tmp/y @/out/"},
		{"/tmp", "kubectl exec x -- cat -f /etc/passwd", ""},
		{"/tmp", "kubectl get pods -o jsonpath-file=/f -o=custom-columns-file=/g -o json", "kubectl get pods -o jsonpath-file=@/f -o=custom-columns-file=@/g -o json"},
		{"/tmp", "kubectl get pods -ojsonpath-file=/f -Aojsonpath-file=/g", "kubectl get pods -ojsonpath-file=@/f -Aojsonpath-file=@/g"},
		{"/tmp", "kubectl get pods -o=jsonpath-file=/f -A -o go-template-file=/g", "kubectl get pods -o=jsonpath-file=@/f -A -o go-template-file=@/g"},
		{"/tmp", "kubectl apply -Rf /d -f=/e", "kubectl apply -Rf @/d -f=@/e"},
		{"/tmp", "kubectl get pods -nfoo -lapp=/f -owide", ""},
		{"/tmp", "kubectl get --raw /metrics", ""},
		{"/tmp", "kubectl --kubeconfig /k get pods", "kubectl --kubeconfig @/k get pods"},
		{"/tmp", "helm install r /charts/x -f /v.yaml --set a=/b --set-file k=/f", "helm install r @/charts/x -f @/v.yaml --set a=/b --set-file k=@/f"},
		{"/tmp", "helm upgrade r ../x", "helm upgrade r @/x"},
		{"/tmp", "helm list -n shop", ""},
	} {
		args := strings.Fields(tt.command)
		r := &rewriter{tool: args[0], dir: "/host/scratch", cwd: tt.cwd, open: func(string) (string, bool) { return "", false }}
		want := tt.command
		if tt.want != "" {
			want = strings.ReplaceAll(tt.want, "@", "/host/scratch")
		}
		if got := strings.Join(r.args(args), " "); got != want {
			t.Errorf("%s: %s, want %s", tt.command, got, want)
		}
	}
}

func TestHider(t *testing.T) {
	text := "a /host/dir/tmp/x /host/dir /host/di /host/direct /host/dir"
	want := strings.ReplaceAll(text, "/host/dir", "")
	for size := 1; size <= len(text); size++ {
		var b strings.Builder
		h := &hider{w: &b, what: []byte("/host/dir")}
		for chunk := range slices.Chunk([]byte(text), size) {
			_, _ = h.Write(chunk)
		}
		h.flush()
		if b.String() != want {
			t.Errorf("in pieces of %d: %q, want %q", size, b.String(), want)
		}
	}
}
