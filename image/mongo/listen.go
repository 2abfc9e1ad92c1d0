package mongo

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"syscall"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/mlog"
)

// listen opens the sockets.
func (d *daemon) listen() ([]net.Listener, error) {
	hosts := strings.Split(d.settings.text("net.bindIp", "127.0.0.1"), ",")
	if d.settings.is("net.bindIpAll") {
		hosts = []string{"0.0.0.0"}
	}
	var list []net.Listener
	for _, host := range hosts {
		host = strings.TrimSpace(host)
		switch host {
		case "*":
			host = "0.0.0.0"
		case "localhost":
			host = "127.0.0.1"
		}
		ln, err := d.env.Net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(d.port)))
		if err != nil {
			for _, l := range list {
				l.Close()
			}
			return nil, d.listenFailed(err)
		}
		list = append(list, ln)
		d.info(mlog.Network, 23015, "listener", "Listening on", bson.D{{Key: "address", Value: host}})
	}
	return list, nil
}

func (d *daemon) listenFailed(err error) error {
	text := err.Error()
	var errno syscall.Errno
	if errors.As(err, &errno) {
		text = strings.ToUpper(errno.Error()[:1]) + errno.Error()[1:]
	}
	d.log.Error(mlog.Control, 20568, "initandlisten", "Error setting up listener", bson.D{{Key: "error", Value: bson.D{
		{Key: "code", Value: 9001}, {Key: "codeName", Value: "SocketException"}, {Key: "errmsg", Value: text},
	}}})
	d.info(mlog.Control, 23138, "initandlisten", "Shutting down", bson.D{{Key: "exitCode", Value: exitListener}})
	return errExit{exitListener}
}
