package redis

import (
	"context"

	"github.com/aiopslab/aiopslab/kit"
)

// brand is the name that a server goes by. Valkey came of Redis and has kept its protocol, files and commands.
type brand struct {
	name, title string // in names of programs, and in sentences
	version     string // its own
	compatible  string // the release of Redis whose clients it takes
}

var (
	redisBrand  = brand{"redis", "Redis", Version, Version}
	valkeyBrand = brand{"valkey", "Valkey", ValkeyVersion, "7.2.4"}
)

// Main is redis-server.
func Main(ctx context.Context, env *kit.Env) error { return redisBrand.serve(ctx, env) }

// CLI is redis-cli, the client that people run in the container.
func CLI(ctx context.Context, env *kit.Env) error { return redisBrand.cli(ctx, env) }
