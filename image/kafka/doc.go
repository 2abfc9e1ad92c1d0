// Package kafka is Apache Kafka as a [kit.Program], with the image that people write into manifests as "apache/kafka":
// one broker, and the tools of /opt/kafka/bin that operators use, for topics, consumer groups and messages.
//
// The protocol, the log and the groups are those of kfake, the broker of franz-go. Around them is what makes it a
// server to operate: settings from KAFKA_ variables, logs in Kafka's format, metrics for Prometheus, retention by size,
// and memory that is accounted for.
//
//	registry.Register(kafka.Image(tools))
//
// kfake was written for tests, whose clients mean well. So no request gets to it that was not read by a [gate] before:
// sizes, names and counts are bounded there, what the broker does not have is refused there, and what it takes to keep
// what a client asks for is stated to the container first. The broker has no transactions, no share groups, no access
// control and no TLS. Its log is in memory: as in the public image, it goes with the container.
package kafka
