package embedded_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/aiopslab/aiopslab/campaign"
	"github.com/aiopslab/aiopslab/kit"
)

// echoPort is where an echo listens, on its loopback.
const echoPort = 7777

// echo answers with what it is told, and ends when it is told to, or no more.
func echo(ctx context.Context, env *kit.Env) error {
	ln, err := env.Net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", echoPort))
	if err != nil {
		return err
	}
	defer ln.Close()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			fmt.Fprintln(c, "it is me")
			c.Close()
		}
	}()
	fmt.Fprintln(env.Stderr, "echo", env.Args)
	lines := bufio.NewScanner(env.Stdin)
	for lines.Scan() {
		if lines.Text() == "exit" {
			fmt.Fprintln(env.Stderr, "I was told to")
			return kit.Exit(3)
		}
		fmt.Fprintln(env.Stdout, lines.Text())
	}
	return lines.Err()
}

// stay is a post that runs, and how it ends.
type stay struct {
	*campaign.Posts
	in      *io.PipeWriter
	answers *bufio.Reader
	cancel  context.CancelFunc
	ended   chan error
	dial    func(ctx context.Context, port int) (net.Conn, error)
}

func newStay(t *testing.T, p *campaign.Posts) *stay {
	t.Helper()
	place := p.New()
	in, told := io.Pipe()
	heard, answers := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	s := &stay{p, told, bufio.NewReader(heard), cancel, make(chan error, 1), place.Dial}
	go func() {
		err := place.Run(ctx, in, answers, io.Discard)
		in.Close()
		answers.Close()
		s.ended <- err
	}()
	return s
}

func (s *stay) say(t *testing.T, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(s.in, line); err != nil {
		t.Fatal(err)
	}
	if got, err := s.answers.ReadString('\n'); got != line+"\n" || err != nil {
		t.Fatalf("%q, %v: %v", got, err, <-s.ended)
	}
}

// TestPosts: environments of a server are pods of Jobs, which end with whoever is attached to them and leave nothing, in a
// namespace that admits nothing but restricted pods. Who ended one is told apart.
func TestPosts(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	c.restrict(t, ns)
	p := &campaign.Posts{
		Cloud: c.asGuest(t, ""), Namespace: ns, Image: campaignImage, Resources: campaign.DefaultResources(),
		Args: []string{"worker"}, Tell: func(line string) { t.Log(line) },
	}
	if err := p.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	pods := func() (names []string) {
		list, err := c.client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{LabelSelector: batchv1.JobNameLabel})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list.Items {
			names = append(names, p.Name)
		}
		return names
	}
	for _, x := range []struct {
		name string
		end  func(s *stay, pod string)
		want string
	}{
		{"it is told to", func(s *stay, _ string) { fmt.Fprintln(s.in, "exit") }, "I was told to"},
		{"its input ends", func(s *stay, _ string) { s.in.Close() }, "it exited"},
		{"it is closed", func(s *stay, _ string) { s.cancel() }, "context canceled"},
		{"its pod is removed", func(_ *stay, pod string) {
			if err := c.client.CoreV1().Pods(ns).Delete(t.Context(), pod, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}, "its pod"},
	} {
		s := newStay(t, p)
		s.say(t, "hello "+x.name)
		conn, err := s.dial(t.Context(), echoPort)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(conn); string(b) != "it is me\n" || err != nil {
			t.Errorf("%q, %v", b, err)
		}
		conn.Close()
		here := pods()
		if len(here) != 1 {
			t.Fatalf("%s: the pods are %v", x.name, here)
		}
		x.end(s, here[0])
		if err := <-s.ended; err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %s", x.name, err, x.want)
		}
		s.cancel()
		awaitTrue(t, "nothing of "+x.name, func() bool {
			jobs, err := c.client.BatchV1().Jobs(ns).List(t.Context(), metav1.ListOptions{})
			return err == nil && len(jobs.Items) == 0 && !slices.Contains(pods(), here[0])
		})
	}
	q := *p
	q.Namespace = "nowhere"
	if err := q.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "there is no namespace nowhere: make it") {
		t.Errorf("%v", err)
	}
}
