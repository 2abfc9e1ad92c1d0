package fault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
)

// datagrams returns the port of a Service that is served over UDP, or 0.
func (p parts) datagrams(name string) int32 {
	for _, port := range p.service(name).Spec.Ports {
		if port.Protocol == v1.ProtocolUDP {
			return port.Port
		}
	}
	return 0
}

// question asks a name server for the addresses of the name "consul".
const question = "\x10\x20\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x06consul\x00\x00\x01\x00\x01"

const (
	answerWait = time.Second            // for the first answer
	secondWait = 200 * time.Millisecond // for another one
)

// duplicateProbe asks a few questions over UDP and counts the answers.
func duplicateProbe(ctx context.Context, e *Env, service string) (string, error) {
	if symptom, err := podSymptom(ctx, e, service); symptom != "" || err != nil {
		return symptom, err
	}
	if err := ask(ctx, e, service, askTimeout); err != nil {
		return fmt.Sprintf("%s does not answer: %v", service, err), ctx.Err()
	}
	o, err := read(e.App)
	if err != nil {
		return "", err
	}
	address := fmt.Sprintf("%s.%s:%d", service, e.App.Namespace, o.datagrams(service))
	twice := 0
	for range samples {
		n, err := answers(ctx, e, address)
		if err != nil {
			return fmt.Sprintf("%s does not answer over UDP: %v", service, err), ctx.Err()
		}
		if n > 1 {
			twice++
		}
	}
	if twice == 0 {
		return "", nil
	}
	return fmt.Sprintf("%d of %d questions to %s were answered twice", twice, samples, service), nil
}

// answers is how many answers a question gets.
func answers(ctx context.Context, e *Env, address string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	conn, err := e.Dial(ctx, "udp", address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(question)); err != nil {
		return 0, err
	}
	n, wait := 0, answerWait
	for {
		if err := conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
			return n, err
		}
		_, err := conn.Read(make([]byte, 1500))
		var netErr net.Error
		switch {
		case err == nil:
			n, wait = n+1, secondWait
		case n > 0 && (errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &netErr) && netErr.Timeout()):
			return n, nil
		default:
			return n, err
		}
	}
}
