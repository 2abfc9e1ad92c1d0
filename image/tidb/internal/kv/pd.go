package kv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// callTime is how long one request to PD may take.
const callTime = time.Second

// PathStore is where stores report to PD, and PathTSO where it tells the time.
const (
	PathStore = "/pd/internal/store"
	PathTSO   = "/pd/internal/tso"
)

// Timestamp is what PD answers at [PathTSO]: a time that all TiDB servers agree on.
type Timestamp struct {
	TSO     uint64 `json:"tso"`
	Cluster uint64 `json:"cluster_id"`
}

// PD knows the members of the placement driver.
type PD struct {
	HTTP *http.Client
	// Seeds are addresses that lead to one of them, such as "http://basic-pd:2379".
	Seeds []string

	mu    sync.Mutex
	known []string
}

// Endpoints reads a list of addresses with commas between them, with or without a scheme.
func Endpoints(list string) (urls []string) {
	for _, e := range strings.Split(list, ",") {
		if e = strings.TrimSpace(e); e == "" {
			continue
		}
		if !strings.Contains(e, "://") {
			e = "http://" + e
		}
		urls = append(urls, strings.TrimRight(e, "/"))
	}
	return urls
}

// Members are what PD says of its members, the leader first.
type Members struct {
	Members []Member `json:"members"`
	Leader  *Member  `json:"leader,omitempty"`
}

// Member is one PD server.
type Member struct {
	Name       string   `json:"name"`
	MemberID   uint64   `json:"member_id"`
	PeerURLs   []string `json:"peer_urls"`
	ClientURLs []string `json:"client_urls"`
}

// refresh asks who the members are and returns their addresses, the leader's first.
func (p *PD) refresh(ctx context.Context) ([]string, error) {
	p.mu.Lock()
	ask := append(append([]string(nil), p.known...), p.Seeds...)
	p.mu.Unlock()
	var errs []error
	for _, url := range ask {
		var m Members
		if err := get(ctx, p.HTTP, url+"/pd/api/v1/members", &m); err != nil {
			errs = append(errs, err)
			continue
		}
		var list []string
		if m.Leader != nil {
			list = append(list, m.Leader.ClientURLs...)
		}
		for _, x := range m.Members {
			if m.Leader == nil || x.Name != m.Leader.Name {
				list = append(list, x.ClientURLs...)
			}
		}
		if len(list) > 0 {
			p.mu.Lock()
			p.known = list
			p.mu.Unlock()
			return list, nil
		}
	}
	return nil, errors.Join(append(errs, errors.New("no PD server answers"))...)
}

// Report tells all members about a store. What the leader orders is returned.
func (p *PD) Report(ctx context.Context, r StoreReport) (*Orders, error) {
	urls, err := p.refresh(ctx)
	if err != nil {
		return nil, err
	}
	var orders *Orders
	var failed error
	for _, url := range urls {
		call, cancel := context.WithTimeout(ctx, callTime)
		var o Orders
		err := post(call, p.HTTP, url+PathStore, r, &o)
		cancel()
		if err != nil {
			failed = err
		} else if orders == nil {
			orders = &o
		}
	}
	if orders == nil {
		return nil, failed
	}
	return orders, nil
}

// Timestamp asks for the time.
func (p *PD) Timestamp(ctx context.Context) (t Timestamp, err error) {
	urls, err := p.refresh(ctx)
	if err != nil {
		return t, err
	}
	return t, get(ctx, p.HTTP, urls[0]+PathTSO, &t)
}

// Stores are the addresses of the stores that are up, the one that leads first.
func (p *PD) Stores(ctx context.Context) ([]string, error) {
	urls, err := p.refresh(ctx)
	if err != nil {
		return nil, err
	}
	var list struct {
		Stores []struct {
			Store struct {
				Address   string `json:"address"`
				StateName string `json:"state_name"`
			} `json:"store"`
			Status struct {
				LeaderCount int `json:"leader_count"`
			} `json:"status"`
		} `json:"stores"`
	}
	if err := get(ctx, p.HTTP, urls[0]+"/pd/api/v1/stores", &list); err != nil {
		return nil, err
	}
	var addresses []string
	for _, s := range list.Stores {
		switch {
		case s.Store.StateName != "Up" && s.Store.StateName != "Offline":
		case s.Status.LeaderCount > 0:
			addresses = append([]string{s.Store.Address}, addresses...)
		default:
			addresses = append(addresses, s.Store.Address)
		}
	}
	return addresses, nil
}

func get(ctx context.Context, c *http.Client, url string, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	return json.Unmarshal(b, out)
}
