package redis

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"math"
	"slices"
	"strconv"
	"time"
)

// The format of snapshots: what redis 6.2 writes, in the plainest encodings it reads.
const (
	rdbVersion = 9

	opAux      = 0xFA
	opResize   = 0xFB
	opExpireMS = 0xFC
	opExpire   = 0xFD
	opSelect   = 0xFE
	opEnd      = 0xFF

	typeString = 0
	typeList   = 1
	typeSet    = 2
	typeHash   = 4
	typeZset   = 5

	// auxCommands is a field that redis passes over: commands that make what the plain encodings
	// cannot express.
	auxCommands = "commands"
)

// crcTable is of the polynomial by Jones.
var crcTable = crc64.MakeTable(0x95AC9329AC4BC9B5)

// crc adds to a checksum. Redis does not invert it at both ends, as package crc64 does.
func crc(sum uint64, p []byte) uint64 { return ^crc64.Update(^sum, crcTable, p) }

type rdbWriter struct {
	w   *bufio.Writer
	sum uint64
	err error
}

func (w *rdbWriter) write(p ...byte) {
	if w.err == nil {
		w.sum = crc(w.sum, p)
		_, w.err = w.w.Write(p)
	}
}

func (w *rdbWriter) length(n int) {
	switch {
	case n < 1<<6:
		w.write(byte(n))
	case n < 1<<14:
		w.write(0x40|byte(n>>8), byte(n))
	default:
		w.write(binary.BigEndian.AppendUint32([]byte{0x80}, uint32(n))...)
	}
}

func (w *rdbWriter) text(s string) {
	w.length(len(s))
	w.write([]byte(s)...)
}

func (w *rdbWriter) aux(key, value string) {
	w.write(opAux)
	w.text(key)
	w.text(value)
}

// writeRDB writes a snapshot. The keys are in order, so that the same data is the same file.
func (d *data) writeRDB(out io.Writer, now time.Time) error {
	w := &rdbWriter{w: bufio.NewWriter(out)}
	w.write(fmt.Appendf(nil, "REDIS%04d", rdbVersion)...)
	w.aux("redis-ver", Version)
	w.aux("redis-bits", "64")
	w.aux("ctime", strconv.FormatInt(now.Unix(), 10))
	w.aux("used-mem", strconv.FormatInt(baseMemory+d.total, 10))
	w.aux("aof-preamble", "0")
	byDB := map[int][]string{}
	volatile := map[int]int{}
	for n, e := range d.entries {
		byDB[n.db] = append(byDB[n.db], n.key)
		if !e.expires.IsZero() {
			volatile[n.db]++
		}
	}
	var dbs []int
	for db := range byDB {
		dbs = append(dbs, db)
	}
	slices.Sort(dbs)
	for _, db := range dbs {
		keys := byDB[db]
		slices.Sort(keys)
		w.write(opSelect)
		w.length(db)
		w.write(opResize)
		w.length(len(keys))
		w.length(volatile[db])
		for _, key := range keys {
			d.writeKey(w, db, key, d.entries[name{db, key}])
		}
	}
	w.write(opEnd)
	if w.err == nil {
		_, w.err = w.w.Write(binary.LittleEndian.AppendUint64(nil, w.sum))
	}
	return errors.Join(w.err, w.w.Flush())
}

func (d *data) writeKey(w *rdbWriter, db int, key string, e *entry) {
	store := d.DB(db)
	begin := func(kind byte) {
		if !e.expires.IsZero() {
			w.write(binary.LittleEndian.AppendUint64([]byte{opExpireMS}, uint64(e.expires.UnixMilli()))...)
		}
		w.write(kind)
		w.text(key)
	}
	all := func(list []string) {
		w.length(len(list))
		for _, s := range list {
			w.text(s)
		}
	}
	switch e.kind {
	case "string":
		v, _ := store.Get(key)
		begin(typeString)
		w.text(v)
	case "list":
		v, _ := store.List(key)
		begin(typeList)
		all(v)
	case "set":
		v, _ := store.Members(key)
		begin(typeSet)
		all(v)
	case "hash":
		fields, _ := store.HKeys(key)
		begin(typeHash)
		w.length(len(fields))
		for _, f := range fields {
			w.text(f)
			w.text(store.HGet(key, f))
		}
	case "zset":
		members, _ := store.ZMembers(key)
		begin(typeZset)
		w.length(len(members))
		for _, m := range members {
			score, _ := store.ZScore(key, m)
			w.text(m)
			w.write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(score))...)
		}
	case "stream":
		commands := encode("SELECT", strconv.Itoa(db))
		entries, _ := store.Stream(key)
		for _, s := range entries {
			commands = append(commands, encode(append([]string{"XADD", key, s.ID}, s.Values...)...)...)
		}
		if !e.expires.IsZero() {
			commands = append(commands, encode("PEXPIREAT", key, strconv.FormatInt(e.expires.UnixMilli(), 10))...)
		}
		w.aux(auxCommands, string(commands))
	}
}

// errRDB is a snapshot that cannot be read.
var errRDB error = said("Wrong signature trying to load DB from file")

type rdbReader struct {
	r   *bufio.Reader
	sum uint64
}

func (r *rdbReader) read(n int) ([]byte, error) {
	p, err := readN(r.r, n, free)
	r.sum = crc(r.sum, p)
	return p, err
}

func (r *rdbReader) byte() (byte, error) {
	p, err := r.read(1)
	if err != nil {
		return 0, err
	}
	return p[0], nil
}

