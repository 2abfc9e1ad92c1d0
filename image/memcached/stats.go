package memcached

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// stats are the counters of the store.
type stats struct {
	cmdGet, cmdSet, cmdFlush, cmdTouch         int64
	getHits, getMisses, getExpired, getFlushed int64
	deleteMisses, deleteHits                   int64
	incrMisses, incrHits, decrMisses, decrHits int64
	casMisses, casHits, casBadval              int64
	touchHits, touchMisses                     int64
	storeTooLarge, storeNoMemory               int64
	totalItems                                 int64
	crawlerStarts, crawlerChecked              int64
}

// classStats are the counters of a slab class.
type classStats struct {
	getHits, cmdSet, deleteHits, incrHits, decrHits, casHits, casBadval, touchHits int64
	evicted, evictedNonzero, evictedTime, evictedUnfetched                         int64
	reclaimed, expiredUnfetched, crawlerReclaimed, outOfMemory                     int64
}

// traffic are the counters of the connections.
type traffic struct {
	current, total, rejected atomic.Int64
	bytesRead, bytesWritten  atomic.Int64
	cmdMeta                  atomic.Int64
}

// statWriter collects lines "STAT name value".
type statWriter struct{ strings.Builder }

func (w *statWriter) add(name string, value any) { fmt.Fprintf(w, "STAT %s %v\r\n", name, value) }

func (c *conn) showStats(args []string) error {
	var w statWriter
	what := ""
	if len(args) > 1 {
		what = args[1]
	}
	switch what {
	case "":
		c.general(&w)
	case "settings":
		c.settings(&w)
	case "items":
		c.store.itemStats(&w)
	case "slabs":
		c.store.slabStats(&w)
	case "sizes":
		w.add("sizes_status", "disabled")
	case "conns":
		c.connections(&w)
	case "cachedump":
		if len(args) < 4 {
			c.reply("CLIENT_ERROR bad command line")
			return nil
		}
		id, err1 := strconv.Atoi(args[2])
		limit, err2 := strconv.Atoi(args[3])
		if err1 != nil || err2 != nil {
			c.reply(badFormat)
			return nil
		}
		c.store.dump(&w, id, limit)
	case "reset":
		c.store.resetStats()
		for _, n := range []*atomic.Int64{
			&c.stats.total, &c.stats.rejected, &c.stats.bytesRead, &c.stats.bytesWritten,
			&c.stats.cmdMeta,
		} {
			n.Store(0)
		}
		c.reply("RESET")
		return nil
	default:
		c.reply("ERROR")
		return nil
	}
	c.out.WriteString(w.String())
	c.reply("END")
	return nil
}

func (c *conn) general(w *statWriter) {
	s := c.store
	s.mu.Lock()
	defer s.mu.Unlock()
	cpu := c.env.CPU.Info().Used
	w.add("pid", c.env.PID)
	w.add("uptime", int64(time.Since(c.started)/time.Second))
	w.add("time", time.Now().Unix())
	w.add("version", Version)
	w.add("libevent", "2.1.12-stable")
	w.add("pointer_size", 64)
	w.add("rusage_user", fmt.Sprintf("%.6f", (cpu/2).Seconds()))
	w.add("rusage_system", fmt.Sprintf("%.6f", (cpu/2).Seconds()))
	w.add("max_connections", c.maxConns)
	w.add("curr_connections", c.stats.current.Load())
	w.add("total_connections", c.stats.total.Load())
	w.add("rejected_connections", c.stats.rejected.Load())
	w.add("cmd_get", s.stats.cmdGet)
	w.add("cmd_set", s.stats.cmdSet)
	w.add("cmd_flush", s.stats.cmdFlush)
	w.add("cmd_touch", s.stats.cmdTouch)
	w.add("cmd_meta", c.stats.cmdMeta.Load())
	w.add("get_hits", s.stats.getHits)
	w.add("get_misses", s.stats.getMisses)
	w.add("get_expired", s.stats.getExpired)
	w.add("get_flushed", s.stats.getFlushed)
	w.add("delete_misses", s.stats.deleteMisses)
	w.add("delete_hits", s.stats.deleteHits)
	w.add("incr_misses", s.stats.incrMisses)
	w.add("incr_hits", s.stats.incrHits)
	w.add("decr_misses", s.stats.decrMisses)
	w.add("decr_hits", s.stats.decrHits)
	w.add("cas_misses", s.stats.casMisses)
	w.add("cas_hits", s.stats.casHits)
	w.add("cas_badval", s.stats.casBadval)
	w.add("touch_hits", s.stats.touchHits)
	w.add("touch_misses", s.stats.touchMisses)
	w.add("store_too_large", s.stats.storeTooLarge)
	w.add("store_no_memory", s.stats.storeNoMemory)
	w.add("bytes_read", c.stats.bytesRead.Load())
	w.add("bytes_written", c.stats.bytesWritten.Load())
	w.add("limit_maxbytes", s.slabs.limit)
	w.add("accepting_conns", 1)
	w.add("listen_disabled_num", 0)
	w.add("threads", c.threads)
	w.add("hash_power_level", 16)
	w.add("hash_bytes", 524288)
	w.add("lru_crawler_starts", s.stats.crawlerStarts)
	w.add("bytes", s.bytes)
	w.add("curr_items", len(s.items))
	w.add("total_items", s.stats.totalItems)
	var sum classStats
	for i := range s.slabs.classes {
		k := s.slabs.classes[i].counted
		sum.evicted += k.evicted
		sum.evictedUnfetched += k.evictedUnfetched
		sum.reclaimed += k.reclaimed
		sum.expiredUnfetched += k.expiredUnfetched
		sum.crawlerReclaimed += k.crawlerReclaimed
	}
	w.add("expired_unfetched", sum.expiredUnfetched)
	w.add("evicted_unfetched", sum.evictedUnfetched)
	w.add("evictions", sum.evicted)
	w.add("reclaimed", sum.reclaimed)
	w.add("crawler_reclaimed", sum.crawlerReclaimed)
	w.add("crawler_items_checked", s.stats.crawlerChecked)
}

