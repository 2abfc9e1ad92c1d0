package redis

import (
	"strconv"
	"strings"
)

// keys says which arguments of a writing command are keys: from first to last in steps. A negative
// last counts from the end.
type keys struct {
	first, last, step int
	grows             bool // it may need memory
}

// writes are the commands that change data.
var writes = map[string]keys{}

func init() {
	add := func(k keys, names string) {
		for n := range strings.FieldsSeq(names) {
			writes[n] = k
		}
	}
	add(keys{1, 1, 1, true}, `SET SETNX SETEX PSETEX GETSET APPEND SETRANGE SETBIT INCR DECR INCRBY DECRBY INCRBYFLOAT
		HSET HSETNX HMSET HINCRBY HINCRBYFLOAT LPUSH RPUSH LPUSHX RPUSHX LSET LINSERT SADD ZADD ZINCRBY XADD PFADD GEOADD RESTORE`)
	add(keys{1, 1, 1, false},
		`GETDEL GETEX EXPIRE PEXPIRE EXPIREAT PEXPIREAT PERSIST HDEL LPOP RPOP LREM LTRIM SREM SPOP ZREM
		ZREMRANGEBYSCORE ZREMRANGEBYRANK ZREMRANGEBYLEX ZPOPMIN ZPOPMAX XDEL XTRIM XACK XCLAIM XAUTOCLAIM MOVE`)
	add(keys{1, -1, 1, false}, "DEL UNLINK")
	add(keys{1, -1, 2, true}, "MSET MSETNX")
	add(keys{1, 2, 1, true}, "RENAME RENAMENX COPY RPOPLPUSH LMOVE SMOVE BRPOPLPUSH BLMOVE")
	add(keys{1, -1, 1, true}, "SUNIONSTORE SINTERSTORE SDIFFSTORE PFMERGE")
	add(keys{1, 1, 1, true}, "ZUNIONSTORE ZINTERSTORE ZDIFFSTORE ZRANGESTORE GEOSEARCHSTORE")
	add(keys{1, -2, 1, false}, "BLPOP BRPOP BZPOPMIN BZPOPMAX")
	add(keys{2, -1, 1, true}, "BITOP")
	add(keys{2, 2, 1, true}, "XGROUP")
	add(keys{0, 0, 0, true}, "XREADGROUP LMPOP ZMPOP BZMPOP")
	add(keys{0, 0, 0, false}, "FLUSHALL FLUSHDB SWAPDB")
}

// of returns the keys in a command.
func (k keys) of(args []string) (list []string) {
	switch args[0] {
	case "LMPOP", "ZMPOP":
		return counted(args, 1)
	case "BZMPOP":
		return counted(args, 2)
	case "XREADGROUP":
		for i, a := range args {
			if strings.EqualFold(a, "STREAMS") {
				rest := args[i+1:]
				return rest[:len(rest)/2]
			}
		}
	}
	if k.first == 0 {
		return nil
	}
	last := k.last
	if last < 0 {
		last += len(args)
	}
	for i := k.first; i <= last && i < len(args); i += k.step {
		list = append(list, args[i])
	}
	return list
}

// counted returns the keys after an argument that says how many they are.
func counted(args []string, at int) []string {
	if len(args) <= at {
		return nil
	}
	n, err := strconv.Atoi(args[at])
	if err != nil || n < 0 || at+1+n > len(args) {
		return nil
	}
	return args[at+1 : at+1+n]
}

// blocking are the commands that may wait for other clients, who must be able to go on.
func blocking(args []string) bool {
	switch args[0] {
	case "BLPOP", "BRPOP", "BRPOPLPUSH", "BLMOVE", "BZPOPMIN", "BZPOPMAX", "BZMPOP":
		return true
	case "XREAD", "XREADGROUP":
		for _, a := range args {
			if strings.EqualFold(a, "BLOCK") {
				return true
			}
		}
	}
	return false
}

