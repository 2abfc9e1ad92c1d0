// Package flightticket is FlightTicket: people search flights, book seats, pay, read their orders and cancel them. It
// is made of functions. The application has no server of its own but the serverless layer ([whisk]), which starts the
// pods of a function when somebody invokes it and takes them away when nobody does:
//
//	owdev-controller (HTTP :3233)   takes invocations, scales the functions' Deployments
//	  query-for-travel              -> query-for-station-id-by-station-name, get-train-type-by-train-type-id,
//	                                   get-route-by-route-id, get-price-by-route-id-and-train-type
//	  seat-service                  -> get-route-by-trip-id -> get-route-by-route-id
//	                                -> get-train-type-by-trip-id -> get-train-type-by-train-type-id
//	                                -> get-sold-tickets, query-config-entity-by-config-name
//	  save-order-info               -> drawback
//	  cancel-service                -> get-order-by-id, save-order-info, drawback
//	  redis                         has flights, seats, orders and accounts, and the records of activations
//
// Functions invoke each other through the layer. [Images] has the programs, [App] the manifests that deploy them.
package flightticket