func (c *conn) settings(w *statWriter) {
	c.store.mu.Lock()
	limit := c.store.slabs.limit
	c.store.mu.Unlock()
	inter := c.listen
	if inter == "" {
		inter = "NULL"
	}
	evictions := "on"
	if c.store.noEvict {
		evictions = "off"
	}
	w.add("maxbytes", limit)
	w.add("maxconns", c.maxConns)
	w.add("tcpport", c.port)
	w.add("udpport", 0)
	w.add("inter", inter)
	w.add("verbosity", c.verbose.Load())
	w.add("evictions", evictions)
	w.add("domain_socket", "NULL")
	w.add("growth_factor", "1.25")
	w.add("chunk_size", 48)
	w.add("num_threads", c.threads)
	w.add("cas_enabled", "yes")
	w.add("binding_protocol", "auto-negotiate")
	w.add("auth_enabled_sasl", "no")
	w.add("item_size_max", c.store.maxItem)
	w.add("maxconns_fast", "yes")
	w.add("slab_chunk_max", chunkMax)
	w.add("lru_crawler", "yes")
	w.add("flush_enabled", "yes")
	w.add("dump_enabled", "yes")
	w.add("hash_algorithm", "murmur3")
	w.add("idle_timeout", 0)
}

func (s *store) itemStats(w *statWriter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for i := range s.slabs.classes {
		c := &s.slabs.classes[i]
		if c.list.n == 0 {
			continue
		}
		add := func(name string, value int64) { w.add(fmt.Sprintf("items:%d:%s", i, name), value) }
		requested := int64(0)
		for it := c.list.head; it != nil; it = it.next {
			requested += int64(it.size())
		}
		add("number", c.list.n)
		add("age", int64(now.Sub(c.list.tail.accessed)/time.Second))
		add("mem_requested", requested)
		add("evicted", c.counted.evicted)
		add("evicted_nonzero", c.counted.evictedNonzero)
		add("evicted_time", c.counted.evictedTime)
		add("outofmemory", c.counted.outOfMemory)
		add("reclaimed", c.counted.reclaimed)
		add("expired_unfetched", c.counted.expiredUnfetched)
		add("evicted_unfetched", c.counted.evictedUnfetched)
		add("crawler_reclaimed", c.counted.crawlerReclaimed)
	}
}

func (s *store) slabStats(w *statWriter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	active := 0
	for i := range s.slabs.classes {
		c := &s.slabs.classes[i]
		if c.pages == 0 {
			continue
		}
		active++
		add := func(name string, value int64) { w.add(fmt.Sprintf("%d:%s", i, name), value) }
		perPage := int64(pageSize / c.size)
		add("chunk_size", int64(c.size))
		add("chunks_per_page", perPage)
		add("total_pages", c.pages)
		add("total_chunks", c.pages*perPage)
		add("used_chunks", c.used)
		add("free_chunks", c.free+c.fresh)
		add("free_chunks_end", 0)
		add("get_hits", c.counted.getHits)
		add("cmd_set", c.counted.cmdSet)
		add("delete_hits", c.counted.deleteHits)
		add("incr_hits", c.counted.incrHits)
		add("decr_hits", c.counted.decrHits)
		add("cas_hits", c.counted.casHits)
		add("cas_badval", c.counted.casBadval)
		add("touch_hits", c.counted.touchHits)
	}
	w.add("active_slabs", active)
	w.add("total_malloced", s.slabs.pages*pageSize)
}

// dump lists the items of a class, as "stats cachedump" does.
func (s *store) dump(w *statWriter, id, limit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id < 1 || id >= len(s.slabs.classes) {
		return
	}
	for it := s.slabs.classes[id].list.head; it != nil; it = it.next {
		expires := int64(0)
		if !it.expires.IsZero() {
			expires = it.expires.Unix()
		}
		fmt.Fprintf(w, "ITEM %s [%d b; %d s]\r\n", it.key, len(it.value), expires)
		if limit--; limit == 0 {
			return
		}
	}
}

// all returns copies of the living items by class and age.
func (s *store) all() (list []item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for i := range s.slabs.classes {
		for it := s.slabs.classes[i].list.tail; it != nil; it = it.prev {
			if !s.dead(it, now) {
				list = append(list, *it)
			}
		}
	}
	return slices.Clip(list)
}

// peek returns an item without using it.
func (s *store) peek(key string) (item, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.items[key]
	if it == nil || s.dead(it, time.Now()) {
		return item{}, false
	}
	return *it, true
}

func (s *store) setLimit(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slabs.limit = bytes
}

func (s *store) resetStats() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats = stats{}
	for i := range s.slabs.classes {
		s.slabs.classes[i].counted = classStats{}
	}
}
