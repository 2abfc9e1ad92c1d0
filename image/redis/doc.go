// Package redis is the store of that name as a [kit.Program], with the image that people write into
// manifests as "redis": redis-server, and redis-cli for whoever looks around in the container.
//
// The commands on data are those of miniredis. Around them is what makes it a server to operate:
// connections and limits, configuration, passwords, INFO, the slow log, MONITOR, logs in redis'
// format, expiry by the clock, memory that is accounted for and evicted, and data that is kept where
// a real one keeps it. Snapshots (dump.rdb) and the append-only file have redis' formats, so redis
// itself reads them; as there, they outlive a container only on a volume.
//
//	registry.Register(redis.Image(tools))
//
// One command runs at a time, as in the original: a slow one makes all clients wait. The exceptions
// to its formats: consumer groups of streams, and HyperLogLogs, are kept by the append-only file but
// not by snapshots.
package redis
