package astronomy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	reflection "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/aiopslab/aiopslab/app/astronomy/demopb"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

// Clients that know nothing of the application but its protocols get along with it.
func TestStrangers(t *testing.T) {
	f := deploy(t)
	t.Run("an order is read from Kafka", f.readsOrder)
	t.Run("the catalog tells what it serves", f.reflects)
	t.Run("a flag is asked for over OFREP", f.asksFlag)
	t.Run("traces are asked for through Grafana", f.asksGrafana)
}

// readsOrder reads the topic of orders from its beginning, in no group.
func (f *front) readsOrder(t *testing.T) {
	o, err := f.buy("stranger", "LS4PSXUNUM", 3, "CHF")
	if err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers("kafka:9092"), kgo.Dialer(f.d.User().Env().Net.DialContext),
		kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("order %s was not read: %v", o.OrderID, err)
		}
		for _, r := range fetches.Records() {
			var read demopb.OrderResult
			if err := proto.Unmarshal(r.Value, &read); err != nil {
				t.Fatalf("record %d: %v", r.Offset, err)
			}
			if read.OrderId != o.OrderID {
				continue
			}
			if len(read.Items) != 1 || read.Items[0].Item.Quantity != 3 || read.ShippingCost.CurrencyCode != "CHF" {
				t.Errorf("the order is read as %v", &read)
			}
			return
		}
	}
}

// reflects calls ListProducts with no more than what the server says of it.
func (f *front) reflects(t *testing.T) {
	network := f.d.User().Env().Net
	conn, err := grpc.NewClient("passthrough:///product-catalog:8080", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, a string) (net.Conn, error) { return network.DialContext(ctx, "tcp", a) }))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stream, err := reflection.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(req *reflection.ServerReflectionRequest) *reflection.ServerReflectionResponse {
		t.Helper()
		if err := stream.Send(req); err != nil {
			t.Fatal(err)
		}
		resp, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	const service = "oteldemo.ProductCatalogService"
	list := ask(&reflection.ServerReflectionRequest{MessageRequest: &reflection.ServerReflectionRequest_ListServices{}})
	var names []string
	for _, s := range list.GetListServicesResponse().GetService() {
		names = append(names, s.Name)
	}
	if !slices.Contains(names, service) || !slices.Contains(names, "grpc.health.v1.Health") {
		t.Fatalf("it serves %v", names)
	}
	described := ask(&reflection.ServerReflectionRequest{
		MessageRequest: &reflection.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: service},
	})
	set := &descriptorpb.FileDescriptorSet{}
	for _, data := range described.GetFileDescriptorResponse().GetFileDescriptorProto() {
		file := &descriptorpb.FileDescriptorProto{}
		if err := proto.Unmarshal(data, file); err != nil {
			t.Fatal(err)
		}
		set.File = append(set.File, file)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		t.Fatal(err)
	}
	d, err := files.FindDescriptorByName(service)
	if err != nil {
		t.Fatal(err)
	}
	method := d.(protoreflect.ServiceDescriptor).Methods().ByName("ListProducts")
	in, out := dynamicpb.NewMessage(method.Input()), dynamicpb.NewMessage(method.Output())
	if err := conn.Invoke(t.Context(), "/"+service+"/ListProducts", in, out); err != nil {
		t.Fatal(err)
	}
	products := out.Get(method.Output().Fields().ByName("products")).List()
	if products.Len() != 10 {
		t.Errorf("there are %d products", products.Len())
	}
	for i := range products.Len() {
		p := products.Get(i).Message()
		if id := p.Get(p.Descriptor().Fields().ByName("id")).String(); len(id) != 10 {
			t.Errorf("product %d is %q", i, id)
		}
	}
}

// asksFlag asks flagd as a provider of OpenFeature does that needs nothing but HTTP.
func (f *front) asksFlag(t *testing.T) {
	var answer struct {
		Value   float64
		Variant string
	}
	evaluate := func() {
		t.Helper()
		got := kittest.Ask(t, f.d.User(), "POST", "http://flagd:8016/ofrep/v1/evaluate/flags/paymentFailure", `{"context": {}}`)
		if err := json.Unmarshal([]byte(got.Body), &answer); err != nil || got.Code != 200 {
			t.Fatalf("%d %s: %v", got.Code, got.Body, err)
		}
	}
	if evaluate(); answer.Value != 0 || answer.Variant != "off" {
		t.Errorf("off it is %+v", answer)
	}
	f.flag("paymentFailure", "50%")
	if evaluate(); answer.Value != 0.5 || answer.Variant != "50%" {
		t.Errorf("on it is %+v", answer)
	}
}

// asksGrafana goes through frontend-proxy. The world has no Services: somebody has to hand on from the port of one.
func (f *front) asksGrafana(t *testing.T) {
	network := f.d.Pod("grafana").Env().Net
	ln, err := network.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	transport := f.d.User().Env().HTTPTransport()
	srv := &http.Server{Handler: &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = "http", "grafana:3000"
	}}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(ln)
	}()
	defer func() {
		srv.Close()
		<-done
		transport.CloseIdleConnections()
	}()
	wants := map[string]string{
		"/grafana/":                "<td>webstore-traces</td>",
		"/grafana/api/health":      `"database":"ok"`,
		"/grafana/api/datasources": `"uid":"webstore-metrics"`,
		"/grafana/api/datasources/proxy/uid/webstore-traces/api/services": `"frontend"`,
	}
	for path, want := range wants {
		f.eventually(path, func() error {
			body, err := f.get(path)
			if err == nil && !strings.Contains(body, want) {
				err = fmt.Errorf("%s", body)
			}
			return err
		})
	}
	if _, err := f.get("/grafana/api/datasources/proxy/uid/webstore-metrics/-/quit"); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("what is no query: %v", err)
	}
}
