package kafka

import (
	"hash/crc32"
	"io"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// FuzzFrame reads whatever comes as a request.
func FuzzFrame(f *testing.F) {
	for key := range served {
		q := kmsg.RequestForKey(key)
		q.SetVersion(q.MaxVersion())
		f.Add(frame(q))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 14 || len(data) > maxRequest {
			return
		}
		r, err := parse(data, served)
		if err != nil || r.Key() == kmsg.ApiVersions.Int16() {
			return
		}
		again, err := parse(r.encode(), served)
		if err != nil || !reflect.DeepEqual(r.Request, again.Request) {
			t.Errorf("%+v is %+v after it was written, %v", r.Request, again, err)
		}
	})
}

// enemy fills requests with what a broker knows, and with what it should not take.
type enemy struct{ *rand.Rand }

func (e enemy) pick(list ...string) string { return list[e.IntN(len(list))] }

func (e enemy) number() int64 {
	switch e.IntN(4) {
	case 0:
		return int64(e.IntN(4)) - 1
	case 1:
		return int64(e.Uint64())
	}
	return int64(e.IntN(100))
}

func (e enemy) text() string {
	return e.pick("orders", "orders", "group", "group", "member", "", "new", "range", "consumer", "retention.ms", "-1", "a/b", "\xff")
}

func (e enemy) bytes() []byte {
	switch e.IntN(3) {
	case 0:
		return nil
	case 1:
		b := make([]byte, e.IntN(200))
		for i := range b {
			b[i] = byte(e.Uint32())
		}
		return b
	}
	return e.batch()
}

// batch is one of messages whose sum is right, and perhaps nothing else.
func (e enemy) batch() []byte {
	n := int32(e.IntN(5))
	batch := kmsg.RecordBatch{
		Magic: 2, NumRecords: n, LastOffsetDelta: n - 1, ProducerID: e.number(), ProducerEpoch: int16(e.number()),
		FirstSequence: int32(e.number()), Attributes: int16(e.IntN(64)), FirstTimestamp: e.number(), MaxTimestamp: e.number(),
		Records: make([]byte, e.IntN(100)),
	}
	if e.IntN(3) == 0 {
		batch.ProducerID = -1
	}
	batch.Length = int32(len(batch.AppendTo(nil)) - 12)
	raw := batch.AppendTo(nil)
	batch.CRC = int32(crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	return batch.AppendTo(nil)
}

func (e enemy) fill(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; v.Field(i).CanSet() && name != "Version" && name != "UnknownTags" {
				e.fill(v.Field(i), depth+1)
			}
		}
	case reflect.Pointer:
		if e.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			e.fill(v.Elem(), depth+1)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(e.bytes())
			return
		}
		n := e.IntN(4)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			e.fill(v.Index(i), depth+1)
		}
	case reflect.Array:
		if e.IntN(2) == 0 {
			for i := range v.Len() {
				v.Index(i).SetUint(uint64(e.IntN(256)))
			}
		}
	case reflect.String:
		v.SetString(e.text())
	case reflect.Bool:
		v.SetBool(e.IntN(2) == 0)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(e.number())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		v.SetUint(uint64(e.number()))
	case reflect.Float64:
		v.SetFloat(e.NormFloat64())
	}
}

// requests are some that fit the protocol, and nothing else.
func (e enemy) requests(n int) (all []byte) {
	list := make([]int16, 0, len(served))
	for key := range int16(100) {
		if served[key] {
			list = append(list, key)
		}
	}
	for range n {
		q := kmsg.RequestForKey(list[e.IntN(len(list))])
		e.fill(reflect.ValueOf(q).Elem(), 0)
		q.SetVersion(int16(e.IntN(int(q.MaxVersion()) + 1)))
		all = append(all, frame(q)...)
	}
	return all
}

// FuzzBroker sends the broker itself requests that make no sense. It must live.
func FuzzBroker(f *testing.F) {
	l := start(f)
	l.produce("orders", "a")
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		e := enemy{rand.New(rand.NewPCG(seed, 1))}
		c, err := l.client.Env().Net.DialContext(t.Context(), "tcp", "kafka:9092")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(20 * time.Millisecond))
		if _, err := c.Write(e.requests(1 + e.IntN(12))); err == nil {
			_, _ = io.Copy(io.Discard, c)
		}
	})
	f.Cleanup(func() {
		c := l.connect()
		defer c.Close()
		r := &kgo.Record{Topic: "later", Value: []byte("b")}
		if err := c.ProduceSync(l.context(), r).FirstErr(); err != nil {
			f.Error(err)
		}
	})
}
