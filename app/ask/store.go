package ask

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// over connects and talks until the context ends.
func over(ctx context.Context, dial Dial, address string, talk func(net.Conn, *bufio.Reader) error) error {
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
	defer conn.Close()
	return talk(conn, bufio.NewReader(io.LimitReader(conn, maxAnswer)))
}

// say sends a line, and wants an answer whose first line begins in one of the given ways.
func say(conn io.Writer, in *bufio.Reader, line string, answers ...string) (string, error) {
	if _, err := io.WriteString(conn, line+"\r\n"); err != nil {
		return "", err
	}
	got, err := in.ReadString('\n')
	for _, a := range answers {
		if strings.HasPrefix(got, a) {
			return got, nil
		}
	}
	if err == nil || got != "" {
		err = Wrong("%q", strings.TrimRight(got, "\r\n"))
	}
	return got, err
}

// redis asks for a pong and for what it is. Without a password, it says that it wants one.
func redis(ctx context.Context, dial Dial, address string) error {
	return over(ctx, dial, address, func(conn net.Conn, in *bufio.Reader) error {
		got, err := say(conn, in, "PING", "+PONG", "-NOAUTH ")
		if err != nil || strings.HasPrefix(got, "-") {
			return err
		}
		if _, err := say(conn, in, "INFO server", "$"); err != nil {
			return err
		}
		for range 10 { // The version is among the first lines.
			line, err := in.ReadString('\n')
			if strings.HasPrefix(line, "redis_version:") {
				return nil
			}
			if err != nil {
				return err
			}
		}
		return Wrong("without saying which Redis it is")
	})
}

// memcached asks for the version and the figures it keeps of itself.
func memcached(ctx context.Context, dial Dial, address string) error {
	return over(ctx, dial, address, func(conn net.Conn, in *bufio.Reader) error {
		if _, err := say(conn, in, "version", "VERSION "); err != nil {
			return err
		}
		_, err := say(conn, in, "stats", "STAT pid ")
		return err
	})
}

// mongodb sends MongoDB's first command.
func mongodb(ctx context.Context, dial Dial, address string) error {
	return over(ctx, dial, address, func(conn net.Conn, in *bufio.Reader) error {
		var reply struct {
			OK      float64   `bson:"ok"`
			Message string    `bson:"errmsg"`
			Primary bool      `bson:"isWritablePrimary"`
			Wire    int       `bson:"maxWireVersion"`
			Time    time.Time `bson:"localTime"`
		}
		if err := command(conn, in, bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}},
			&reply); err != nil {
			return err
		}
		switch {
		case reply.Message != "":
			return errors.New(reply.Message)
		case reply.OK != 1 || !reply.Primary || reply.Wire == 0 || reply.Time.IsZero():
			return errors.New("it does not say that it is a MongoDB server one can write to")
		}
		return nil
	})
}

// command sends a command and decodes the reply.
func command(conn io.Writer, in io.Reader, cmd bson.D, reply any) error {
	const opMsg = 2013
	doc, err := bson.Marshal(cmd)
	if err != nil {
		return err
	}
	msg := make([]byte, 0, 64)
	for _, n := range []int{16 + 5 + len(doc), 1, 0, opMsg, 0} { // length, id, answer to, code; flags
		msg = binary.LittleEndian.AppendUint32(msg, uint32(n))
	}
	if _, err := conn.Write(append(append(msg, 0), doc...)); err != nil {
		return err
	}
	head := make([]byte, 21)
	if _, err := io.ReadFull(in, head); err != nil {
		return err
	}
	n := int(binary.LittleEndian.Uint32(head)) - len(head)
	if n < 5 || n > maxAnswer || binary.LittleEndian.Uint32(head[12:]) != opMsg {
		return errors.New("it does not speak MongoDB's protocol")
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(in, body); err != nil {
		return err
	}
	if err := bson.Unmarshal(body, reply); err != nil {
		return fmt.Errorf("it does not speak MongoDB's protocol: %w", err)
	}
	return nil
}

// Queue is the question whether a RabbitMQ lets somebody in, by name and password as "guest:guest", and has a queue.
func Queue(login, name string, durable bool) Question {
	return func(ctx context.Context, dial Dial, address string) error {
		stop := func() bool { return true }
		defer func() { stop() }()
		conn, err := amqp.DialConfig("amqp://"+login+"@"+address+"/", amqp.Config{
			Dial: func(network, address string) (net.Conn, error) {
				c, err := dial(ctx, network, address)
				if err == nil {
					stop = context.AfterFunc(ctx, func() { c.Close() })
				}
				return c, err
			},
		})
		if err != nil {
			return err
		}
		defer conn.Close()
		ch, err := conn.Channel()
		if err != nil {
			return err
		}
		_, err = ch.QueueDeclarePassive(name, durable, false, false, false, nil)
		return err
	}
}