// hidden are commands of miniredis that this release does not have.
var hidden = map[string]bool{
	"HEXPIRE": true, "HPEXPIRE": true, "HEXPIREAT": true, "HPEXPIREAT": true, "HTTL": true, "HPTTL": true,
	"HPERSIST": true, "HSETEX": true, "HGETEX": true, "HEXPIRETIME": true, "HPEXPIRETIME": true, "DELEX": true,
	"DIGEST": true, "EXPIRETIME": true, "PEXPIRETIME": true,
}

// setsExpiry tells whether a command says when a key expires.
func setsExpiry(args []string) bool {
	switch args[0] {
	case "EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT", "SETEX", "PSETEX", "RESTORE":
		return true
	case "SET", "GETEX":
		for _, a := range args[2:] {
			switch strings.ToUpper(a) {
			case "EX", "PX", "EXAT", "PXAT":
				return true
			}
		}
	}
	return false
}

// unchanged are the commands that have done nothing if their reply is 0.
var unchanged = map[string]bool{}

func init() {
	for n := range strings.FieldsSeq(
		`DEL UNLINK HDEL SREM ZREM SADD SETNX MSETNX HSETNX PERSIST EXPIRE PEXPIRE EXPIREAT PEXPIREAT LPUSHX RPUSHX
		RENAMENX COPY MOVE LREM SMOVE ZREMRANGEBYSCORE ZREMRANGEBYRANK ZREMRANGEBYLEX XDEL XTRIM XACK PFADD`) {
		unchanged[n] = true
	}
}

// lookups are the commands that read a key, for the count of hits and misses.
var lookups = map[string]bool{}

func init() {
	for n := range strings.FieldsSeq(
		`GET MGET STRLEN GETRANGE EXISTS HGET HGETALL HMGET HKEYS HVALS HLEN HEXISTS LRANGE LINDEX LLEN SMEMBERS
		SISMEMBER SMISMEMBER SCARD SRANDMEMBER ZRANGE ZREVRANGE ZRANGEBYSCORE ZREVRANGEBYSCORE ZSCORE ZMSCORE ZCARD ZRANK ZREVRANK ZCOUNT
		XRANGE XREVRANGE XLEN GETBIT BITCOUNT GEOPOS GEODIST TTL PTTL TYPE`) {
		lookups[n] = true
	}
}

// durable returns a command with the same effect that gives the same result whenever it is repeated,
// or nil if nothing has to be repeated.
func durable(args []string, r reply) [][]string {
	if r.kind == failure || r.text == "0" && r.kind == integer && unchanged[args[0]] {
		return nil
	}
	switch args[0] {
	case "SPOP":
		removed := []string{"SREM", args[1]}
		for _, m := range append([]reply{r}, r.items...) {
			if m.kind == bulk && !m.null {
				removed = append(removed, m.text)
			}
		}
		if len(removed) == 2 {
			return nil
		}
		return [][]string{removed}
	case "XADD":
		for i := 2; i < len(args); i++ {
			if strings.HasSuffix(args[i], "*") {
				repeated := append([]string(nil), args...)
				repeated[i] = r.text
				return [][]string{repeated}
			}
		}
	case "BLPOP", "BRPOP", "BZPOPMIN", "BZPOPMAX":
		if len(r.items) == 0 {
			return nil
		}
		return [][]string{{args[0][1:], r.items[0].text}}
	case "BRPOPLPUSH":
		if r.null {
			return nil
		}
		return [][]string{{"RPOPLPUSH", args[1], args[2]}}
	case "BLMOVE":
		if r.null {
			return nil
		}
		return [][]string{{"LMOVE", args[1], args[2], args[3], args[4]}}
	}
	return [][]string{args}
}

// reword corrects the errors that miniredis words otherwise.
func reword(args []string, result []byte) []byte {
	if len(result) == 0 || result[0] != failure {
		return result
	}
	if args[0] == "HINCRBY" && len(args) == 4 && strings.HasPrefix(string(result), "-ERR value is not an integer") {
		if _, err := strconv.ParseInt(args[3], 10, 64); err == nil {
			return fail("ERR hash value is not an integer")
		}
	}
	return result
}
