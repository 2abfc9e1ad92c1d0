// Package flowerpb is how the parts of a federation speak to each other: gRPC services and messages, generated from
// flower.proto.
package flowerpb

//go:generate sh -c "cd ../../.. && protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative app/flower/flowerpb/*.proto"
