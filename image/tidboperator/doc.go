// Package tidboperator is the image pingcap/tidb-operator: tidb-controller-manager, which makes a TiDB cluster of each
// TidbCluster of its namespace and keeps it as its specification says.
//
// It makes what TiDB Operator makes, under the same names and with the same labels: Services, ConfigMaps, and one
// StatefulSet each for PD, TiKV and TiDB. Components are created and updated in this order, the next when the one
// before is done. It scales by one pod at a time, the next when all are ready, and has PD take members and stores out
// before their pods go. In an update of TiKV a pod goes when its store leads nothing any more. When the storage class
// of a component changes, the StatefulSet is made anew around its pods and their claims are replaced one by one, as
// TiDB Operator does with the feature VolumeReplacing. What the API server refuses is an event FailedUpdate of the
// TidbCluster, a line in the log, and tried again.
//
// Who has failed for five minutes (--pd-failover-period, --tikv-failover-period, --tidb-failover-period) gets another
// pod beside it, up to maxFailoverCount of the component, 3 if that says nothing: a server of TiDB that is not ready, a
// store that PD calls Down, a member of PD that does not answer, which is also taken out and made anew with an empty
// volume. The status has them as failureMembers and failureStores. The added pods go when all are well again, those of
// TiKV only by recoverFailover or failover.recoverByUID. --auto-failover=false switches it off.
//
// It does not touch persistent volumes (pvReclaimPolicy).
package tidboperator
