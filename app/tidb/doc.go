// Package tidb is a bank whose accounts are in a TiDB cluster that an operator runs: AIOpsLab's application "TiDB with
// operator", with users.
//
// The cluster is the TidbCluster basic: three servers of PD, three stores of TiKV and two servers of TiDB, which the
// operator (Deployment tidb-controller-manager) makes and keeps. The bank is ours: two pods that take requests over
// HTTP and keep all they know in TiDB.
package tidb
