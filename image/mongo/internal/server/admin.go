package server

import (
	"runtime"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/mlog"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
	"github.com/aiopslab/aiopslab/kit"
)

// CacheSize is the memory the storage engine takes for its cache: half of what is over one
// gigabyte, and at least 256 megabytes.
func CacheSize(m kit.MemoryInfo) int64 {
	total := m.Total
	if m.Limit > 0 {
		total = min(total, m.Limit)
		if m.Total == 0 {
			total = m.Limit
		}
	}
	return max(256<<20, (total-1<<30)/2)
}

// parameters are what getParameter knows.
func (s *Server) parameters() bson.D {
	return bson.D{
		{Key: "authenticationMechanisms", Value: bson.A{"MONGODB-X509", "SCRAM-SHA-1", "SCRAM-SHA-256"}},
		{Key: "cursorTimeoutMillis", Value: cursorTimeout.Milliseconds()},
		{Key: "enableLocalhostAuthBypass", Value: true},
		{Key: "featureCompatibilityVersion", Value: bson.D{{Key: "version", Value: "4.4"}}},
		{Key: "logLevel", Value: 0},
		{Key: "maxBSONDepth", Value: value.MaxDepth},
		{Key: "quiet", Value: false},
		{Key: "scramIterationCount", Value: 10000},
		{Key: "scramSHA256IterationCount", Value: 15000},
		{Key: "sslMode", Value: s.TLSMode},
		{Key: "tlsMode", Value: s.TLSMode},
		{Key: "ttlMonitorEnabled", Value: true},
		{Key: "ttlMonitorSleepSecs", Value: 60},
	}
}

func runGetParameter(k *call) (bson.D, error) {
	all := false
	if s, ok := value.Str(value.Get(k.body, "getParameter")); ok && s == "*" {
		all = true
	}
	var reply bson.D
	for _, p := range k.srv.parameters() {
		if all || value.Exists(value.Get(k.body, p.Key)) {
			reply = append(reply, p)
		}
	}
	if len(reply) == 0 {
		return nil, code.Errorf(code.InvalidOptions, "no option found to get")
	}
	return reply, nil
}

func runGetLog(k *call) (bson.D, error) {
	switch name, _ := value.Str(value.Get(k.body, "getLog")); name {
	case "*":
		return bson.D{{Key: "names", Value: bson.A{"global", "startupWarnings"}}}, nil
	case "global":
		lines, total := k.srv.Log.Recent()
		return bson.D{{Key: "totalLinesWritten", Value: total}, {Key: "log", Value: lines}}, nil
	case "startupWarnings":
		lines := k.srv.Log.StartupWarnings()
		return bson.D{{Key: "totalLinesWritten", Value: len(lines)}, {Key: "log", Value: lines}}, nil
	default:
		return nil, code.Errorf(code.OperationFailed, "no RamLog named: %s", name)
	}
}

func runGetCmdLineOpts(k *call) (bson.D, error) {
	return bson.D{{Key: "argv", Value: k.srv.Args}, {Key: "parsed", Value: k.srv.Parsed}}, nil
}

func runHostInfo(k *call) (bson.D, error) {
	mem, cpu := k.srv.Env.Memory.Info(), k.srv.Env.CPU.Info()
	return bson.D{
		{Key: "system", Value: bson.D{
			{Key: "currentTime", Value: time.Now()},
			{Key: "hostname", Value: k.srv.Env.Hostname},
			{Key: "cpuAddrSize", Value: 64},
			{Key: "memSizeMB", Value: mem.Total >> 20},
			{Key: "memLimitMB", Value: mem.Limit >> 20},
			{Key: "numCores", Value: cpu.Cores},
			{Key: "cpuArch", Value: map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]},
			{Key: "numaEnabled", Value: false},
		}},
		{Key: "os", Value: bson.D{
			{Key: "type", Value: "Linux"},
			{Key: "name", Value: "Ubuntu"},
			{Key: "version", Value: "18.04"},
		}},
		{Key: "extra", Value: bson.D{}},
	}, nil
}

func runCurrentOp(k *call) (bson.D, error) {
	k.srv.mu.Lock()
	list := make([]*conn, 0, len(k.srv.conns))
	for c := range k.srv.conns {
		list = append(list, c)
	}
	k.srv.mu.Unlock()
	slices.SortFunc(list, func(a, b *conn) int { return int(a.id - b.id) })
	ops := bson.A{}
	for _, c := range list {
		op := bson.D{
			{Key: "type", Value: "op"},
			{Key: "host", Value: k.srv.Env.Hostname},
			{Key: "desc", Value: c.name()},
			{Key: "connectionId", Value: c.id},
			{Key: "client", Value: c.remote()},
			{Key: "active", Value: c == k.conn},
		}
		if c == k.conn {
			op = append(op, bson.E{Key: "op", Value: "command"}, bson.E{Key: "ns", Value: k.db + ".$cmd"},
				bson.E{Key: "command", Value: k.body})
		}
		if c == k.conn || k.flag("$all") {
			ops = append(ops, op)
		}
	}
	return bson.D{{Key: "inprog", Value: ops}}, nil
}

func runReplSetGetStatus(*call) (bson.D, error) {
	return nil, code.Errorf(code.NoReplicationEnabled, "not running with --replSet")
}

func runShutdown(k *call) (bson.D, error) {
	k.srv.Log.Info(mlog.Command, 20475, k.conn.name(), "Terminating via shutdown command",
		bson.D{{Key: "cmdObj", Value: k.body}})
	k.srv.fail(nil)
	<-k.ctx.Done() // The client sees its connection close.
	return nil, k.ctx.Err()
}

func runFsync(k *call) (bson.D, error) {
	return bson.D{{Key: "numFiles", Value: 1}}, k.srv.Engine.Sync()
}

func runListCommands(*call) (bson.D, error) {
	list := bson.D{}
	for _, name := range commandNames() {
		c := commands[name]
		list = append(list, bson.E{
			Key:   name,
			Value: bson.D{{Key: "adminOnly", Value: c.admin}, {Key: "requiresAuth", Value: !c.open}},
		})
	}
	return bson.D{{Key: "commands", Value: list}}, nil
}

// runOK is for commands that have nothing to do here.
func runOK(*call) (bson.D, error) { return bson.D{}, nil }

func runNoTransaction(*call) (bson.D, error) {
	return nil, code.Errorf(code.IllegalOperation,
		"Transaction numbers are only allowed on a replica set member or mongos")
}
