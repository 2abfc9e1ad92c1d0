package remote

import (
	"context"
	"fmt"
	"net"
	"path"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/kit"
)

// Where a pod of the image has what it needs, and where it answers.
const (
	ImageName = "aiopslab/load:v1"
	Dir       = "/etc/load"
	OrderFile = "order"
	TokenFile = "token"
	Port      = 8080 // of loopback
)

// program is the image's only one.
const program = "/load"

// Image is the load generator.
func Image() kit.Image {
	name, tag, _ := strings.Cut(ImageName, ":")
	return kit.Image{
		Names:      []string{name},
		Tags:       tag,
		Entrypoint: []string{program},
		User:       "65534:65534",
		Programs:   map[string]kit.Program{program: Main},
		Memory:     16 << 20,
		Size:       12 << 20,
	}
}

// Main sends the load that the files in [Dir] order, until it is told to stop or nobody asks for it any more.
func Main(ctx context.Context, env *kit.Env) error {
	data, err := env.ReadFile(path.Join(Dir, OrderFile))
	if err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	token, err := env.ReadFile(path.Join(Dir, TokenFile))
	if err != nil {
		return fmt.Errorf("read the token: %w", err)
	}
	order, err := Unpack(data)
	if err != nil {
		return err
	}
	s, err := NewServer(order, strings.TrimSpace(string(token)), env.Net.DialContext)
	if err != nil {
		return err
	}
	ln, err := env.Net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(Port)))
	if err != nil {
		return err
	}
	defer ln.Close()
	fmt.Fprintf(env.Stdout, "sending load to %s\n", order.BaseURL)
	return s.Run(ctx, ln)
}
