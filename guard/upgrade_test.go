package guard

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// shouter upgrades what asks for it, and leaves the rest to another.
type shouter struct{ http.Handler }

func (s shouter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") == "" {
		s.Handler.ServeHTTP(w, r)
		return
	}
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+r.Header.Get("Upgrade")+"\r\n\r\n")
	b := make([]byte, 100)
	for {
		n, err := conn.Read(b)
		if err != nil {
			return
		}
		_, _ = conn.Write(bytes.ToUpper(b[:n]))
	}
}

func tlsDial(address string, c *tls.Config) (net.Conn, error) {
	c = c.Clone()
	c.NextProtos = []string{"http/1.1"}
	return tls.Dial("tcp", address, c)
}

// oneByOne reads no further than it is asked to.
type oneByOne struct{ io.Reader }

func (r *oneByOne) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(1, len(p))]) }

func gvr(group, version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
}
