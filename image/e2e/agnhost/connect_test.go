package agnhost

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aiopslab/aiopslab/kit/kittest"
)

func TestConnect(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string // start of the message; none is success
	}{
		{"tcp", []string{"server:80", "--timeout=1s"}, ""},
		{"tcp by address", []string{"10.244.0.2:80", "--timeout=1s", "--protocol=tcp"}, ""},
		{"udp", []string{"server:81", "--timeout=1s", "--protocol=udp"}, ""},
		{"refused", []string{"server:82", "--timeout=1s"}, "REFUSED: "},
		{"refused udp", []string{"server:82", "--timeout=1s", "--protocol=udp"}, "REFUSED: "},
		{"dropped", []string{"10.96.0.1:80", "--timeout=3s"}, "TIMEOUT: "},
		{"dropped udp", []string{"10.96.0.1:80", "--timeout=3s", "--protocol=udp"}, "TIMEOUT: "},
		{"no host", []string{"10.244.7.7:80", "--timeout=30s"}, "OTHER: "},
		{"no name", []string{"none:80"}, "DNS: lookup none"},
		{"no port", []string{"server"}, "DNS: "},
		{"sctp", []string{"server:80", "--protocol=sctp"}, "SCTP is not available"},
		{"carrier pigeons", []string{"server:80", "--protocol=rfc1149"}, "Error: --protocol=rfc1149: it is tcp or udp\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := kittest.New(t)
				server, client := w.Machine("server", "10.244.0.2"), w.Machine("client", "10.244.0.3")
				start(server, "netexec", "--http-port=80", "--udp-port=81")
				server.WaitListen(":80")
				synctest.Wait()
				r := client.Start(Main, append([]string{"/agnhost", "connect"}, tt.args...)...)
				code := r.Wait()
				got := r.Stderr.String()
				if tt.name == "sctp" {
					_, got, _ = strings.Cut(got, " ") // the time
					_, got, _ = strings.Cut(got, " ")
				}
				if (code == 0) != (tt.want == "") || !strings.HasPrefix(got, tt.want) {
					t.Errorf("exit %d, printed %q, want %q", code, got, tt.want)
				}
			})
		})
	}
}