// length returns a length, or the number of a special encoding.
func (r *rdbReader) length() (n int, special bool, err error) {
	b, err := r.byte()
	if err != nil {
		return 0, false, err
	}
	var p []byte
	switch b >> 6 {
	case 0:
		return int(b), false, nil
	case 1:
		c, err := r.byte()
		return int(b&0x3F)<<8 | int(c), false, err
	case 3:
		return int(b & 0x3F), true, nil
	}
	if b == 0x81 {
		if p, err = r.read(8); err == nil && binary.BigEndian.Uint64(p) <= maxBulk {
			return int(binary.BigEndian.Uint64(p)), false, nil
		}
		return 0, false, errors.Join(err, errors.New("length out of range"))
	}
	if p, err = r.read(4); err != nil {
		return 0, false, err
	}
	n = int(binary.BigEndian.Uint32(p))
	if n > maxBulk {
		return 0, false, errors.New("length out of range")
	}
	return n, false, nil
}

func (r *rdbReader) text() (string, error) {
	n, special, err := r.length()
	if err != nil {
		return "", err
	}
	if special {
		if n > 2 {
			return "", fmt.Errorf("unknown string encoding %d", n)
		}
		p, err := r.read(1 << n)
		if err != nil {
			return "", err
		}
		var v int64
		for i, b := range p {
			v |= int64(b) << (8 * i)
		}
		shift := 64 - 8*len(p)
		return strconv.FormatInt(v<<shift>>shift, 10), nil
	}
	p, err := r.read(n)
	return string(p), err
}

// rdbInfo is what a snapshot tells of itself.
type rdbInfo struct {
	version string
	created time.Time
	memory  int64
}

// readRDB reads a snapshot and gives its data as commands. Keys that have expired are left out.
func readRDB(in io.Reader, now time.Time, give func(db int, args ...string)) (info rdbInfo, err error) {
	r := &rdbReader{r: bufio.NewReader(in)}
	head, err := r.read(9)
	if err != nil || string(head[:5]) != "REDIS" {
		return info, errRDB
	}
	if v, err := strconv.Atoi(string(head[5:])); err != nil || v < 1 || v > rdbVersion {
		return info, saidf("Can't handle RDB format version %s", head[5:])
	}
	db := 0
	var expires int64
	for {
		op, err := r.byte()
		if err != nil {
			return info, err
		}
		switch op {
		case opEnd:
			sum := r.sum
			tail, err := readN(r.r, 8, free)
			if err != nil {
				return info, err
			}
			if want := binary.LittleEndian.Uint64(tail); want != 0 && want != sum {
				return info, saidf("Wrong RDB checksum expected: (%x) but got (%x). Aborting now.", want, sum)
			}
			return info, nil
		case opSelect:
			if db, _, err = r.length(); err != nil {
				return info, err
			}
		case opResize:
			for range 2 {
				if _, _, err = r.length(); err != nil {
					return info, err
				}
			}
		case opExpireMS, opExpire:
			size, unit := 8, int64(1)
			if op == opExpire {
				size, unit = 4, 1000
			}
			p, err := r.read(size)
			if err != nil {
				return info, err
			}
			expires = int64(binary.LittleEndian.Uint64(append(p, make([]byte, 8-size)...))) * unit
		case opAux:
			if err := r.readAux(&info, give); err != nil {
				return info, err
			}
		default:
			args, err := r.value(op)
			if err != nil {
				return info, err
			}
			if expires == 0 || expires > now.UnixMilli() {
				if len(args) > 2 {
					give(db, args...)
				}
				if expires != 0 {
					give(db, "PEXPIREAT", args[1], strconv.FormatInt(expires, 10))
				}
			}
			expires = 0
		}
	}
}

func (r *rdbReader) readAux(info *rdbInfo, give func(db int, args ...string)) error {
	key, err := r.text()
	if err != nil {
		return err
	}
	value, err := r.text()
	if err != nil {
		return err
	}
	n, _ := strconv.ParseInt(value, 10, 64)
	switch key {
	case "redis-ver":
		info.version = value
	case "ctime":
		info.created = time.Unix(n, 0)
	case "used-mem":
		info.memory = n
	case auxCommands:
		_, err = replay(bufio.NewReader(stringReader(value)), give)
	}
	return err
}

// value reads a key and what it holds, as the command that makes it.
func (r *rdbReader) value(kind byte) ([]string, error) {
	command, ok := map[byte]string{
		typeString: "SET", typeList: "RPUSH", typeSet: "SADD", typeHash: "HSET",
		typeZset: "ZADD",
	}[kind]
	if !ok {
		return nil, saidf("Unknown RDB encoding type %d", kind)
	}
	key, err := r.text()
	if err != nil {
		return nil, err
	}
	args := []string{command, key}
	n := 1
	if kind != typeString {
		if n, _, err = r.length(); err != nil {
			return nil, err
		}
	}
	for range n {
		v, err := r.text()
		if err != nil {
			return nil, err
		}
		switch kind {
		case typeHash:
			w, err := r.text()
			if err != nil {
				return nil, err
			}
			args = append(args, v, w)
		case typeZset:
			p, err := r.read(8)
			if err != nil {
				return nil, err
			}
			score := math.Float64frombits(binary.LittleEndian.Uint64(p))
			args = append(args, strconv.FormatFloat(score, 'g', 17, 64), v)
		default:
			args = append(args, v)
		}
	}
	return args, nil
}
