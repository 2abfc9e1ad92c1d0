package kafka

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// journal writes lines as Kafka's log4j does.
type journal struct {
	mu  sync.Mutex
	out io.Writer
}

func (j *journal) line(level, class, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fmt.Fprintf(j.out, "[%s] %s %s (%s)\n", time.Now().UTC().Format("2006-01-02 15:04:05,000"), level,
		fmt.Sprintf(format, args...), class)
}

func (j *journal) info(class, format string, args ...any) { j.line("INFO", class, format, args...) }
func (j *journal) warn(class, format string, args ...any) { j.line("WARN", class, format, args...) }
func (j *journal) fail(class, format string, args ...any) { j.line("ERROR", class, format, args...) }

// Classes that lines are from.
const (
	classServer = "kafka.server.KafkaRaftServer"
	classSocket = "kafka.network.Processor"
	classAccept = "kafka.network.DataPlaneAcceptor"
	classLog    = "kafka.log.LogManager"
	classTopics = "kafka.server.DefaultAutoTopicCreationManager"
	classGroups = "kafka.coordinator.group.GroupCoordinator"
)
