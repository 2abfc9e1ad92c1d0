package vnet

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// shop is a network with a pod of each of two Deployments, at the given addresses.
func shop(t *testing.T, seed uint64, geo, db string) (n *Network, client, server *Stack) {
	n = New(Config{Subnets: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")}})
	client, server = addStack(t, n, netip.MustParseAddr(geo)), addStack(t, n, netip.MustParseAddr(db))
	client.host.SetKind("shop/geo")
	server.host.SetKind("shop/db")
	n.Seed(seed)
	return n, client, server
}

// luck sends datagrams and messages over a bad wire, and returns what became of them: which datagrams
// arrived, how long each message took. Others may use the wire meanwhile.
func luck(t *testing.T, n *Network, client, server *Stack, noise bool) (fate []string) {
	echo(t, server)
	defer n.Disturb(anywhere, Link{Loss: 0.3, Delay: 20 * time.Millisecond, Jitter: 10 * time.Millisecond})()
	stop := make(chan struct{})
	defer close(stop)
	if noise {
		bystander := addStack(t, n, netip.MustParseAddr("10.244.9.9"))
		defer bystander.host.Close()
		go func() {
			for {
				c, err := bystander.DialContext(t.Context(), "tcp", server.host.addr.String()+":7")
				if err == nil {
					_, _ = c.Write([]byte("noise"))
					_ = c.Close()
				}
				select {
				case <-stop:
					return
				case <-time.After(7 * time.Millisecond):
				}
			}
		}()
	}
	c := dial(t, client, server.host.addr.String()+":7")
	defer c.Close()
	for range 30 {
		fate = append(fate, fmt.Sprint(roundTrip(t, c, 10)))
	}
	sink, err := server.ListenPacket("udp", ":9")
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	u, err := client.DialContext(t.Context(), "udp", server.host.addr.String()+":9")
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	for i := range 30 {
		_, _ = u.Write([]byte{byte(i)})
	}
	_ = sink.SetReadDeadline(time.Now().Add(time.Second))
	var arrived []byte
	for b := make([]byte, 1); ; {
		if _, _, err := sink.ReadFrom(b); err != nil {
			break
		}
		arrived = append(arrived, b[0])
	}
	slices.Sort(arrived)
	return append(fate, fmt.Sprint(arrived))
}

// TestOneSeedOneLuck: what is lost and how late the rest is follows from the seed and the names of the
// hosts, whatever their addresses are and whoever else sends.
func TestOneSeedOneLuck(t *testing.T) {
	run := func(seed uint64, geo, db string, noise bool) (fate []string) {
		synctest.Test(t, func(t *testing.T) {
			n, client, server := shop(t, seed, geo, db)
			fate = luck(t, n, client, server, noise)
			client.host.Close()
			server.host.Close()
		})
		return fate
	}
	one := run(7, "10.244.0.2", "10.244.1.3", false)
	if got := run(7, "10.244.5.6", "10.244.4.4", true); !slices.Equal(got, one) {
		t.Errorf("with the same seed:\n%v\n%v", one, got)
	}
	if slices.Equal(run(8, "10.244.0.2", "10.244.1.3", false), one) {
		t.Error("with another seed it is the same")
	}
}

// TestASeedForgetsWhatWasBefore: a network that has been in use draws as a new one does.
func TestASeedForgetsWhatWasBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, client, server := shop(t, 7, "10.244.0.2", "10.244.1.3")
		one := luck(t, n, client, server, false)
		server.host.Close() // It is replaced by another, as pods are.
		server = addStack(t, n, netip.MustParseAddr("10.244.1.4"))
		server.host.SetKind("shop/db")
		if name := n.NameOf(server.host.addr); name != "shop/db#1" {
			t.Errorf("the second of its kind is %s", name)
		}
		n.Seed(7)
		if got := luck(t, n, client, server, false); !slices.Equal(got, one) {
			t.Errorf("after the same seed:\n%v\n%v", one, got)
		}
		client.host.Close()
		server.host.Close()
	})
}
