// Package rabbitmq is RabbitMQ as a [kit.Program], with the image that people write into manifests as "rabbitmq": one
// node that speaks AMQP 0-9-1, and rabbitmqctl.
//
// It has direct, fanout and topic exchanges, queues with consumers, prefetch, acknowledgements and redelivery,
// returns of what cannot be routed, publisher confirms, users with passwords and permissions, a limit to its memory at
// which publishers have to wait, and metrics as the plugin rabbitmq_prometheus has them. Durable exchanges and queues,
// and persistent messages in them, are kept below /var/lib/rabbitmq.
//
//	registry.Register(rabbitmq.Image(tools))
//
// There is one virtual host and no cluster, no TLS, no management API. Transactions, headers exchanges, dead letters,
// quorum queues and streams are refused with NOT_IMPLEMENTED.
package rabbitmq
