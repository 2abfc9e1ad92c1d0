// Package resourceconsumer is the image registry.k8s.io/e2e-test-images/resource-consumer: a server
// that uses as much CPU and memory, for as long, as requests ask for. Autoscalers are tested with it.
//
//	POST /ConsumeCPU   millicores=300&durationSec=60
//	POST /ConsumeMem   megabytes=200&durationSec=60
//
// It states what it uses to its container, whose limits throttle or kill it.
package resourceconsumer
