package runbook

import (
	"slices"
	"strings"
	"testing"
)

// deploymentLine and serviceLine are objects as the looks show them.
func deploymentLine(name, more string) string {
	return `{"kind":"Deployment","metadata":{"name":"` + name + `"},"spec":{"replicas":1,"template":{"metadata":{"labels":{"app":"` + name + `"}},"spec":{` + more + `}}}}` + "\n"
}

func serviceLine(name, ports string) string {
	return `{"kind":"Service","metadata":{"name":"` + name + `"},"spec":{"clusterIP":"10.96.0.1","selector":{"app":"` + name + `"},"ports":[` + ports + `]}}` + "\n"
}

const header = "NAME  READY  STATUS  RESTARTS  AGE  IP  NODE  NOMINATED NODE  READINESS GATES\n"

func TestRules(t *testing.T) {
	for _, c := range []struct {
		name    string
		objects string
		rows    string
		probes  string
		want    []kind // of component a
	}{
		{
			"a wrong target port",
			deploymentLine("a", `"containers":[{"ports":[{"containerPort":90}]}]`) + serviceLine("a", `{"port":90,"targetPort":99}`),
			"", "a.n:90 1 0",
			[]kind{wrongPort, silent},
		},
		{
			"a port that nobody uses",
			deploymentLine("a", `"containers":[{"ports":[{"containerPort":90}]}]`) + serviceLine("a", `{"port":90,"targetPort":90},{"port":91,"targetPort":91}`),
			"", "a.n:90 0 0\na.n:91 1 0", nil,
		},
		{
			"a port with a name",
			deploymentLine("a", `"containers":[{"ports":[{"name":"http","containerPort":8080}]}]`) + serviceLine("a", `{"port":80,"targetPort":"http"}`),
			"", "a.n:80 1 0",
			[]kind{silent},
		},
		{
			"no replica", strings.Replace(deploymentLine("a", ""), `"replicas":1`, `"replicas":0`, 1),
			"", "",
			[]kind{scaledToZero},
		},
		{
			"a claim without a volume",
			deploymentLine("a", `"volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"c"}}]`) + `{"kind":"PersistentVolumeClaim","metadata":{"name":"c"},"spec":{"volumeName":"v"},"status":{"phase":"Pending"}}`,
			header + "a-1-2  0/1  Pending  0  5s  <none>  <none>  <none>  <none>", "",
			[]kind{volumeUnbound, silent},
		},
		{
			"a claim that nobody needs",
			deploymentLine("a", "") + `{"kind":"PersistentVolumeClaim","metadata":{"name":"c"},"status":{"phase":"Pending"}}`,
			header + "a-1-2  1/1  Running  0  5s  10.0.0.1  n1  <none>  <none>", "", nil,
		},
		{
			"no node",
			deploymentLine("a", `"nodeSelector":{"x":"y"}`) + `{"kind":"Pod","metadata":{"name":"a-1-2"},"status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","message":"0/3 nodes are available"}]}}`,
			"", "",
			[]kind{unschedulable},
		},
		{
			"out of memory",
			deploymentLine("a", "") + `{"kind":"Pod","metadata":{"name":"a-1-2"},"status":{"phase":"Running","containerStatuses":[{"ready":true,"restartCount":2,"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}]}}`,
			"", "",
			[]kind{outOfMemory},
		},
		{
			"killed",
			deploymentLine("a", "") + `{"kind":"Pod","metadata":{"name":"a-1-2"},"status":{"phase":"Running","containerStatuses":[{"ready":true,"restartCount":2,"lastState":{"terminated":{"exitCode":137,"reason":"Error"}}}]}}`,
			"", "",
			[]kind{killed},
		},
		{
			"killed long ago",
			deploymentLine("a", "") + `{"kind":"Pod","metadata":{"name":"a-1-2"},"status":{"phase":"Running","containerStatuses":[{"ready":true,"restartCount":2,"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled","finishedAt":"2020-01-01T00:00:00Z"}}}]}}`,
			"", "", nil,
		},
		{
			// It gave up while its database started, and works now.
			"restarted and well",
			deploymentLine("a", "") + `{"kind":"Pod","metadata":{"name":"a-1-2"},"status":{"phase":"Running","containerStatuses":[{"ready":true,"restartCount":2,"lastState":{"terminated":{"exitCode":1,"reason":"Error"}}}]}}`,
			"", "", nil,
		},
		{
			"no image",
			deploymentLine("a", "") + `{"kind":"Pod","metadata":{"name":"a-1-2"},"status":{"phase":"Pending","containerStatuses":[{"state":{"waiting":{"reason":"ImagePullBackOff"}}}]}}`,
			"", "",
			[]kind{badImage},
		},
		{
			"a pod that hardly answers",
			deploymentLine("a", `"containers":[{"ports":[{"containerPort":90}]}]`),
			header + "a-1-2  1/1  Running  0  5s  10.0.0.1  n1  <none>  <none>", "10.0.0.1:90 1 2002\n10.0.0.1:90 1 2002\n10.0.0.1:90 0 1",
			[]kind{networkFailing},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSystem("n")
			s.objects(c.objects)
			s.rows = readRows(c.rows)
			s.probes = readProbes(c.probes)
			var got []kind
			for _, f := range s.findings() {
				if f.component != "a" {
					t.Errorf("a finding about %s: %s", f.component, f.evidence)
				}
				got = append(got, f.kind)
			}
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("got kinds %v, want %v", got, c.want)
			}
		})
	}
}
