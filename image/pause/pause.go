package pause

import (
	"context"
	"fmt"
	"syscall"

	"github.com/aiopslab/aiopslab/kit"
)

// Image is pause. It holds next to nothing: no shell, no files.
func Image() kit.Image {
	return kit.Image{
		Names:      []string{"registry.k8s.io/pause"},
		Tags:       `latest|3\.\d{1,2}(\.\d)?`,
		Entrypoint: []string{"/pause"},
		User:       "65535:65535",
		Programs:   map[string]kit.Program{"/pause": Main},
		Memory:     256 << 10,
		Size:       320 << 10,
	}
}

// signalNames are what the C library calls the signals that end the program.
var signalNames = map[syscall.Signal]string{syscall.SIGINT: "Interrupt", syscall.SIGTERM: "Terminated"}

// Main waits for SIGINT or SIGTERM. Both end it with success.
func Main(ctx context.Context, env *kit.Env) error {
	signals := env.Notify()
	for {
		select {
		case sig := <-signals:
			if name, ok := signalNames[sig]; ok {
				fmt.Fprintf(env.Stderr, "Shutting down, got signal: %s\n", name)
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
