package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// message makes OP_MSG of sections.
func message(flags uint32, sections ...[]byte) []byte {
	dst := make([]byte, headerSize)
	binary.LittleEndian.PutUint32(dst[4:], 7)
	binary.LittleEndian.PutUint32(dst[12:], opMsg)
	dst = binary.LittleEndian.AppendUint32(dst, flags)
	for _, s := range sections {
		dst = append(dst, s...)
	}
	n := len(dst)
	if flags&flagChecksum != 0 {
		n += 4
	}
	binary.LittleEndian.PutUint32(dst, uint32(n))
	if flags&flagChecksum != 0 {
		dst = binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst, crc32.MakeTable(crc32.Castagnoli)))
	}
	return dst
}

func bodySection(d bson.D) []byte { return append([]byte{sectionBody}, value.Make(d)...) }

func listSection(name string, docs ...bson.D) []byte {
	dst := append([]byte(name), 0)
	for _, d := range docs {
		dst = append(dst, value.Make(d)...)
	}
	head := []byte{sectionList}
	head = binary.LittleEndian.AppendUint32(head, uint32(len(dst)+4))
	return append(head, dst...)
}

func query(ns string, d bson.D) []byte {
	dst := make([]byte, headerSize)
	binary.LittleEndian.PutUint32(dst[12:], opQuery)
	dst = append(dst, 0, 0, 0, 0)
	dst = append(append(dst, ns...), 0)
	dst = append(dst, 0, 0, 0, 0, 255, 255, 255, 255)
	dst = append(dst, value.Make(d)...)
	binary.LittleEndian.PutUint32(dst, uint32(len(dst)))
	return dst
}

var insert = bson.D{{Key: "insert", Value: "c"}, {Key: "$db", Value: "d"}}

func TestDecode(t *testing.T) {
	one, two := bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "_id", Value: 2}}
	for _, tt := range []struct {
		name string
		data []byte
		want string
		req  Request
	}{
		{"body", message(0, bodySection(insert)), `{ insert: "c", $db: "d" }`, Request{ID: 7}},
		{"list after", message(0, bodySection(insert), listSection("documents", one, two)), `{ insert: "c", $db: "d", documents: [ { _id: 1 }, { _id: 2 } ] }`, Request{ID: 7}},
		{"list before", message(0, listSection("documents", one), bodySection(insert)), `{ insert: "c", $db: "d", documents: [ { _id: 1 } ] }`, Request{ID: 7}},
		{"no reply", message(flagMoreToCome, bodySection(insert)), `{ insert: "c", $db: "d" }`, Request{ID: 7, NoReply: true}},
		{"exhaust", message(flagExhaustAllowed, bodySection(insert)), `{ insert: "c", $db: "d" }`, Request{ID: 7, Exhaust: true}},
		{"checksum", message(flagChecksum, bodySection(insert)), `{ insert: "c", $db: "d" }`, Request{ID: 7}},
		{"query", query("admin.$cmd", bson.D{{Key: "isMaster", Value: 1}}), `{ isMaster: 1, $db: "admin" }`, Request{Legacy: true}},
		{"wrapped query", query("admin.$cmd", bson.D{{Key: "$query", Value: bson.D{{Key: "isMaster", Value: 1}}}}), `{ isMaster: 1, $db: "admin" }`, Request{Legacy: true}},
	} {
		got, err := Read(bytes.NewReader(tt.data))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if text := value.Text(got.Body); text != tt.want {
			t.Errorf("%s: %s", tt.name, text)
		}
		got.Body = nil
		if got.ID != tt.req.ID || got.Legacy != tt.req.Legacy || got.NoReply != tt.req.NoReply || got.Exhaust != tt.req.Exhaust {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	damaged := message(flagChecksum, bodySection(insert))
	damaged[30]++
	huge := message(0, bodySection(insert))
	binary.LittleEndian.PutUint32(huge, MaxMessage+1)
	compressed := message(0, bodySection(insert))
	binary.LittleEndian.PutUint32(compressed[12:], 2012)
	for name, tt := range map[string]struct {
		data []byte
		want error
	}{
		"two bodies":    {message(0, bodySection(insert), bodySection(insert)), ErrMalformed},
		"no body":       {message(0, listSection("documents")), ErrMalformed},
		"unknown flag":  {message(4, bodySection(insert)), ErrMalformed},
		"checksum":      {damaged, ErrMalformed},
		"section":       {message(0, []byte{9}), ErrMalformed},
		"size":          {huge, ErrSize},
		"compressed":    {compressed, ErrUnsupported},
		"query on data": {query("db.c", bson.D{}), ErrUnsupported},
	} {
		if _, err := Read(bytes.NewReader(tt.data)); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReply(t *testing.T) {
	ok := value.Make(bson.D{{Key: "ok", Value: 1.0}})
	data := Reply(9, &Request{ID: 7}, ok, true)
	if binary.LittleEndian.Uint32(data[8:]) != 7 || binary.LittleEndian.Uint32(data[headerSize:]) != flagMoreToCome {
		t.Errorf("%x", data)
	}
	back, err := Decode(data)
	if err != nil || back.ID != 9 || value.Text(back.Body) != "{ ok: 1.0 }" {
		t.Errorf("%v %v", back, err)
	}
	legacy := Reply(9, &Request{ID: 7, Legacy: true}, ok, false)
	if binary.LittleEndian.Uint32(legacy[12:]) != opReply || !bytes.HasSuffix(legacy, ok) || len(legacy) != headerSize+20+len(ok) {
		t.Errorf("%x", legacy)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(message(0, bodySection(insert), listSection("documents", bson.D{{Key: "a", Value: "x"}})))
	f.Add(message(flagChecksum, bodySection(insert)))
	f.Add(query("admin.$cmd", bson.D{{Key: "isMaster", Value: 1}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) >= 4 {
			binary.LittleEndian.PutUint32(data, uint32(len(data)))
		}
		req, err := Decode(data)
		if err == nil && value.Validate(req.Body) != nil && len(req.Body) < value.MaxSize {
			t.Errorf("accepted a command that is not valid: %x", data)
		}
	})
}
