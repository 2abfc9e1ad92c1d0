// Package demopb is how the services of the Astronomy Shop speak to each other: gRPC services and messages, generated
// from demo.proto.
package demopb

//go:generate sh -c "cd ../../.. && protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative app/astronomy/demopb/*.proto"
