package vnet

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/miekg/dns"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"server"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestHTTP(t *testing.T) {
	for _, tc := range []struct {
		name  string
		tls   bool
		proto string
	}{
		{"HTTP/1.1", false, "HTTP/1.1"},
		{"HTTP/2 over TLS", true, "HTTP/2.0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, client, server := pair(t)
			cert, pool := certificate(t)
			srv := &http.Server{
				Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					b, _ := io.ReadAll(r.Body)
					fmt.Fprintf(w, "%s %d", r.Proto, len(b))
				}),
				TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}},
			}
			l := listen(t, server, ":443")
			scheme := "http"
			if tc.tls {
				scheme = "https"
				go srv.ServeTLS(l, "", "")
			} else {
				go srv.Serve(l)
			}
			defer srv.Close()
			tr := &http.Transport{
				DialContext:       client.DialContext,
				TLSClientConfig:   &tls.Config{RootCAs: pool, ServerName: "server"},
				ForceAttemptHTTP2: true,
			}
			defer tr.CloseIdleConnections()
			hc := &http.Client{Transport: tr}
			for range 3 {
				body := io.LimitReader(rand.Reader, 1<<20)
				res, err := hc.Post(scheme+"://10.244.1.3:443/", "application/octet-stream", body)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(res.Body)
				res.Body.Close()
				if want := fmt.Sprintf("%s %d", tc.proto, 1<<20); err != nil || string(got) != want {
					t.Fatalf("got %q, %v, want %q", got, err, want)
				}
			}
		})
	}
}

func TestGRPC(t *testing.T) {
	_, client, server := pair(t)
	srv := grpc.NewServer()
	healthpb.RegisterHealthServer(srv, health.NewServer())
	go srv.Serve(listen(t, server, ":50051"))
	defer srv.Stop()
	cc, err := grpc.NewClient("passthrough:10.244.1.3:50051",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return client.DialContext(ctx, "tcp", addr)
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	hc := healthpb.NewHealthClient(cc)
	res, err := hc.Check(context.Background(), &healthpb.HealthCheckRequest{})
	if err != nil || res.Status != healthpb.HealthCheckResponse_SERVING {
		t.Fatalf("check: %v, %v", res, err)
	}
	w, err := hc.Watch(context.Background(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if res, err = w.Recv(); err != nil || res.Status != healthpb.HealthCheckResponse_SERVING {
		t.Fatalf("watch: %v, %v", res, err)
	}
}

func TestDNSOverUDPAndTCP(t *testing.T) {
	_, client, server := pair(t)
	pc, err := server.ListenPacket("udp", ":53")
	if err != nil {
		t.Fatal(err)
	}
	answer := dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		m.Answer = append(m.Answer, &dns.A{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 5}, A: net.IPv4(10, 96, 0, 1)})
		w.WriteMsg(m)
	})
	for network, srv := range map[string]*dns.Server{
		"udp": {PacketConn: pc, Handler: answer},
		"tcp": {Listener: listen(t, server, ":53"), Handler: answer},
	} {
		started := make(chan struct{})
		srv.NotifyStartedFunc = func() { close(started) }
		go srv.ActivateAndServe()
		<-started
		defer srv.Shutdown()
		c, err := client.DialContext(context.Background(), network, "10.244.1.3:53")
		if err != nil {
			t.Fatal(err)
		}
		co := &dns.Conn{Conn: c}
		if err := co.WriteMsg(new(dns.Msg).SetQuestion("kubernetes.default.svc.cluster.local.", dns.TypeA)); err != nil {
			t.Fatal(err)
		}
		m, err := co.ReadMsg()
		if err != nil || len(m.Answer) != 1 {
			t.Fatalf("%s: %v, %v", network, m, err)
		}
		co.Close()
	}
}
