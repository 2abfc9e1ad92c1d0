// Package service is what the microservices of an application have in common: a log, traces,
// metrics, HTTP and gRPC servers and clients, and clients of the stores, all over the world of one
// container ([kit.Env]).
//
//	func geo(ctx context.Context, env *kit.Env) error {
//		s, err := service.New(ctx, env, service.Config{Name: "geo"})
//		if err != nil {
//			return err
//		}
//		defer s.Close()
//		srv := s.GRPCServer(costs)
//		geopb.RegisterGeoServer(srv, &server{...})
//		return s.ServeGRPC(ctx, srv, ":8083")
//	}
//
// A service exposes Prometheus metrics on [MetricsPort]: grpc_server_started_total,
// grpc_server_handled_total and grpc_server_handling_seconds (labels grpc_service, grpc_method,
// grpc_code), http_requests_total and http_request_duration_seconds (labels handler, method, code),
// and the process_* and store client metrics. It sends its spans over OTLP to the address in
// OTEL_EXPORTER_OTLP_ENDPOINT, over gRPC or HTTP (OTEL_EXPORTER_OTLP_PROTOCOL), all of them unless
// JAEGER_SAMPLE_RATIO says less.
//
// Nothing here is global: many services share a process.
package service
