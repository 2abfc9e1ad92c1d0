package server

import (
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/mlog"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
	"github.com/aiopslab/aiopslab/image/mongo/internal/wire"
)

// maxWireVersion is that of MongoDB 4.4.
const maxWireVersion = 9

func runHello(k *call) (bson.D, error) {
	if err := k.await(); err != nil {
		return nil, err
	}
	if meta := value.Get(k.body, "client"); value.IsDoc(meta) {
		if k.conn.said() != nil {
			return nil, code.Errorf(186, "The client metadata document may only be sent in the first hello")
		}
		doc := value.Doc(append([]byte(nil), meta.Data...))
		k.conn.client.Store(&doc)
		k.srv.Log.Info(mlog.Network, 51800, k.conn.name(), "client metadata", bson.D{
			{Key: "remote", Value: k.conn.remote()},
			{Key: "client", Value: k.conn.name()},
			{Key: "doc", Value: doc},
		})
	}
	primary := "ismaster"
	if k.name == "hello" {
		primary = "isWritablePrimary"
	}
	reply := bson.D{}
	if value.Truthy(value.Get(k.body, "helloOk")) {
		reply = append(reply, bson.E{Key: "helloOk", Value: true})
	}
	reply = append(reply, bson.D{
		{Key: primary, Value: true},
		{Key: "topologyVersion", Value: bson.D{
			{Key: "processId", Value: k.srv.process},
			{Key: "counter", Value: int64(0)},
		}},
		{Key: "maxBsonObjectSize", Value: int32(value.MaxSize)},
		{Key: "maxMessageSizeBytes", Value: int32(wire.MaxMessage)},
		{Key: "maxWriteBatchSize", Value: int32(maxWriteBatch)},
		{Key: "localTime", Value: time.Now()},
		{Key: "logicalSessionTimeoutMinutes", Value: int32(30)},
		{Key: "connectionId", Value: int32(k.conn.id)},
		{Key: "minWireVersion", Value: int32(0)},
		{Key: "maxWireVersion", Value: int32(maxWireVersion)},
		{Key: "readOnly", Value: false},
	}...)
	if name, ok := value.Str(value.Get(k.body, "saslSupportedMechs")); ok {
		reply = append(reply, k.supportedMechanisms(name)...)
	}
	if spec := value.Get(k.body, "speculativeAuthenticate"); value.IsDoc(spec) {
		if answer := k.speculate(spec.Data); value.Exists(answer) {
			reply = append(reply, bson.E{Key: "speculativeAuthenticate", Value: answer})
		}
	}
	return reply, nil
}

// await holds back the answer to a client that knows the state of the server, which never changes,
// for as long as it allows.
func (k *call) await() error {
	version := value.Get(k.body, "topologyVersion")
	ms, ok := value.Int(value.Get(k.body, "maxAwaitTimeMS"))
	if !value.IsDoc(version) || !ok {
		return nil
	}
	if id, ok := value.Get(version.Data, "processId").ObjectIDOK(); !ok || bson.ObjectID(id) != k.srv.process {
		return nil // It knows another server.
	}
	t := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-k.srv.stopping:
		return nil
	case <-k.ctx.Done():
		return k.ctx.Err()
	}
}

func (k *call) supportedMechanisms(user string) bson.D {
	db, name, _ := strings.Cut(user, ".")
	a := k.srv.access.get(name, db)
	if a == nil {
		return nil
	}
	return bson.D{{Key: "saslSupportedMechs", Value: a.user.Mechanisms()}}
}

func runPing(*call) (bson.D, error) { return bson.D{}, nil }

func runWhatsMyURI(k *call) (bson.D, error) {
	return bson.D{{Key: "you", Value: k.conn.remote()}}, nil
}

func runEndSessions(*call) (bson.D, error) { return bson.D{}, nil }

func runStartSession(k *call) (bson.D, error) {
	id := value.NewUUID()
	return bson.D{{Key: "id", Value: bson.D{{Key: "id", Value: id}}}, {Key: "timeoutMinutes", Value: 30}}, nil
}

func runBuildInfo(*call) (bson.D, error) {
	return bson.D{
		{Key: "version", Value: Version},
		{Key: "gitVersion", Value: GitVersion},
		{Key: "modules", Value: bson.A{}},
		{Key: "allocator", Value: "tcmalloc"},
		{Key: "javascriptEngine", Value: "mozjs"},
		{Key: "sysInfo", Value: "deprecated"},
		{Key: "versionArray", Value: bson.A{4, 4, 6, 0}},
		{Key: "openssl", Value: bson.D{
			{Key: "running", Value: "OpenSSL 1.1.1  11 Sep 2018"},
			{Key: "compiled", Value: "OpenSSL 1.1.1  11 Sep 2018"},
		}},
		{Key: "buildEnvironment", Value: bson.D{
			{Key: "distmod", Value: "ubuntu1804"},
			{Key: "distarch", Value: "x86_64"},
			{Key: "target_arch", Value: "x86_64"},
		}},
		{Key: "bits", Value: 64},
		{Key: "debug", Value: false},
		{Key: "maxBsonObjectSize", Value: value.MaxSize},
		{Key: "storageEngines", Value: bson.A{"biggie", "devnull", "ephemeralForTest", "wiredTiger"}},
	}, nil
}
