package tidb

import (
	"embed"

	"github.com/aiopslab/aiopslab/app"
)

//go:embed manifests/*.yaml mixes/*.yaml
var files embed.FS

// App is the bank with its TiDB cluster.
func App() *app.App {
	return &app.App{
		Name: "tidb-cluster", Title: "TiDB Cluster with Operator", Namespace: "tidb-cluster",
		Description: "A bank that keeps its accounts in a TiDB cluster. The cluster, with servers of PD, TiKV and " +
			"TiDB, is run by TiDB Operator, which makes it of the TidbCluster resource basic and keeps it as that " +
			"says.",
		Operations: []string{
			"Send money from one account to another",
			"Look at an account, and at what was sent to it",
			"Check that the money of all accounts is what it was",
		},
		Manifests: app.Embedded(files, "manifests"),
		Frontend:  app.Endpoint{Service: "bank", Port: 8080},
		Label:     "app",
		Services: []app.Service{
			{Name: "bank", Kind: "service", Calls: []string{"basic-tidb"}, Ask: questions["bank"]},
			{
				Name: "basic-tidb", Kind: "infrastructure", Calls: []string{"basic-pd", "basic-tikv"},
				Ask: questions["basic-tidb"], Port: 4000,
			},
			{Name: "basic-tikv", Kind: "infrastructure", Calls: []string{"basic-pd"}},
			{Name: "basic-pd", Kind: "infrastructure", Ask: questions["basic-pd"], Port: 2379},
			{Name: "tidb-controller-manager", Kind: "infrastructure", Calls: []string{"basic-pd"}, Worker: true},
			{Name: "jaeger", Kind: "infrastructure", Ask: questions["jaeger"], Port: 16686},
		},
		Mix:   "bank",
		Mixes: app.Embedded(files, "mixes"),
		Heard: []string{"/accounts/1?as={words}"},
	}
}
