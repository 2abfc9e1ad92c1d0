// Package social is SocialNetwork: users follow each other, compose posts with mentions, links and
// media, and read timelines. Eleven services speak gRPC to each other and keep their data in
// MongoDB, Redis and memcached; nginx-thrift is the HTTP API in front, media-frontend stores
// pictures.
//
//	nginx-thrift (HTTP :8080)
//	  compose   compose-post -> unique-id, text (-> url-shorten, user-mention), user, media;
//	            then post-storage, user-timeline, home-timeline (-> social-graph)
//	  read      user-timeline, home-timeline -> post-storage
//	  users     user -> social-graph
//
// Names, ports and topology are those of DeathStarBench's application, with gRPC in place of Thrift.
// [Image] has the services as programs; [App] has the manifests that deploy them.
package social
