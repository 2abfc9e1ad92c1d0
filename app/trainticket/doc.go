// Package trainticket is TrainTicket of FudanSELab, its booking path: people find trips between stations, book seats,
// pay for them, cancel them, and get mails about it.
//
//	ts-gateway-service:18888 -> ts-auth-service -> ts-auth-mongo
//	                         -> ts-user-service -> ts-auth-service, ts-user-mongo
//	                         -> ts-travel-service -> ts-station-service, ts-route-service, ts-train-service,
//	                                                 ts-price-service, ts-seat-service, ts-travel-mongo
//	                         -> ts-preserve-service -> ts-user-service, ts-travel-service, ts-seat-service,
//	                                                   ts-order-service, rabbitmq
//	                         -> ts-inside-payment-service -> ts-order-service, ts-payment-service
//	                         -> ts-cancel-service -> ts-order-service, ts-inside-payment-service
//	                         -> ts-notification-service <- rabbitmq
//
// Names, ports and paths are the original's. The answers have its form, {"status": 1, "msg": ..., "data": ...}, and
// what a service tells of a thing is close to what it tells there. The gateway checks tokens and tells the services who
// asks; in the original each service looks at the token itself. A seat is sold for the whole trip.
package trainticket
