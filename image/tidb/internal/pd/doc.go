// Package pd is PD, the placement driver: it knows the members of a TiDB cluster's control, its stores and their state,
// and serves the part of PD's HTTP API that people and the operator use.
//
// The servers of a PD cluster find each other by the DNS name of their headless Service and tell each other every
// second whom they know. A server leads if it is the first by name of those that answer, and these are more than half
// of all members; without a leader there is no time (TSO), and TiDB does not answer. What a server knows of stores
// comes from the stores, which report to all servers. So there is no log to replicate, and a new server knows all
// there is to know after a second. What must outlast a restart (members, the identity of the cluster, stores that are
// to go) is a file in the data directory.
package pd
