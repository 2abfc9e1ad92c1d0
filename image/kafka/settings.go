package kafka

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/kit"
)

// What the broker keeps at most, whatever it is told.
const (
	maxPartitionBytes = 16 << 20
	defPartitionBytes = 8 << 20
	maxMessage        = 4 << 20
	maxNumPartitions  = 100 // of one topic
)

// settings are what KAFKA_ variables say. As in the public image, KAFKA_NUM_PARTITIONS is num.partitions.
type settings struct {
	listen     []string // addresses for clients
	controller []string // addresses of the controller
	host       string   // that clients are told
	port       string

	partitions     int
	autoCreate     bool
	retentionBytes int64 // of a partition
	retentionMS    int64
	messageBytes   int
	metricsPort    string
}

// set reads one variable as a number in a range.
func number[T int | int64](env *kit.Env, name string, def, low, high T) (T, error) {
	text := env.Getenv(name)
	if text == "" {
		return def, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < int64(low) || n > int64(high) {
		return 0, fmt.Errorf("%s=%q: want a number from %d to %d", name, text, low, high)
	}
	return T(n), nil
}

// readSettings returns all mistakes at once.
func readSettings(env *kit.Env) (*settings, error) {
	s := &settings{metricsPort: cmp.Or(env.Getenv("KAFKA_METRICS_PORT"), "9404")}
	var errs []error
	var err error
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	s.partitions, err = number(env, "KAFKA_NUM_PARTITIONS", 1, 1, maxNumPartitions)
	note(err)
	s.retentionBytes, err = number[int64](env, "KAFKA_LOG_RETENTION_BYTES", defPartitionBytes, -1, 1<<50)
	note(err)
	if s.retentionBytes < 0 || s.retentionBytes > maxPartitionBytes {
		s.retentionBytes = maxPartitionBytes // The log is in memory.
	}
	hours, err := number[int64](env, "KAFKA_LOG_RETENTION_HOURS", 168, 1, 1<<20)
	note(err)
	s.retentionMS, err = number(env, "KAFKA_LOG_RETENTION_MS", hours*3600*1000, 1, 1<<50)
	note(err)
	s.messageBytes, err = number(env, "KAFKA_MESSAGE_MAX_BYTES", 1048588, 1, maxMessage)
	note(err)
	switch v := env.Getenv("KAFKA_AUTO_CREATE_TOPICS_ENABLE"); v {
	case "", "true":
		s.autoCreate = true
	case "false":
	default:
		note(fmt.Errorf("KAFKA_AUTO_CREATE_TOPICS_ENABLE=%q: want true or false", v))
	}
	if n, err := strconv.ParseUint(s.metricsPort, 10, 16); err != nil || n == 0 {
		note(fmt.Errorf("KAFKA_METRICS_PORT=%q: want a port", s.metricsPort))
	}
	note(s.readListeners(env))
	return s, errors.Join(errs...)
}

var listenerPattern = regexp.MustCompile(`^([A-Z][A-Z0-9_]*)://([^:/]*|\[[0-9a-fA-F:.]+\]):(\d{1,5})$`)

// readListeners takes apart what KAFKA_LISTENERS and KAFKA_ADVERTISED_LISTENERS say.
func (s *settings) readListeners(env *kit.Env) error {
	each := func(name, text string, take func(listener, host, port string)) error {
		for one := range strings.SplitSeq(text, ",") {
			m := listenerPattern.FindStringSubmatch(strings.TrimSpace(one))
			if m == nil {
				return fmt.Errorf("%s: %q is no listener; write it as PLAINTEXT://host:9092", name, one)
			}
			if n, err := strconv.ParseUint(m[3], 10, 16); err != nil || n == 0 {
				return fmt.Errorf("%s: %q has no port", name, one)
			}
			take(m[1], strings.Trim(m[2], "[]"), m[3])
		}
		return nil
	}
	isController := func(name string) bool {
		return name == cmp.Or(env.Getenv("KAFKA_CONTROLLER_LISTENER_NAMES"), "CONTROLLER")
	}
	const def = "PLAINTEXT://:9092,CONTROLLER://:9093"
	err := each("KAFKA_LISTENERS", cmp.Or(env.Getenv("KAFKA_LISTENERS"), def), func(name, host, port string) {
		if host == "0.0.0.0" {
			host = ""
		}
		if isController(name) {
			s.controller = append(s.controller, net.JoinHostPort(host, port))
			return
		}
		if len(s.listen) == 0 {
			s.port = port
		}
		s.listen = append(s.listen, net.JoinHostPort(host, port))
	})
	if err != nil {
		return err
	}
	if len(s.listen) == 0 {
		return errors.New("KAFKA_LISTENERS: there is no listener for clients; add PLAINTEXT://:9092")
	}
	s.host = env.Hostname
	text := env.Getenv("KAFKA_ADVERTISED_LISTENERS")
	if text == "" {
		return nil
	}
	first := true
	return each("KAFKA_ADVERTISED_LISTENERS", text, func(name, host, port string) {
		if first && !isController(name) {
			s.host, s.port, first = cmp.Or(host, env.Hostname), port, false
		}
	})
}
