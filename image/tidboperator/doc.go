// Package tidboperator is the image pingcap/tidb-operator: tidb-controller-manager, which makes a TiDB cluster of each
// TidbCluster of its namespace and keeps it as its specification says.
//
// It makes what TiDB Operator makes, under the same names and with the same labels: Services, ConfigMaps, and one
// StatefulSet each for PD, TiKV and TiDB. Components are created and updated in this order, the next when the one
// before is done. It scales by one pod at a time, the next when all are ready, and has PD take members and stores out
// before their pods go. When the storage class of a component changes, the StatefulSet is made anew around its pods and
// their claims are replaced one by one, as TiDB Operator does with the feature VolumeReplacing. What the API server
// refuses is an event FailedUpdate of the TidbCluster, a line in the log, and tried again.
//
// It has no failover (maxFailoverCount is always 0), and does not touch persistent volumes (pvReclaimPolicy).
package tidboperator
