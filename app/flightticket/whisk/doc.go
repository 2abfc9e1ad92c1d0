// Package whisk is a small serverless layer with the API of OpenWhisk. An action is a Deployment that has the label
// [Label]; each of its pods runs the server of [Serve], which takes /init and /run as OpenWhisk's runtimes do. The
// controller ([Main]) takes invocations over HTTP:
//
//	POST /api/v1/namespaces/_/actions/NAME?blocking=true&result=true
//	GET  /api/v1/namespaces/_/activations, /activations/ID, /activations/ID/logs, /activations/ID/result
//
// It scales the Deployment of an action from nothing when somebody invokes it, up while invocations wait, and back to
// nothing when its pods have had nothing to do for a while. What it decides that by is in the pods and in Kubernetes,
// so that any number of controllers can run side by side, and one that is started anew knows what it must: a pod tells
// since when it has been idle, and a Deployment how many pods it wants. Somebody else may scale, too.
//
// Everything is bounded: what waits for an action and what runs in all (429 beyond that), the size of what is sent
// (413), the pods of an action, and how many activations are remembered.
package whisk
