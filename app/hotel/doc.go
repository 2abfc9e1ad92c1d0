// Package hotel is HotelReservation: eight Go services that speak gRPC to each other, find each
// other through Consul, and keep their data in MongoDB and memcached. Visitors reach the frontend
// over HTTP.
//
//	frontend (HTTP :5000)
//	  /hotels           search -> geo, rate; reservation; profile
//	  /recommendations  recommendation; profile
//	  /user             user
//	  /reservation      user; reservation
//
// Names, ports, topology and data are those of DeathStarBench's application. [Image] has all
// services as programs; [App] has the manifests that deploy them with their stores.
package hotel
