package tidboperator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// driver is what the operator wants of the PD of a cluster.
type driver interface {
	// view tells who is there.
	view(ctx context.Context, c *cluster) (*view, error)
	// dismiss takes a member of PD out. One that is not there is no error.
	dismiss(ctx context.Context, c *cluster, name string) error
	// retire has a store give up its data. gone says that it has.
	retire(ctx context.Context, c *cluster, pod string) (gone bool, err error)
	// evict has a store lead no region. done says that it leads none, or that no other could.
	evict(ctx context.Context, c *cluster, pod string) (done bool, err error)
	// readmit ends all evictions.
	readmit(ctx context.Context, c *cluster) error
}

// view is a cluster as PD sees it.
type view struct {
	clusterID string
	members   map[string]member
	leader    *member
	stores    map[string]storeStatus
}

// callTime bounds a request to PD.
const callTime = 2 * time.Second

// httpDriver asks PD over HTTP.
type httpDriver struct{ client *http.Client }

func (d *httpDriver) call(ctx context.Context, method string, c *cluster, path string,
	in, out any,
) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	url := fmt.Sprintf("http://%s-pd.%s.svc:2379/pd/api/v1/%s", c.Name, c.Namespace, path)
	body := []byte(nil)
	if in != nil {
		if body, err = json.Marshal(in); err != nil {
			return 0, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return resp.StatusCode, err
	}
	if resp.StatusCode != http.StatusOK {
		return resp.StatusCode, fmt.Errorf("PD says %s to %s", resp.Status, path)
	}
	if out == nil {
		return resp.StatusCode, nil
	}
	return resp.StatusCode, json.Unmarshal(b, out)
}

func (d *httpDriver) view(ctx context.Context, c *cluster) (*view, error) {
	var members struct {
		Header struct {
			ClusterID uint64 `json:"cluster_id"`
		}
		Leader struct{ Name string }
	}
	if _, err := d.call(ctx, http.MethodGet, c, "members", nil, &members); err != nil {
		return nil, err
	}
	var health []struct {
		Name       string   `json:"name"`
		MemberID   uint64   `json:"member_id"`
		ClientURLs []string `json:"client_urls"`
		Health     bool     `json:"health"`
	}
	if _, err := d.call(ctx, http.MethodGet, c, "health", nil, &health); err != nil {
		return nil, err
	}
	stores, err := d.stores(ctx, c)
	if err != nil {
		return nil, err
	}
	v := &view{
		clusterID: strconv.FormatUint(members.Header.ClusterID, 10), members: map[string]member{}, stores: stores,
	}
	for _, h := range health {
		m := member{Name: h.Name, ID: strconv.FormatUint(h.MemberID, 10), Health: h.Health}
		if len(h.ClientURLs) > 0 {
			m.ClientURL = h.ClientURLs[0]
		}
		v.members[h.Name] = m
		if h.Name == members.Leader.Name {
			v.leader = &m
		}
	}
	return v, nil
}

func (d *httpDriver) stores(ctx context.Context, c *cluster) (map[string]storeStatus, error) {
	var answer struct {
		Stores []struct {
			Store struct {
				ID        uint64 `json:"id"`
				Address   string `json:"address"`
				StateName string `json:"state_name"`
			} `json:"store"`
			Status struct {
				LeaderCount int `json:"leader_count"`
			} `json:"status"`
		} `json:"stores"`
	}
	if _, err := d.call(ctx, http.MethodGet, c, "stores", nil, &answer); err != nil {
		return nil, err
	}
	list := map[string]storeStatus{}
	for _, s := range answer.Stores {
		host, _, _ := strings.Cut(s.Store.Address, ":")
		pod, _, _ := strings.Cut(host, ".")
		id := strconv.FormatUint(s.Store.ID, 10)
		list[id] = storeStatus{
			ID: id, PodName: pod, IP: host, LeaderCount: s.Status.LeaderCount, State: s.Store.StateName,
		}
	}
	return list, nil
}

func (d *httpDriver) dismiss(ctx context.Context, c *cluster, name string) error {
	code, err := d.call(ctx, http.MethodDelete, c, "members/name/"+name, nil, nil)
	if code == http.StatusNotFound {
		return nil
	}
	return err
}

func (d *httpDriver) retire(ctx context.Context, c *cluster, pod string) (gone bool, err error) {
	stores, err := d.stores(ctx, c)
	if err != nil {
		return false, err
	}
	for id, s := range stores {
		if s.PodName != pod {
			continue
		}
		if s.State != "Offline" {
			_, err = d.call(ctx, http.MethodDelete, c, "store/"+id, nil, nil)
		}
		return false, err
	}
	return true, nil
}

// evictor is the scheduler of PD that takes leaders from a store.
const evictor = "evict-leader-scheduler"

func (d *httpDriver) evict(ctx context.Context, c *cluster, pod string) (done bool, err error) {
	stores, err := d.stores(ctx, c)
	if err != nil {
		return false, err
	}
	var own *storeStatus
	others := 0
	for _, x := range stores {
		switch {
		case x.PodName == pod && x.State == "Up":
			own = &x
		case x.State == "Up":
			others++
		}
	}
	if own == nil || others == 0 {
		return true, nil
	}
	id, err := strconv.ParseUint(own.ID, 10, 64)
	if err != nil {
		return false, err
	}
	order := map[string]any{"name": evictor, "store_id": id}
	_, err = d.call(ctx, http.MethodPost, c, "schedulers", order, nil)
	return err == nil && own.LeaderCount == 0, err
}

func (d *httpDriver) readmit(ctx context.Context, c *cluster) error {
	var list []string
	if _, err := d.call(ctx, http.MethodGet, c, "schedulers", nil, &list); err != nil {
		return err
	}
	for _, name := range list {
		if !strings.HasPrefix(name, evictor) {
			continue
		}
		code, err := d.call(ctx, http.MethodDelete, c, "schedulers/"+name, nil, nil)
		if err != nil && code != http.StatusNotFound {
			return err
		}
	}
	return nil
}
