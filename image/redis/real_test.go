package redis

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// script makes commands on a few keys of all types, so that they often meet a wrong one.
func script(rng *rand.Rand, n int) (list []string) {
	key := func() string { return "k" + strconv.Itoa(rng.IntN(7)) }
	num := func() string { return strconv.Itoa(rng.IntN(9) - 3) }
	word := func() string { return []string{"a", "b", "c", "10", "-3", "hello", "''"}[rng.IntN(7)] }
	forms := []func() string{
		func() string { return fmt.Sprintf("set %s %s", key(), word()) },
		func() string {
			return fmt.Sprintf("set %s %s %s", key(), word(), []string{"nx", "xx", "ex 100", "keepttl", "get"}[rng.IntN(5)])
		},
		func() string { return fmt.Sprintf("get %s", key()) },
		func() string { return fmt.Sprintf("getset %s %s", key(), word()) },
		func() string { return fmt.Sprintf("append %s %s", key(), word()) },
		func() string { return fmt.Sprintf("incrby %s %s", key(), num()) },
		func() string { return fmt.Sprintf("incr %s", key()) },
		func() string { return fmt.Sprintf("mget %s %s", key(), key()) },
		func() string { return fmt.Sprintf("del %s", key()) },
		func() string { return fmt.Sprintf("exists %s %s", key(), key()) },
		func() string { return fmt.Sprintf("type %s", key()) },
		func() string { return fmt.Sprintf("rename %s %s", key(), key()) },
		func() string { return fmt.Sprintf("expire %s %d", key(), 100*(rng.IntN(3)-1)) },
		func() string { return fmt.Sprintf("ttl %s", key()) },
		func() string { return fmt.Sprintf("persist %s", key()) },
		func() string { return fmt.Sprintf("lpush %s %s %s", key(), word(), word()) },
		func() string { return fmt.Sprintf("rpush %s %s", key(), word()) },
		func() string { return fmt.Sprintf("lpop %s", key()) },
		func() string { return fmt.Sprintf("rpop %s", key()) },
		func() string { return fmt.Sprintf("lrange %s %s %s", key(), num(), num()) },
		func() string { return fmt.Sprintf("llen %s", key()) },
		func() string { return fmt.Sprintf("ltrim %s %s %s", key(), num(), num()) },
		func() string { return fmt.Sprintf("lrem %s %s %s", key(), num(), word()) },
		func() string { return fmt.Sprintf("lindex %s %s", key(), num()) },
		func() string { return fmt.Sprintf("sadd %s %s %s", key(), word(), word()) },
		func() string { return fmt.Sprintf("srem %s %s", key(), word()) },
		func() string { return fmt.Sprintf("smembers %s", key()) },
		func() string { return fmt.Sprintf("sismember %s %s", key(), word()) },
		func() string { return fmt.Sprintf("hset %s %s %s", key(), word(), word()) },
		func() string { return fmt.Sprintf("hget %s %s", key(), word()) },
		func() string { return fmt.Sprintf("hdel %s %s", key(), word()) },
		func() string { return fmt.Sprintf("hgetall %s", key()) },
		func() string { return fmt.Sprintf("hincrby %s %s %s", key(), word(), num()) },
		func() string { return fmt.Sprintf("zadd %s %s %s", key(), num(), word()) },
		func() string { return fmt.Sprintf("zadd %s nx %s %s %s other", key(), num(), word(), num()) },
		func() string { return fmt.Sprintf("zrange %s %s %s withscores", key(), num(), num()) },
		func() string { return fmt.Sprintf("zrevrange %s %s %s", key(), num(), num()) },
		func() string { return fmt.Sprintf("zrangebyscore %s %s %s", key(), num(), num()) },
		func() string { return fmt.Sprintf("zscore %s %s", key(), word()) },
		func() string { return fmt.Sprintf("zrem %s %s", key(), word()) },
		func() string { return fmt.Sprintf("zincrby %s %s %s", key(), num(), word()) },
		func() string { return fmt.Sprintf("zcard %s", key()) },
		func() string { return fmt.Sprintf("zremrangebyrank %s %s %s", key(), num(), num()) },
		func() string { return "dbsize" },
	}
	for range n {
		list = append(list, forms[rng.IntN(len(forms))]())
	}
	return list
}

// Where a real one is installed, both answer alike.
func TestLikeTheRealOne(t *testing.T) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := ln.Addr().(*net.TCPAddr)
	ln.Close()
	cmd := exec.CommandContext(t.Context(), program, "--port", strconv.Itoa(address.Port), "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	real, err := net.Dial("tcp", address.String())
	for ; err != nil && t.Context().Err() == nil; real, err = net.Dial("tcp", address.String()) {
		time.Sleep(10 * time.Millisecond)
	}
	defer real.Close()
	m := machine(t)
	start(t, m)
	ours, err := m.Env().Net.DialContext(context.Background(), "tcp", m.Addr+":6379")
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	realIn, oursIn := bufio.NewReader(real), bufio.NewReader(ours)
	ask := func(c net.Conn, in *bufio.Reader, line string) string {
		fmt.Fprintf(c, "%s\r\n", line)
		r, err := readReply(in)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, "smembers") || strings.HasPrefix(line, "hgetall") { // In no order.
			slices.SortFunc(r.items, func(a, b reply) int { return strings.Compare(a.text, b.text) })
		}
		return formatStandard(r, "")
	}
	for seed := range uint64(200) {
		var done []string
		for _, line := range append([]string{"flushall"}, script(rand.New(rand.NewPCG(seed, 0)), 60)...) {
			want, got := ask(real, realIn, line), ask(ours, oursIn, line)
			done = append(done, line)
			if got != want {
				t.Fatalf("seed %d:\n%s\ngot  %swant %s", seed, strings.Join(done, "\n"), got, want)
			}
		}
	}
}
