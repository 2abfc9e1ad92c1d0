package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// service is the lab's server in a process of its own.
type service struct {
	cmd *exec.Cmd
	url string
}

// serve starts a server and waits until it says where it is.
func (r *run) serve(ctx context.Context, args ...string) (*service, error) {
	cmd := exec.CommandContext(ctx, r.binary, append([]string{
		"serve", "--addr", "127.0.0.1:0", "--results", filepath.Join(r.dir, "served"),
	}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &service{cmd: cmd}
	line, err := bufio.NewReader(out).ReadString('\n')
	if _, url, ok := strings.Cut(line, "http://"); ok {
		s.url = "http://" + strings.TrimSpace(url)
		go io.Copy(io.Discard, out) //nolint:errcheck // It ends with the process.
		return s, nil
	}
	s.close()
	return nil, fmt.Errorf("the server does not say where it is: %w: %s", err, lastLine(stderr.String()))
}

func (s *service) close() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
}

// call makes a request with a JSON body and reads the answer's.
func (s *service) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %s", method, path, res.Status, lastLine(string(b)))
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(b, out)
}
