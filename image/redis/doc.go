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
// The applications here use plain commands only. The rest is kept for operators: INFO, CONFIG, SLOWLOG, MONITOR
// and CLIENT are what one reaches for when a service is slow, and snapshots and the append-only file are what
// makes a disk matter. A disk that is full or fails stops writes with MISCONF, as disturbances of I/O are to show,
// and a store on a volume has its data after a restart.
//
// Replies, errors and log lines have redis' words: clients and people compare them.
//
// One command runs at a time, as in the original: a slow one makes all clients wait. There is one exception to its
// formats: the append-only file keeps consumer groups of streams and HyperLogLogs, but snapshots do not.
package redis
