// Package mongo is the image mongo: a MongoDB server, its shell, and the entry point that sets a new
// database up.
//
// The server speaks the wire protocol of MongoDB 4.4 as a standalone: CRUD with indexes and cursors, aggregation,
// users and roles with SCRAM authentication, TLS. Its data are in files under --dbpath and survive a restart if
// the volume does, even if the last write is lost. What needs a replica set or a shard fails the way it does in a
// standalone. Every tag of the image is this release.
//
//	registry.Register(mongo.Image(shell.Tools()))
//
// The applications here find, insert and update. Aggregation is kept for operators: drivers count documents with a
// pipeline, and $match, $group, $sort and $lookup are how one looks for what is wrong in data from mongosh.
// Errors, codes and log lines have MongoDB's words: drivers and people compare them.
//
// The parts are internal packages: value (BSON in place), query, update, expr and aggregate (what is
// done to documents), engine (storage), auth, wire, server (commands) and shell (mongosh).
package mongo
