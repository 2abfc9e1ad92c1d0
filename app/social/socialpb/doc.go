// Package socialpb is how the services of SocialNetwork speak to each other: gRPC services and
// messages, generated from social.proto.
package socialpb

//go:generate sh -c "cd ../../.. && protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative app/social/socialpb/*.proto"
