// Package campaign runs many runs as one Indexed Job of a Kubernetes cluster: one index a run, each in a pod with the
// embedded cloud inside it.
//
//	c := &campaign.Campaign{Name: "nightly", Plan: plan, Cloud: cluster, Image: "registry.example/aiopslab:v1",
//		Records: campaign.Place{Claim: "records"}, Dir: "results/nightly"}
//	lost, err := c.Run(ctx)
//
// The records are all there is to a campaign's state. They are in a [Store], a volume or a bucket, under the number of
// the run, so that a run which took place twice leaves one record. Whoever starts the campaign again, from whichever
// machine, goes on with what is not recorded. [Worker] is what a pod of the Job does. [Keeper] is one more pod, through
// which the records are listed and gathered: who starts a campaign needs to reach the API server, and nothing else.
//
// Nothing here schedules: which pods run when, and where, is up to the cluster.
package campaign
