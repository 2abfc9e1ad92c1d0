// Package hotelpb is how the services of HotelReservation speak to each other: gRPC services and
// messages, generated from the .proto files here.
package hotelpb

//go:generate sh -c "cd ../../.. && protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative app/hotel/hotelpb/*.proto"
