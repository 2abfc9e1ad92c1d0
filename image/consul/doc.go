// Package consul is the image hashicorp/consul: a service registry, as one agent in development
// mode. Services register over HTTP, with checks that the agent makes; clients watch them with
// blocking queries or ask over DNS. There is a key-value store, and the command line to look at it
// all. Like a real agent in development mode it keeps everything in memory.
package consul
