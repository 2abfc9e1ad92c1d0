// Package observe is the telemetry of a cluster: metrics, alerts, traces and logs, for whoever has
// the Kubernetes API and a way to dial into the cluster. It knows no cloud.
//
//	o, err := observe.New(c.RESTConfig(), c.Dial, cloud.TenancyOf(c))
//	if err != nil {
//		return err
//	}
//	if err := o.Deploy(ctx, nil); err != nil {
//		return err
//	}
//	alerts, err := o.Alerts(ctx, "test-hotel-reservation")
//	traces, err := o.Jaeger("test-hotel-reservation").Search(ctx, observe.TraceQuery{Service: "frontend"})
//	lines, err := o.Logs(ctx, observe.LogQuery{Namespace: "test-hotel-reservation", Service: "geo", Level: "error"})
//	w := observe.Window{Namespace: "test-hotel-reservation", From: from, To: to}
//	dir, err := o.Export(ctx, w, ".", observe.CSV)
//
// Deploy applies the manifests below manifests/: Prometheus with kube-state-metrics in namespace
// "observe", under the names AIOpsLab's chart gives them (service prometheus-server, port 80). An
// application brings its own Jaeger, as service "jaeger" in its namespace.
//
// # What a service exposes
//
// A pod is scraped if it has the annotation prometheus.io/scrape: "true", on the port of
// prometheus.io/port (by convention 9464) and the path /metrics. Prometheus adds the labels
// namespace, pod, node, and service, which is the pod's label service, io.kompose.service, app,
// app.kubernetes.io/name or name; the last is a label name as well. The recording and alerting rules
// read these metrics, under the names of the Prometheus conventions and of go-grpc-middleware:
//
//	http_requests_total               counter    handler, method, code
//	http_request_duration_seconds     histogram  handler, method, code
//	grpc_server_handled_total         counter    grpc_type, grpc_service, grpc_method, grpc_code
//	grpc_server_handling_seconds      histogram  grpc_type, grpc_service, grpc_method
//	store_request_duration_seconds    histogram  system, operation, result ("ok" or "error")
//
// A status of 5xx is an error over HTTP. Over gRPC it is any code that blames the server: Unknown,
// DeadlineExceeded, ResourceExhausted, Aborted, Unimplemented, Internal, Unavailable and DataLoss.
//
// # Alerts
//
// The rules are named after the symptoms SREGym alerts on: PodStatusError, FailedPods, PendingPods,
// PodSchedulingFailure, KubePodNotReady, ContainerCPUThrottling, DeploymentNotReady,
// ServiceEndpointDown, HighRequestErrorRate (for http, grpc and store), HighRequestLatency and
// HighRequestRate. They are pending for 5 to 30 seconds before they fire:
// what pods are away for while they are replaced is less.
package observe
