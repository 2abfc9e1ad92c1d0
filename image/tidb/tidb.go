// Package tidb has the images of a TiDB cluster: pingcap/pd, pingcap/tikv and pingcap/tidb.
//
// They work as the originals are used by applications and by who looks around: PD knows members and stores, TiKV keeps
// the data on several stores by Raft, TiDB speaks MySQL's protocol and keeps nothing. Underneath it is SQLite, and the
// data is one region: see the packages in internal for what that means.
package tidb

import (
	"context"
	"regexp"

	"github.com/aiopslab/aiopslab/image/tidb/internal/client"
	"github.com/aiopslab/aiopslab/image/tidb/internal/kv"
	"github.com/aiopslab/aiopslab/image/tidb/internal/pd"
	"github.com/aiopslab/aiopslab/image/tidb/internal/sql"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	// tags are the versions that there are.
	tags = `v8\.(1\.[0-2]|5\.[0-2])`
	// VersionVariable is the environment variable by which a program learns which version it is: all tags of a name are
	// one image.
	VersionVariable = "RELEASE_VERSION"
	defaultVersion  = "v8.1.0"
)

var wellFormed = regexp.MustCompile("^(?:" + tags + ")$")

// versioned is a program of the version that the container is told.
func versioned(program func(version string) kit.Program) kit.Program {
	return func(ctx context.Context, env *kit.Env) error {
		v := env.Getenv(VersionVariable)
		if !wellFormed.MatchString(v) {
			v = defaultVersion
		}
		return program(v)(ctx, env)
	}
}

// Images are all of them. The tools, by name, are what they have in /bin.
func Images(tools map[string]kit.Program) []kit.Image {
	return []kit.Image{
		image("pingcap/pd", tools, map[string]kit.Program{
			"/pd-server": versioned(pd.Main), "/pd-ctl": pd.Ctl,
		}, "/pd-server", "/var/lib/pd/", 20<<20, 180<<20),
		image("pingcap/tikv", tools, map[string]kit.Program{
			"/tikv-server": versioned(kv.Main),
		}, "/tikv-server", "/var/lib/tikv/", 48<<20, 400<<20),
		image("pingcap/tidb", tools, map[string]kit.Program{
			"/tidb-server": versioned(sql.Main), "/usr/bin/mysql": client.Main(sql.Port),
		}, "/tidb-server", "/var/log/tidb/", 40<<20, 250<<20),
	}
}

func image(name string, tools, programs map[string]kit.Program, main, dir string, memory, size int64) kit.Image {
	for n, tool := range tools {
		programs["/bin/"+n] = tool
	}
	return kit.Image{
		Names: []string{name}, Tags: tags, Entrypoint: []string{main}, Programs: programs,
		Vars:   map[string]string{"PATH": "/:" + kit.DefaultPath},
		Files:  map[string]string{dir: "", "/tmp/": "", "/etc/passwd": "root:x:0:0:root:/root:/bin/sh\n"},
		Memory: memory, Size: size,
	}
}
