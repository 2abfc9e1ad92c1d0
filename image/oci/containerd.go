package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// The places where containerd and Kubernetes look by default.
const (
	DefaultSocket    = "/run/containerd/containerd.sock"
	DefaultNamespace = "k8s.io"
)

// Import puts the images into the containerd at a socket of this machine, with its program ctr. The kubelet uses the
// namespace k8s.io.
func (s *Set) Import(ctx context.Context, socket, namespace string) error {
	ctr, err := FindContainerd(socket)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, ctr, "-a", socket, "-n", namespace, "images", "import", "-")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	written := s.writeAndClose(in)
	if err := cmd.Wait(); err != nil { // It says more than a pipe that is broken.
		return fmt.Errorf("ctr images import: %w: %s", err, lastLine(said.String()))
	}
	return written
}

// FindContainerd looks for a containerd, and returns the program that speaks to it.
func FindContainerd(socket string) (ctr string, err error) {
	if ctr, err = exec.LookPath("ctr"); err != nil {
		return "", errors.New("ctr is not in PATH; it comes with containerd. Or write an archive with -o, and import " +
			"it where the node is")
	}
	if _, err := os.Stat(socket); err != nil {
		return "", fmt.Errorf("no containerd at %s: %w", socket, err)
	}
	return ctr, nil
}

func (s *Set) writeAndClose(w io.WriteCloser) error { return errors.Join(s.WriteArchive(w), w.Close()) }

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
