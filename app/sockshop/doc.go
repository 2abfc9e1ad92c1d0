// Package sockshop is Sock Shop of Weaveworks: people look at socks, fill a cart, order, and look at their orders.
//
//	front-end:80 -> catalogue -> catalogue-db
//	             -> carts -> carts-db
//	             -> user -> user-db
//	             -> orders -> user, carts, payment, orders-db
//	                       -> shipping -> rabbitmq -> queue-master
//	             -> session-db
//
// Names, ports, images, limits, paths, data and metrics are the original's. Each service is an image of its own, as
// there; catalogue has two versions, of which the older one names the labels of its metrics wrongly.
package sockshop
