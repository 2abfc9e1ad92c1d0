package controlplane

import (
	"bytes"
	"context"
	"strings"

	"k8s.io/kube-aggregator/pkg/apis/apiregistration"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
)

const (
	apiServices = registry + "apiregistration.k8s.io/apiservices/"
	ipAddresses = registry + "ipaddresses/"
)

// FinishRestore restores once more what the API server's own loops look after, because these never stop: they note
// since when aggregated APIs answer, register the APIs of custom resources, and repair the records of services'
// addresses. They may have acted on a half restored state. Call it when programs serve again.
func (p *Plane) FinishRestore(ctx context.Context, s State) error {
	now, _, err := p.State(ctx)
	if err != nil {
		return err
	}
	var keys []string
	for _, key := range changedKeys(now, s) {
		if strings.HasPrefix(key, apiServices) || strings.HasPrefix(key, ipAddresses) {
			keys = append(keys, key)
		}
	}
	for key, b := range s {
		// That an API did not answer may yet be noted, but not in an object that has changed since. So
		// even one that is right is written.
		if strings.HasPrefix(key, apiServices) && bytes.Equal(now[key], b) && servedByPods(b) {
			keys = append(keys, key)
		}
	}
	written, err := writeKeys(ctx, p.store, s, keys)
	if err != nil {
		return err
	}
	return p.awaitCaches(ctx, written)
}

// servedByPods reports whether a stored APIService leads to a service.
func servedByPods(b []byte) bool {
	obj, _, err := aggregatorscheme.Codecs.UniversalDecoder(apiregistration.SchemeGroupVersion).Decode(b, nil, nil)
	a, ok := obj.(*apiregistration.APIService)
	return err == nil && ok && a.Spec.Service != nil
}
